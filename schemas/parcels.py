"""What travels to the commits of a job that never ends, and what a commit says of itself."""

from __future__ import annotations

from typing import Any

import msgspec


class RowsParcel(msgspec.Struct, frozen=True, tag="rows"):
    """Rows of one dataset: a packed table of `session_row_schema`."""

    dataset: str
    table: bytes


class RejectsParcel(msgspec.Struct, frozen=True, tag="rejects"):
    """What has no place in one dataset's rows: a packed table of `session_reject_schema`."""

    table: bytes


class ReadParcel(msgspec.Struct, frozen=True, tag="read"):
    """Part of a source, as it was read: all of it goes into one commit.

    `size` (bytes as stored) and `ranges` are of the whole file, which is read when all of its ranges have
    `ended`. A broker's source has no end: `ranges` is None, and `size` is of what was read. `table` is a
    packed table of `STREAMED`, `rejects` one of `session_reject_schema`; None where there are none.
    """

    source: str
    format: str
    size: int
    ranges: int | None
    ended: int
    records: int
    messages: int
    newest_ms: int | None
    table: bytes | None
    rejects: bytes | None


class LaneParcel(msgspec.Struct, frozen=True, tag="lane"):
    """How a lane stands: its open sessions, and what was late since it was last heard of."""

    lane: int
    open_sessions: int
    given: int
    late: int
    too_late: int


Parcel = RowsParcel | RejectsParcel | ReadParcel | LaneParcel


class StreamSource(msgspec.Struct):
    """What one commit, or all so far, took from a source."""

    path: str
    format: str
    bytes: int
    ranges: int | None
    ended: int = 0
    records: int = 0
    messages: int = 0


class CommittedFile(msgspec.Struct, frozen=True):
    """A file of a commit, its path relative to the output."""

    path: str
    rows: int
    bytes: int
    sha256: str


class CommitManifest(msgspec.Struct, frozen=True):
    """`_commits/NUMBER.json`: the files that became visible together, and what they came from."""

    commit: int
    threadloom: str
    schema_version: str
    prepared_at: str
    options: dict[str, Any]
    formats: dict[str, str]
    sources: list[StreamSource]
    rows: dict[str, int]
    late: int
    too_late: int
    files: list[CommittedFile]
