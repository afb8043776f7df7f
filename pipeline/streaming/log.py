"""The commits of an output: prepared under `_temporary`, published in order, read back."""

from __future__ import annotations

import datetime
import importlib.metadata
import os
import uuid
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
from apache_beam.io.filesystem import CompressionTypes
from apache_beam.io.filesystems import FileSystems

from pipeline.card import stream_card
from pipeline.commit import CARD, check_present, delete_present, make_folder, move, read_bytes
from pipeline.manifest import manifest_bytes
from pipeline.writing import TEMPORARY, Receipt, file_problem, written_file
from schemas.arrow import LOGGED, STREAMED, session_reject_schema, session_row_schema
from schemas.errors import JobError
from schemas.formats import SCHEMA_VERSION, Format
from schemas.parcels import (
    CommitManifest,
    CommittedFile,
    LaneParcel,
    Parcel,
    ReadParcel,
    RejectsParcel,
    RowsParcel,
    StreamSource,
)
from transforms.record_tables import unpacked_tables

COMMITS = "_commits"
RECORDS_FOLDER = "_records"
REJECTED = "rejected"
# A row group of a commit's file holds about so many bytes.
_GROUP_BYTES = 32 << 20


class Preparing(msgspec.Struct, frozen=True):
    """What a commit needs to know of its job; `formats` by dataset."""

    output: str
    formats: dict[str, str]
    options: dict[str, Any]


class Prepared(msgspec.Struct, frozen=True):
    """A commit whose files are written and wait; `token` is this attempt's alone."""

    number: int
    token: str
    receipts: list[Receipt]
    manifest: bytes


def prepared(preparing: Preparing, number: int, parcels: Iterable[Parcel], now_ms: int) -> Prepared:
    """Writes the files of a commit under temporary names. Raises JobError."""
    token = uuid.uuid4().hex
    folders: dict[str, list[bytes]] = {}
    sources: dict[str, StreamSource] = {}
    late = too_late = 0
    for parcel in parcels:
        if isinstance(parcel, RowsParcel):
            folders.setdefault(parcel.dataset, []).append(parcel.table)
        elif isinstance(parcel, RejectsParcel):
            folders.setdefault(REJECTED, []).append(parcel.table)
        elif isinstance(parcel, ReadParcel):
            count_read(sources, parcel)
            for folder, packed in ((RECORDS_FOLDER, parcel.table), (REJECTED, parcel.rejects)):
                if packed is not None:
                    folders.setdefault(folder, []).append(packed)
        elif isinstance(parcel, LaneParcel):
            late, too_late = late + parcel.late, too_late + parcel.too_late
    receipts = [
        _written(preparing, number, folder, packed, token) for folder, packed in sorted(folders.items())
    ]
    manifest = CommitManifest(
        commit=number,
        threadloom=importlib.metadata.version("threadloom"),
        schema_version=SCHEMA_VERSION,
        prepared_at=datetime.datetime.fromtimestamp(now_ms / 1000, datetime.UTC).isoformat(
            timespec="seconds"
        ),
        options=preparing.options,
        formats=preparing.formats,
        sources=[source for _path, source in sorted(sources.items())],
        rows={receipt.name.split("/")[0].lstrip("_"): receipt.rows for receipt in receipts},
        late=late,
        too_late=too_late,
        files=[CommittedFile(one.name, one.rows, one.size, one.sha256) for one in receipts],
    )
    return Prepared(number, token, receipts, manifest_bytes(msgspec.to_builtins(manifest)))


def makes_files(parcel: Parcel) -> bool:
    """Whether a parcel goes into a file; what does not makes no commit of its own."""
    if isinstance(parcel, ReadParcel):
        return parcel.table is not None or parcel.rejects is not None
    return not isinstance(parcel, LaneParcel)


def count_read(sources: dict[str, StreamSource], parcel: ReadParcel) -> None:
    """Adds what was read of a source."""
    source = sources.get(parcel.source)
    if source is None:
        source = StreamSource(parcel.source, parcel.format, parcel.size, parcel.ranges)
        sources[parcel.source] = source
    elif parcel.ranges is None:
        source.bytes += parcel.size
    source.ended += parcel.ended
    source.records += parcel.records
    source.messages += parcel.messages


