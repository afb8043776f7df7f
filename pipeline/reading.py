"""A split of a file, read into records and rejects, block by block."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping
from typing import IO, Any

import fastavro
import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
from apache_beam.io.filesystem import CompressionTypes
from apache_beam.io.filesystems import FileSystems

from pipeline.inputs import FileFormat, Split
from schemas.arrow import RECORDS
from schemas.reasons import Reject
from schemas.records import Place, Record, Rejected
from transforms.ahead import in_order
from transforms.compression import BrokenStream, Codec, decompressed
from transforms.decode import RECORD_LIMIT, Source, record_of_row
from transforms.decoded_lines import DecodedBlock, decoded_lines
from transforms.lines import Stretch, lines_of_stretch, stretches
from transforms.record_tables import records_table

BLOCK_BYTES = 8 << 20
# Decoding is most of reading, and nearly all of it is Arrow's, which needs no lock of Python's.
DECODING_THREADS = 2
_ROWS_A_BLOCK = 8192

# The columns that a row may bring along; all others of an Avro or Parquet file stay unread.
COLUMNS = (
    "_type",
    "threadId",
    "id",
    "text",
    "author",
    "metadata",
    "attachments",
    "links",
    "role",
    "content",
    "toolCalls",
    "toolCallId",
    "name",
    "error",
    "dateSent",
    "messages",
    "tools",
)


class Block(msgspec.Struct):
    """What one block of a split held; `size` is in bytes as stored, as near as is known."""

    table: pa.Table
    rejects: list[Rejected]
    size: int = 0

    @property
    def records(self) -> int:
        return int(self.table.num_rows)


def blocks_of_split(split: Split, source: Source) -> Iterator[Block]:
    """The split's records and rejects. A file that breaks off gives what came before, and a reject."""
    with FileSystems.open(split.path, compression_type=CompressionTypes.UNCOMPRESSED) as stream:
        if split.format is FileFormat.PARQUET:
            yield from _row_blocks(split, source, _parquet_rows(stream))
        elif split.format is FileFormat.AVRO:
            yield from _row_blocks(split, source, _avro_rows(stream))
        else:
            yield from _line_blocks(split, source, stream)


def _line_blocks(split: Split, source: Source, stream: IO[bytes]) -> Iterator[Block]:
    counted = _CountedBlocks(stream, max(split.start - 1, 0))
    broken: list[BrokenStream] = []
    plain: Iterable[bytes] = counted
    if split.format is FileFormat.JSONL_GZIP:
        plain = _until_broken(counted, "gzip", broken)
    elif split.format is FileFormat.JSONL_ZSTD:
        plain = _until_broken(counted, "zstd", broken)
    at = split.start
    decode = functools.partial(_decoded, file=split.file, source=source)
    undecoded = stretches(plain, split.start, split.end, RECORD_LIMIT)
    for _stretch, (end, (table, rejects)) in in_order(decode, undecoded, DECODING_THREADS):
        at = max(at, end)
        yield Block(table, rejects, counted.taken())
    if broken:
        place = Place(split.file, at)
        yield Block(RECORDS.empty_table(), [Rejected(place, Reject.BROKEN_FILE, str(broken[0]))])


def _decoded(stretch: Stretch, file: int, source: Source) -> tuple[int, DecodedBlock]:
    """Where the lines end, and what they hold."""
    lines = lines_of_stretch(stretch)
    return lines.end, decoded_lines(lines, file, source)


class _CountedBlocks:
    """The blocks of a stream, and how many bytes of them were taken since last asked."""

    def __init__(self, stream: IO[bytes], start: int) -> None:
        self._stream = stream
        self._taken = 0
        if start:
            stream.seek(start)

    def __iter__(self) -> Iterator[bytes]:
        while block := self._stream.read(BLOCK_BYTES):
            self._taken += len(block)
            yield block

    def taken(self) -> int:
        taken, self._taken = self._taken, 0
        return taken


def _until_broken(blocks: Iterable[bytes], codec: Codec, broken: list[BrokenStream]) -> Iterator[bytes]:
    try:
        yield from decompressed(blocks, codec)
    except BrokenStream as error:
        broken.append(error)


def _row_blocks(
    split: Split, source: Source, rows: Iterator[Mapping[str, Any] | Rejected]
) -> Iterator[Block]:
    records: list[Record] = []
    rejects: list[Rejected] = []
    for number, row in enumerate(rows):
        place = Place(split.file, number)
        if isinstance(row, Rejected):
            result: Record | Rejected = row
            row.place = place
        else:
            result = record_of_row(row, place, source)
        if isinstance(result, Record):
            records.append(result)
        else:
            rejects.append(result)
        if len(records) >= _ROWS_A_BLOCK:
            yield Block(records_table(records), rejects)
            records, rejects = [], []
    yield Block(records_table(records), rejects)


_NOWHERE = Place(-1, -1)


def _avro_rows(stream: IO[bytes]) -> Iterator[Mapping[str, Any] | Rejected]:
    try:
        for row in fastavro.reader(stream):
            if isinstance(row, dict):
                yield {name: row[name] for name in COLUMNS if name in row}
            else:
                yield Rejected(_NOWHERE, Reject.NOT_AN_OBJECT, "the Avro datum is no record")
    # fastavro raises whatever a broken byte leads to: EOFError, ValueError, struct.error, KeyError, …
    except Exception as error:
        detail = f"the Avro file breaks off: {error or type(error).__name__}"
        yield Rejected(_NOWHERE, Reject.BROKEN_FILE, detail)


def _parquet_rows(stream: IO[bytes]) -> Iterator[Mapping[str, Any] | Rejected]:
    try:
        file = pq.ParquetFile(stream)
        present = [name for name in COLUMNS if name in file.schema_arrow.names]
        if "threadId" not in present:
            columns = ", ".join(file.schema_arrow.names[:20])
            detail = f"the file has no column threadId, but {columns or 'none'}"
            yield Rejected(_NOWHERE, Reject.MISSING_COLUMNS, detail)
            return
        for batch in file.iter_batches(batch_size=_ROWS_A_BLOCK, columns=present):
            yield from _batch_rows(batch)
    except (pa.ArrowException, OSError) as error:
        detail = f"the Parquet file cannot be read: {str(error).splitlines()[0]}"
        yield Rejected(_NOWHERE, Reject.BROKEN_FILE, detail)


def _batch_rows(batch: pa.RecordBatch) -> Iterator[Mapping[str, Any] | Rejected]:
    try:
        yield from batch.to_pylist()
    except UnicodeDecodeError:
        for number in range(batch.num_rows):
            try:
                yield batch.slice(number, 1).to_pylist()[0]
            except UnicodeDecodeError as error:
                yield Rejected(_NOWHERE, Reject.NOT_UTF8, str(error))
