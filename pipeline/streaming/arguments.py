"""The options of `--streaming` on the command line, and of `threadloom compact`. No Beam here."""

from __future__ import annotations

import argparse
from typing import Any

from schemas.errors import UsageError

STREAM_ONLY = (
    "watch",
    "poll_every",
    "kafka_brokers",
    "kafka_topic",
    "kafka_expansion_service",
    "pubsub_subscription",
    "session_gap",
    "allowed_lateness",
    "commit_every",
    "commit_bytes",
)


def add_streaming(group: argparse._ArgumentGroup) -> None:
    """Adds `--streaming` and what goes with it to `threadloom run`."""
    group.add_argument(
        "--streaming",
        action="store_true",
        help="never end: read what comes, write a session when its thread has fallen silent; needs a runner "
        "that can (see runner_configs/)",
    )
    _sources(group)
    group.add_argument(
        "--session_gap",
        metavar="TIME",
        help="a session is over after so much silence, by dateSent: seconds, or 90s, 30m, 1.5h, 2d; "
        "default: 30m",
    )
    group.add_argument(
        "--allowed_lateness",
        metavar="TIME",
        help="how much later a message may still join its session, which is then given again, whole, with a "
        "higher version; default: 0",
    )
    group.add_argument(
        "--commit_every",
        metavar="TIME",
        help="write a commit when so much time has passed since the last one; default: 10m",
    )
    group.add_argument(
        "--commit_bytes",
        metavar="SIZE",
        help="or when so much has gathered, packed: bytes, or 64MiB; default: 128MiB",
    )


def _sources(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--watch",
        action="append",
        metavar="PATTERN",
        help="read the files that are there and those that appear under this pattern, each once; may be "
        "given several times",
    )
    group.add_argument("--poll_every", metavar="TIME", help="how often to look for new files; default: 10s")
    group.add_argument("--kafka_brokers", metavar="HOST:PORT,…", help="read a Kafka topic: who to ask")
    group.add_argument(
        "--kafka_topic", action="append", metavar="TOPIC", help="what to read; may be given several times"
    )
    group.add_argument(
        "--kafka_expansion_service",
        metavar="HOST:PORT",
        help="Beam's Java expansion service with the Kafka connector; default: Beam starts its own",
    )
    group.add_argument(
        "--pubsub_subscription", metavar="projects/P/subscriptions/S", help="read a Pub/Sub subscription"
    )


def check_streaming(arguments: argparse.Namespace) -> None:
    """Raises UsageError where an option does not go with `--streaming`, or needs it."""
    if not arguments.streaming:
        for name in STREAM_ONLY:
            if getattr(arguments, name) is not None:
                raise UsageError(f"--{name} is for --streaming")
        return
    if arguments.input:
        raise UsageError("--input is read once, --streaming reads what comes: name it with --watch")
    if arguments.overwrite:
        raise UsageError("--streaming adds commits to --output: --overwrite has nothing to replace")
    if arguments.max_rejected is not None:
        raise UsageError("--max_rejected is counted at the end of a job: --streaming has none")


def add_compact(subparsers: argparse._SubParsersAction[Any]) -> None:
    """Adds `compact` and its options."""
    compact = subparsers.add_parser(
        "compact",
        help="make of a streaming output what one batch run writes",
        description="Makes of all commits of a streaming output the datasets that `threadloom run` writes of "
        "the same records: sessions joined, the same bytes. May be run while the job goes on: it takes the "
        "commits that are published when it starts.",
        allow_abbrev=False,
    )
    compact.add_argument("source", metavar="OUT", help="the --output of a streaming job")
    compact.add_argument("output", metavar="DEST", help="the folder to write the datasets to")
    compact.add_argument(
        "--num_shards", metavar="N", type=int, help="files a dataset; default: as `run` does"
    )
    compact.add_argument("--overwrite", action="store_true", help="replace the result that DEST holds")
    compact.add_argument("--quiet", action="store_true", help="no progress line and no summary")
