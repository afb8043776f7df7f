"""Commits made of archives without a runner: what a streaming job would have read of these files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from pipeline.inputs import matched_files, splits_of
from pipeline.options import RunOptions
from pipeline.reading import blocks_of_split
from pipeline.streaming.convert import ConvertSessions
from pipeline.streaming.graph import StreamPlan
from pipeline.streaming.log import CommitLog, Preparing, prepared
from pipeline.streaming.options import StreamOptions
from pipeline.streaming.parcels import opened
from pipeline.streaming.reading import read_batch
from pipeline.streaming.run import stream_plan
from pipeline.streaming.sessions import Given
from schemas.arrow import KNOWN, STREAMED
from schemas.parcels import Parcel, ReadParcel
from transforms.dofns import HookSpec
from transforms.record_tables import unpacked_tables
from transforms.sessions import SessionRule, closing


def plan(output: Path, patterns: Sequence[str]) -> StreamPlan:
    """A job that watches these patterns."""
    stream = StreamOptions(watch=tuple(patterns))
    return stream_plan(RunOptions(input=tuple(patterns), output=str(output), dataset="both"), stream)


def preparing(output: Path, patterns: Sequence[str]) -> Preparing:
    """What that job writes into its commits."""
    return plan(output, patterns).preparing


def read_parcels(patterns: Sequence[str], split_bytes: int = 1 << 20) -> Iterator[ReadParcel]:
    """The files of the patterns as parcels, large ones in several ranges."""
    for file in matched_files(patterns):
        splits = splits_of([file], split_bytes)
        for split in splits:
            blocks = list(blocks_of_split(split, "auto"))
            rejects = [reject for block in blocks for reject in block.rejects]
            batch = read_batch(file.path, [block.table for block in blocks], rejects, 0)
            yield batch.parcel(file.format.value, file.size, len(splits), ended=1)


def rows_parcels(output: Path, patterns: Sequence[str], parcels: Sequence[ReadParcel]) -> Iterator[Parcel]:
    """The rows of all sessions, once everything is over."""
    read = [parcel.table for parcel in parcels if parcel.table is not None]
    done = closing(unpacked_tables(read, STREAMED), KNOWN.empty_table(), SessionRule(60_000, 0), 1 << 50)
    for target in plan(output, patterns).targets:
        convert = ConvertSessions(target, HookSpec(), "latest")
        convert.setup()
        for _key, packed in convert.process(Given(done.given, done.withdrawn)):
            yield opened(packed)


def commit_all(output: Path, patterns: Sequence[str], commits: int = 3, *, rows: bool = False) -> CommitLog:
    """All of it in so many commits, published."""
    log = CommitLog(str(output))
    parcels: list[Parcel] = list(read_parcels(patterns))
    if rows:
        parcels += rows_parcels(output, patterns, list(read_parcels(patterns)))
    for number in range(commits):
        part = parcels[number::commits]
        log.publish(prepared(preparing(output, patterns), number + 1, part, now_ms=1_700_000_000_000))
    return log
