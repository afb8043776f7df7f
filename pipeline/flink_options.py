"""Options of Beam's Flink runner that its job server knows and the Python SDK does not declare."""

from __future__ import annotations

import argparse

from apache_beam.options.pipeline_options import PipelineOptions


class FlinkServerOptions(PipelineOptions):  # type: ignore[misc]
    """Sent along where they are given; none has a default here, the server's holds."""

    @classmethod
    def _add_argparse_args(cls, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "--max_bundle_size",
            type=int,
            default=None,
            help="the most elements of a bundle on Flink; ours are few and large, so 1 keeps an SDK "
            "worker's memory to what one shard takes",
        )
        parser.add_argument(
            "--max_bundle_time_mills",
            type=int,
            default=None,
            help="the most milliseconds that a bundle stays open on Flink",
        )
        parser.add_argument(
            "--checkpointing_interval",
            type=int,
            default=None,
            help="milliseconds between two checkpoints; a job that never ends commits nothing without",
        )
        parser.add_argument(
            "--finish_bundle_before_checkpointing",
            action="store_true",
            default=None,
            help="end a bundle before a checkpoint; without, what it gives waits for the next one",
        )
        parser.add_argument(
            "--state_backend",
            default=None,
            help="where state lives: filesystem (the heap, checkpoints in files) or rocksdb",
        )
        parser.add_argument(
            "--state_backend_storage_path",
            default=None,
            help="where checkpoints go, a URL that all machines reach",
        )
        parser.add_argument(
            "--externalized_checkpoints_enabled",
            action="store_true",
            default=None,
            help="keep checkpoints outside of the cluster's memory, to restore a job that has failed",
        )
        parser.add_argument(
            "--retain_externalized_checkpoints_on_cancellation",
            action="store_true",
            default=None,
            help="keep them when the job is cancelled, too",
        )
        parser.add_argument(
            "--savepoint_path",
            default=None,
            help="the checkpoint or savepoint that a job goes on from",
        )
