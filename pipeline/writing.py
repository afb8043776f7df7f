"""Shards to files: one Parquet file a shard, under a temporary name until the run commits.

Beam's WriteToParquet is not used: its shards are skewed, columns that the schema lacks become null
without a word, and a second run with fewer shards leaves both sets of files behind.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import IO

import apache_beam as beam
import msgspec
import pyarrow as pa
from apache_beam.io.filesystem import CompressionTypes
from apache_beam.io.filesystems import FileSystems
from apache_beam.pvalue import PCollection
from apache_beam.transforms.window import GlobalWindows, WindowedValue

from schemas.arrow import reject_schema
from schemas.errors import JobError
from transforms.ahead import Behind
from transforms.parquet import write_parquet
from transforms.rejects import reject_table, unpacked_rejects

TEMPORARY = "_temporary"


class Receipt(msgspec.Struct, frozen=True):
    """A file that was written whole: its final name in the output, and where it waits until then."""

    name: str
    temporary: str
    rows: int
    size: int
    sha256: str


class ShardFiles(msgspec.Struct, frozen=True):
    """Where the shards of a run go: the output, the run's own temporary folder, how many there are."""

    output: str
    run: str
    shards: int

    @property
    def temporary(self) -> str:
        """The run's own folder, gone when the run has ended."""
        return str(FileSystems.join(self.output, TEMPORARY, self.run))

    def name(self, folder: str, shard: int) -> str:
        """The final name of a shard's file, relative to the output."""
        return f"{folder}/part-{shard:05d}-of-{self.shards:05d}.parquet"

    def new_temporary(self, folder: str, shard: int) -> str:
        """A path that no other attempt at the same shard uses."""
        attempt = f"{folder}-{shard:05d}-{uuid.uuid4().hex}.parquet"
        return str(FileSystems.join(self.temporary, attempt))


class WriteRows(beam.PTransform):  # type: ignore[misc]
    """(shard, row groups) -> Receipt"""

    def __init__(self, files: ShardFiles, folder: str) -> None:
        super().__init__()
        self._files = files
        self._folder = folder

    def expand(self, shards: PCollection) -> PCollection:
        return shards | "Write shard" >> beam.ParDo(_WriteRows(self._files, self._folder))


class WriteRejects(beam.PTransform):  # type: ignore[misc]
    """(shard, packed rejects) … -> Receipt, one a shard, also where it has none"""

    def __init__(self, files: ShardFiles, folder: str, paths: Sequence[str]) -> None:
        super().__init__()
        self._files = files
        self._write = _WriteRejects(files, folder, paths)

    def expand(self, rejects: PCollection) -> PCollection:
        none = msgspec.msgpack.encode([])
        seeds = rejects.pipeline | "Every shard" >> beam.Create(
            [(shard, none) for shard in range(self._files.shards)], reshuffle=False
        )
        return (
            (rejects, seeds)
            | "With every shard" >> beam.Flatten()
            | "Group rejects by shard" >> beam.GroupByKey()
            | "Write shard" >> beam.ParDo(self._write)
        )


class _WriteRows(beam.DoFn):  # type: ignore[misc]
    """Writes a shard while the next one is converted; a bundle ends when all of its files are whole."""

    def __init__(self, files: ShardFiles, folder: str) -> None:
        self._files = files
        self._folder = folder

    def start_bundle(self) -> None:
        self._behind: Behind[Receipt] = Behind()

    def process(self, element: tuple[int, list[pa.Table]]) -> None:
        shard, tables = element
        self._behind.start(partial(written, self._files, self._folder, shard, tables[0].schema, tables))

    def finish_bundle(self) -> Iterator[WindowedValue]:
        for receipt in self._behind.results():
            yield GlobalWindows.windowed_value(receipt)


class _WriteRejects(beam.DoFn):  # type: ignore[misc]
    def __init__(self, files: ShardFiles, folder: str, paths: Sequence[str]) -> None:
        self._files = files
        self._folder = folder
        self._paths = paths

    def process(self, element: tuple[int, Iterable[bytes]]) -> Iterator[Receipt]:
        shard, packed = element
        table = reject_table(unpacked_rejects(packed), self._paths)
        yield written(self._files, self._folder, shard, reject_schema(), [table])


def written(
    files: ShardFiles, folder: str, shard: int, schema: pa.Schema, tables: Iterable[pa.Table]
) -> Receipt:
    """Writes one file of a shard, a row group a table, and says what it is. Raises JobError."""
    return written_file(files.new_temporary(folder, shard), files.name(folder, shard), schema, tables)


def written_file(path: str, name: str, schema: pa.Schema, tables: Iterable[pa.Table]) -> Receipt:
    """Writes one file, a row group a table; `name` is what it is to be called. Raises JobError."""
    try:
        stream = FileSystems.create(path, compression_type=CompressionTypes.UNCOMPRESSED)
        with stream, _Hashed(stream) as hashed:
            rows = write_parquet(hashed, schema, tables)
    except Exception as error:  # each file system raises errors of its own
        raise JobError(f"cannot write {path}: {file_problem(error)}") from error
    return Receipt(name, path, rows, hashed.size, hashed.hexdigest())


class _Hashed:
    """A stream that is written through, with its size and SHA-256."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._sha256 = hashlib.sha256()
        self.size = 0
        self.closed = False

    def __enter__(self) -> _Hashed:
        return self

    def __exit__(self, *_error: object) -> None:
        return None

    def write(self, data: bytes) -> int:
        self._stream.write(data)
        self._sha256.update(data)
        self.size += len(data)
        return len(data)

    def tell(self) -> int:
        return self.size

    def flush(self) -> None:
        return None

    def close(self) -> None:
        self.closed = True

    def hexdigest(self) -> str:
        return self._sha256.hexdigest()


def file_problem(error: Exception) -> str:
    """What a file system's error says, in a line."""
    reason = error.strerror if isinstance(error, OSError) else None
    return reason or next(iter(str(error).splitlines()), type(error).__name__)
