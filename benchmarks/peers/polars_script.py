"""The Polars script: scan, filter, group, sort inside the group, sink; lazy, on all cores.

What an expression cannot say well is left out: the fencing of links, attachments, the latest of
several versions, rejects (one bad line ends the script), sums. Dates are compared as text, which is
right as long as all are as `toISOString` writes them; a missing one comes first.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import polars as pl

# The fields that are needed; all others of a line stay unread.
SCHEMA = {
    "threadId": pl.String(),
    "id": pl.String(),
    "text": pl.String(),
    "author": pl.Struct({"isMe": pl.Boolean()}),
    "metadata": pl.Struct({"dateSent": pl.String()}),
}


def rows(path: str) -> pl.LazyFrame:
    """One row a thread. `maintain_order`: what was sent at the same time stays in archive order."""
    is_me = pl.col("author").struct.field("isMe")
    role = pl.when(is_me).then(pl.lit("assistant")).otherwise(pl.lit("user"))
    return (
        pl.scan_ndjson(path, schema=SCHEMA)
        .filter(pl.col("text").str.strip_chars() != "")
        .select(
            thread_id="threadId",
            messages=pl.struct(role=role, content="text"),
            message_ids="id",
            sent=pl.col("metadata").struct.field("dateSent"),
        )
        .group_by("thread_id")
        .agg(pl.col("messages", "message_ids").sort_by("sent", maintain_order=True))
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--input", required=True)
    parser.add_argument("--output", required=True, type=Path)
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    rows(options.input).sink_parquet(options.output / "part-00000.parquet", compression="zstd")


if __name__ == "__main__":
    main()
