"""What a source holds, read into lanes of records, and parcels that log what was read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import apache_beam as beam
import pyarrow as pa
import pyarrow.compute as pc
from apache_beam.metrics import Metrics
from apache_beam.pvalue import DoOutputsTuple, PCollection, TaggedOutput
from apache_beam.transforms.window import GlobalWindow
from apache_beam.utils.timestamp import Timestamp
from apache_beam.utils.windowed_value import WindowedValue

from pipeline.inputs import Split
from pipeline.reading import Block, blocks_of_split
from pipeline.streaming.parcels import addressed
from pipeline.streaming.watch import FileSplit
from pipeline.writing import file_problem
from schemas.arrow import RECORDS
from schemas.parcels import ReadParcel
from schemas.reasons import Reject
from schemas.records import Place, Rejected
from transforms.decode import Source
from transforms.record_tables import by_shard, packed_table
from transforms.session_rejects import read_reject_table
from transforms.streamed import decoded_values, streamed

PARCELS = "parcels"
# An element on its way to a lane holds about so many bytes of records, or so many messages of a broker.
_FLUSH_BYTES = 16 << 20
_FLUSH_MESSAGES = 8192


class ReadFiles(beam.PTransform):  # type: ignore[misc]
    """FileSplit -> (lane, packed records) …, and parcels on a tag of their own"""

    def __init__(self, source: Source, lanes: int) -> None:
        super().__init__()
        self._read = _ReadFile(source, lanes)

    def expand(self, splits: PCollection) -> DoOutputsTuple:
        return splits | "Read and decode" >> beam.ParDo(self._read).with_outputs(PARCELS, main="records")


class Message(NamedTuple):
    """One message of a broker: where it stands in which of its partitions, when it came, what it holds."""

    source: str
    at: int
    arrived_ms: int
    value: bytes


class ReadMessages(beam.PTransform):  # type: ignore[misc]
    """Message -> as `ReadFiles`, many messages at a time"""

    def __init__(self, source: Source, lanes: int) -> None:
        super().__init__()
        self._read = _ReadMessages(source, lanes)

    def expand(self, messages: PCollection) -> DoOutputsTuple:
        return messages | "Decode" >> beam.ParDo(self._read).with_outputs(PARCELS, main="records")


class _ReadFile(beam.DoFn):  # type: ignore[misc]
    def __init__(self, source: Source, lanes: int) -> None:
        self._source = source
        self._lanes = lanes
        self._records = Metrics.counter("threadloom", "records_read")

    def process(self, element: FileSplit, time: Any = beam.DoFn.TimestampParam) -> Iterator[Any]:
        split, arrived_ms = element.split, time.micros // 1000
        held: list[pa.Table] = []
        rejects: list[Rejected] = []
        for block in _readable_blocks(split, self._source):
            held.append(block.table)
            rejects += block.rejects
            if sum(table.nbytes for table in held) >= _FLUSH_BYTES:
                yield from self._outputs(element, held, rejects, arrived_ms)
                held, rejects = [], []
        yield from self._outputs(element, held, rejects, arrived_ms, ended=1)

    def _outputs(
        self,
        file: FileSplit,
        tables: list[pa.Table],
        rejects: list[Rejected],
        arrived_ms: int,
        ended: int = 0,
    ) -> Iterator[Any]:
        path = file.split.path
        batch = read_batch(path, tables, rejects, arrived_ms)
        self._records.inc(batch.records)
        yield from by_lane(batch, self._lanes)
        parcel = batch.parcel(file.split.format.value, file.size, file.ranges, ended)
        yield TaggedOutput(PARCELS, addressed(parcel))


def _readable_blocks(split: Split, source: Source) -> Iterator[Block]:
    """The blocks of a split; of a file that is gone, or closed to us, a reject: the job goes on."""
    try:
        yield from blocks_of_split(split, source)
    except (FileNotFoundError, PermissionError) as error:
        detail = f"the file cannot be opened: {file_problem(error)}"
        rejected = Rejected(Place(split.file, split.start), Reject.BROKEN_FILE, detail)
        yield Block(RECORDS.empty_table(), [rejected])


class _ReadMessages(beam.DoFn):  # type: ignore[misc]
    """Gathers the messages of a bundle: one by one they would cost more than all that is done with them."""

    def __init__(self, source: Source, lanes: int) -> None:
        self._source = source
        self._lanes = lanes
        self._records = Metrics.counter("threadloom", "records_read")

    def start_bundle(self) -> None:
        self._messages: list[Message] = []
        self._first: Timestamp | None = None

    def process(self, message: Message, time: Any = beam.DoFn.TimestampParam) -> Iterator[Any]:
        self._messages.append(message)
        self._first = time if self._first is None else min(time, self._first)
        if len(self._messages) >= _FLUSH_MESSAGES:
            yield from self._outputs()

    def finish_bundle(self) -> Iterator[Any]:
        first = self._first
        for output in self._outputs():
            tag = output.tag if isinstance(output, TaggedOutput) else None
            value = output.value if isinstance(output, TaggedOutput) else output
            whole = WindowedValue(value, first, (GlobalWindow(),))
            yield whole if tag is None else TaggedOutput(tag, whole)

    def _outputs(self) -> Iterator[Any]:
        of_source: dict[str, list[Message]] = {}
        for message in self._messages:
            of_source.setdefault(message.source, []).append(message)
        self._messages = []
        for source, messages in of_source.items():
            values = [message.value for message in messages]
            table, rejects = decoded_values(values, [message.at for message in messages], self._source)
            arrived = {message.at: message.arrived_ms for message in messages}
            batch = read_batch(source, [table], rejects, arrived)
            self._records.inc(batch.records)
            yield from by_lane(batch, self._lanes)
            yield TaggedOutput(PARCELS, addressed(batch.parcel("messages", _size_as_lines(values))))


def _size_as_lines(values: Sequence[bytes]) -> int:
    """How large a file of these lines would be."""
    return sum(map(len, values)) + len(values)


class ReadBatch(NamedTuple):
    """Some records of one source, a table of `STREAMED`, and the rejects among them."""

    source: str
    table: pa.Table
    rejects: list[Rejected]

    @property
    def records(self) -> int:
        return int(self.table.num_rows) + len(self.rejects)

    def parcel(self, file_format: str, size: int, ranges: int | None = None, ended: int = 0) -> ReadParcel:
        """What the commits log of it."""
        rejects = read_reject_table(self.rejects, self.source) if self.rejects else None
        return ReadParcel(
            self.source,
            file_format,
            size,
            ranges,
            ended,
            self.records,
            (pc.sum(self.table["messages"]).as_py() or 0) + sum(one.messages for one in self.rejects),
            pc.max(self.table["event_ms"]).as_py(),
            packed_table(self.table).to_pybytes() if self.table.num_rows else None,
            None if rejects is None else packed_table(rejects).to_pybytes(),
        )


def read_batch(
    source: str, tables: list[pa.Table], rejects: list[Rejected], came_ms: int | Mapping[int, int]
) -> ReadBatch:
    """The batch of these tables of `RECORDS`; when a record came may differ by its place."""
    table = pa.concat_tables(tables) if tables else None
    if table is None or not table.num_rows:
        return ReadBatch(source, streamed(RECORDS.empty_table(), source, 0), rejects)
    if isinstance(came_ms, int):
        return ReadBatch(source, streamed(table, source, came_ms), rejects)
    times = pa.array([came_ms[at] for at in table["at"].to_pylist()], pa.int64())
    return ReadBatch(source, streamed(table, source, times), rejects)


def by_lane(batch: ReadBatch, lanes: int) -> Iterable[tuple[int, bytes]]:
    """(lane, packed records) for every lane that has any"""
    return [(lane, packed_table(part).to_pybytes()) for lane, part in by_shard(batch.table, lanes)]
