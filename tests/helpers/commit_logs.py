"""Commits made of archives without a runner: what a streaming job would have read of these files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from pipeline.inputs import matched_files, splits_of
from pipeline.options import RunOptions
from pipeline.reading import blocks_of_split
from pipeline.streaming.log import CommitLog, Preparing, prepared
from pipeline.streaming.options import StreamOptions
from pipeline.streaming.reading import read_batch
from pipeline.streaming.run import stream_plan
from schemas.parcels import ReadParcel


def preparing(output: Path, patterns: Sequence[str]) -> Preparing:
    """What a job that watches these patterns writes into its commits."""
    stream = StreamOptions(watch=tuple(patterns))
    options = RunOptions(input=tuple(patterns), output=str(output), dataset="both")
    return stream_plan(options, stream).preparing


def read_parcels(patterns: Sequence[str], split_bytes: int = 1 << 20) -> Iterator[ReadParcel]:
    """The files of the patterns as parcels, large ones in several ranges."""
    for file in matched_files(patterns):
        splits = splits_of([file], split_bytes)
        for split in splits:
            blocks = list(blocks_of_split(split, "auto"))
            rejects = [reject for block in blocks for reject in block.rejects]
            batch = read_batch(file.path, [block.table for block in blocks], rejects, 0)
            yield batch.parcel(file.format.value, file.size, len(splits), ended=1)


def commit_all(output: Path, patterns: Sequence[str], commits: int = 3) -> CommitLog:
    """All of it in so many commits, published."""
    log = CommitLog(str(output))
    parcels = list(read_parcels(patterns))
    for number in range(commits):
        part = parcels[number::commits]
        log.publish(prepared(preparing(output, patterns), number + 1, part, now_ms=1_700_000_000_000))
    return log
