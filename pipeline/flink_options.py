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