def _written(preparing: Preparing, number: int, folder: str, packed: list[bytes], token: str) -> Receipt:
    by: tuple[str, ...]
    if folder in preparing.formats:
        schema = session_row_schema(Format(preparing.formats[folder]))
        by = ("thread_id", "session", "version")
        table = unpacked_tables(packed, schema)
    elif folder == RECORDS_FOLDER:
        schema, by = LOGGED, ("thread_id", "source", "at")
        table = unpacked_tables(packed, STREAMED).select(schema.names)
    else:
        schema, by = session_reject_schema(), ("source_file", "place", "dataset", "version")
        table = unpacked_tables(packed, schema)
    table = table.sort_by([(column, "ascending") for column in by])
    name = f"{folder}/commit-{number:08d}.parquet"
    temporary = FileSystems.join(preparing.output, TEMPORARY, f"commit-{number:08d}-{folder}-{token}.parquet")
    rows = max(1, table.num_rows * _GROUP_BYTES // max(table.nbytes, 1))
    groups = [table.slice(start, rows) for start in range(0, table.num_rows, rows)] or [table]
    return written_file(temporary, name, schema, groups)


class CommitLog:
    """The published commits of an output. Every method raises JobError where files cannot be had."""

    def __init__(self, output: str) -> None:
        self.output = output

    def path(self, number: int) -> str:
        """Where a commit's manifest is."""
        return str(FileSystems.join(self.output, COMMITS, f"{number:08d}.json"))

    def numbers(self) -> list[int]:
        """The numbers of all that are published, in order."""
        pattern = FileSystems.join(self.output, COMMITS, "*.json")
        found = [meta.path for result in FileSystems.match([pattern]) for meta in result.metadata_list]
        return sorted(int(name) for path in found if (name := os.path.basename(path)[:-5]).isdigit())

    def manifests(self) -> Iterator[CommitManifest]:
        """The manifests of all that are published, in order."""
        numbers = self.numbers()
        if numbers != list(range(1, len(numbers) + 1)):
            raise JobError(f"{self.output}/{COMMITS} has gaps: commits {numbers[:3]} … {numbers[-3:]}")
        for number in numbers:
            try:
                yield msgspec.json.decode(read_bytes(self.path(number)), type=CommitManifest)
            except msgspec.MsgspecError as error:
                raise JobError(f"{self.path(number)} is no manifest of a commit: {error}") from None

    def is_published(self, entry: Prepared) -> bool:
        """Whether this very commit is; JobError where its number holds another one."""
        path = self.path(entry.number)
        if not FileSystems.exists(path):
            return False
        if read_bytes(path) != entry.manifest:
            raise JobError(f"{path} is another job's: does one write to the same output?")
        return True

    def publish(self, entry: Prepared) -> None:
        """Moves a commit's files to their names, then its manifest. May be repeated."""
        try:
            if self.is_published(entry):
                return
            if entry.number > 1 and not FileSystems.exists(self.path(entry.number - 1)):
                return
            for receipt in entry.receipts:
                check_present(receipt, self.output)
            for receipt in entry.receipts:
                make_folder(FileSystems.join(self.output, receipt.name.split("/")[0]))
                move(receipt.temporary, FileSystems.join(self.output, *receipt.name.split("/")))
            make_folder(FileSystems.join(self.output, COMMITS))
            if entry.number == 1:
                formats = msgspec.json.decode(entry.manifest, type=CommitManifest).formats
                self._write(entry, "md", FileSystems.join(self.output, CARD), stream_card(formats).encode())
            self._write(entry, "json", self.path(entry.number), entry.manifest)
        except JobError:
            raise
        except Exception as error:  # each file system raises errors of its own
            raise JobError(
                f"cannot publish commit {entry.number} to {self.output}: {file_problem(error)}"
            ) from error

    def _write(self, entry: Prepared, kind: str, path: str, content: bytes) -> None:
        name = f"commit-{entry.number:08d}-{entry.token}.{kind}"
        waiting = FileSystems.join(self.output, TEMPORARY, name)
        with FileSystems.create(waiting, compression_type=CompressionTypes.UNCOMPRESSED) as stream:
            stream.write(content)
        FileSystems.rename([waiting], [path])

    def drop_attempts(self, number: int) -> None:
        """Takes away what other attempts at a published commit have left: no checkpoint knows them."""
        pattern = FileSystems.join(self.output, TEMPORARY, f"commit-{number:08d}-*")
        delete_present(
            [meta.path for result in FileSystems.match([pattern]) for meta in result.metadata_list]
        )
