"""The archive into the graph: splits in, packed records keyed by shard out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import apache_beam as beam
import pyarrow as pa
import pyarrow.compute as pc
from apache_beam.pvalue import DoOutputsTuple, PBegin, TaggedOutput

from pipeline.inputs import Split
from pipeline.progress import Progress
from pipeline.reading import Block
from pipeline.writing import file_problem
from schemas.errors import JobError
from schemas.records import Rejected
from transforms.ahead import in_order
from transforms.dofns import REJECTS, TALLY
from transforms.ledger import Tally, tally_reject
from transforms.record_tables import by_shard, packed_table
from transforms.rejects import packed_rejects
from transforms.sharding import shard_of
from transforms.spill import Packed, spilled

RECORDS = "records"
BlocksOfSplit = Callable[[Split], Iterator[Block]]

# An element of the shuffle: all records of so many bytes of archive that go to one shard.
_FLUSH_BYTES = 16 << 20
_PACKING_THREADS = 1


class ReadArchive(beam.PTransform):  # type: ignore[misc]
    """Reads splits into (shard, packed records); rejects and tallies on tags of their own.

    `blocks` reads a split; `paths` names the archive's files by their numbers.

    With a folder to spill to, the records wait there, and what is given is where they are.

    What cannot be decoded ends as a reject with its place; nothing raises but the file system.
    """

    def __init__(
        self,
        splits: Sequence[Split],
        blocks: BlocksOfSplit,
        paths: Sequence[str],
        shards: int,
        progress: Progress,
        spill_folder: str | None,
    ) -> None:
        super().__init__()
        self._splits = splits
        self._read = _ReadSplit(blocks, paths, shards, progress, spill_folder)

    def expand(self, begin: PBegin) -> DoOutputsTuple:
        return (
            begin
            | "Splits" >> beam.Create(self._splits, reshuffle=False)
            | "Spread splits" >> beam.Reshuffle()
            | "Read and decode" >> beam.ParDo(self._read).with_outputs(REJECTS, TALLY, main=RECORDS)
        )


class _ReadSplit(beam.DoFn):  # type: ignore[misc]
    """Split -> (shard, packed records) …, tagged (shard, packed rejects) and tally"""

    def __init__(
        self,
        blocks: BlocksOfSplit,
        paths: Sequence[str],
        shards: int,
        progress: Progress,
        spill_folder: str | None,
    ) -> None:
        self._blocks = blocks
        self._paths = paths
        self._shards = shards
        self._progress = progress
        self._spill_folder = spill_folder

    def process(self, split: Split) -> Iterator[Any]:
        tally: Tally = Counter()
        rejects: list[Rejected] = []
        tables = self._tables(split, tally, rejects)
        for _held, packed in in_order(self._packed_records, tables, _PACKING_THREADS):
            yield from packed
            if rejects:
                yield from self._packed_rejects(rejects)
                rejects.clear()
        yield from self._packed_rejects(rejects)
        yield TaggedOutput(TALLY, dict(tally))

    def _tables(self, split: Split, tally: Tally, rejects: list[Rejected]) -> Iterator[list[pa.Table]]:
        """The records of the split, a few blocks at a time; counts what it reads, and adds the rejects."""
        held: list[pa.Table] = []
        held_bytes = 0
        for block in self._blocks(split):
            _count(tally, block)
            self._progress.report(block.records + len(block.rejects), block.size)
            rejects += block.rejects
            held.append(block.table)
            held_bytes += block.table.nbytes
            if held_bytes >= _FLUSH_BYTES:
                yield held
                held, held_bytes = [], 0
        if held:
            yield held

    def _packed_records(self, tables: list[pa.Table]) -> list[tuple[int, Packed]]:
        parts = [
            (shard, packed_table(table)) for shard, table in by_shard(pa.concat_tables(tables), self._shards)
        ]
        if self._spill_folder is None:
            return [(shard, packed.to_pybytes()) for shard, packed in parts]
        try:
            return [*spilled(parts, self._spill_folder)]
        except OSError as error:
            raise JobError(f"cannot write to {self._spill_folder}: {file_problem(error)}") from error

    def _packed_rejects(self, rejects: list[Rejected]) -> Iterator[TaggedOutput]:
        of_shards: dict[int, list[Rejected]] = {}
        for reject in rejects:
            key = reject.thread_id or f"{self._paths[reject.place.file]}:{reject.place.at}"
            of_shards.setdefault(shard_of(key, self._shards), []).append(reject)
        for shard, of_shard in of_shards.items():
            yield TaggedOutput(REJECTS, (shard, packed_rejects(of_shard)))


def _count(tally: Tally, block: Block) -> None:
    tally["read/records"] += block.records + len(block.rejects)
    tally["read/messages"] += pc.sum(block.table["messages"]).as_py() or 0
    tally["read/bytes"] += block.size
    for reject in block.rejects:
        tally["read/messages"] += reject.messages
        tally_reject(tally, reject.reason, reject.messages)
