"""The archive's files, in archive order, and the splits in which they are read."""

from __future__ import annotations

import enum
from collections.abc import Sequence

import msgspec
from apache_beam.io.filesystem import BeamIOError
from apache_beam.io.filesystems import FileSystems

from schemas.errors import UsageError

SPLIT_BYTES = 64 << 20


class FileFormat(enum.StrEnum):
    JSONL = "jsonl"
    JSONL_GZIP = "jsonl.gz"
    JSONL_ZSTD = "jsonl.zst"
    AVRO = "avro"
    PARQUET = "parquet"
    # A broker's, which no file has.
    MESSAGES = "messages"


_ENDINGS = {
    ".jsonl": FileFormat.JSONL,
    ".ndjson": FileFormat.JSONL,
    ".jsonl.gz": FileFormat.JSONL_GZIP,
    ".ndjson.gz": FileFormat.JSONL_GZIP,
    ".jsonl.zst": FileFormat.JSONL_ZSTD,
    ".ndjson.zst": FileFormat.JSONL_ZSTD,
    ".avro": FileFormat.AVRO,
    ".parquet": FileFormat.PARQUET,
}


class InputFile(msgspec.Struct, frozen=True):
    """One file of the archive; its number is its position in archive order (by path)."""

    path: str
    size: int
    format: FileFormat


class Split(msgspec.Struct, frozen=True):
    """The lines of a file that start in [start, end); `end` None is the end of the file."""

    file: int
    path: str
    format: FileFormat
    start: int = 0
    end: int | None = None


def matched_files(patterns: Sequence[str]) -> list[InputFile]:
    """The files that the patterns match, each once, sorted by path. Raises UsageError."""
    sizes: dict[str, int] = {}
    try:
        results = FileSystems.match(list(patterns))
    except (BeamIOError, ValueError) as error:
        raise UsageError(f"--input {' '.join(patterns)}: {error}") from None
    for pattern, result in zip(patterns, results, strict=True):
        if not result.metadata_list:
            raise UsageError(f"--input {pattern!r} matches no file")
        for found in result.metadata_list:
            sizes[found.path] = found.size_in_bytes
    return [InputFile(path, sizes[path], format_of(path)) for path in sorted(sizes)]


def format_of(path: str) -> FileFormat:
    """The format that a path's ending names. Raises UsageError where it names none."""
    lowered = path.lower()
    for ending, file_format in _ENDINGS.items():
        if lowered.endswith(ending):
            return file_format
    raise UsageError(f"--input: cannot tell the format of {path!r}: expected one of {', '.join(_ENDINGS)}")


def splits_of(files: Sequence[InputFile], split_bytes: int = SPLIT_BYTES) -> list[Split]:
    """The splits of all files. Only plain JSON lines can be entered in the middle."""
    splits: list[Split] = []
    for number, file in enumerate(files):
        if file.format is not FileFormat.JSONL or file.size <= split_bytes:
            splits.append(Split(number, file.path, file.format))
            continue
        for start in range(0, file.size, split_bytes):
            end = start + split_bytes
            last = None if end >= file.size else end
            splits.append(Split(number, file.path, file.format, start, last))
    return splits
