"""How a job that never ends stands: kept beside its commits, told in a line."""

from __future__ import annotations

import contextlib

import msgspec
from apache_beam.io.filesystem import CompressionTypes
from apache_beam.io.filesystems import FileSystems

from pipeline.commit import read_bytes
from pipeline.writing import TEMPORARY
from schemas.parcels import LaneParcel, ReadParcel

STATUS = "_status.json"


class Status(msgspec.Struct):
    """Sums since the job began; `open_by_lane` is as of now, `newest_ms` the newest message's time."""

    at_ms: int = 0
    commits: int = 0
    records: int = 0
    messages: int = 0
    sessions: int = 0
    late: int = 0
    too_late: int = 0
    newest_ms: int | None = None
    open_by_lane: dict[int, int] = {}

    @property
    def open_sessions(self) -> int:
        return sum(self.open_by_lane.values())

    def lag_seconds(self, now_ms: int) -> int:
        """How far the newest message's time is behind the clock."""
        return 0 if self.newest_ms is None else max(0, (now_ms - self.newest_ms) // 1000)

    def add(self, parcel: ReadParcel | LaneParcel) -> None:
        """Counts what a parcel tells."""
        if isinstance(parcel, ReadParcel):
            self.records += parcel.records
            self.messages += parcel.messages
            if parcel.newest_ms is not None:
                self.newest_ms = max(self.newest_ms or parcel.newest_ms, parcel.newest_ms)
            return
        self.open_by_lane[parcel.lane] = parcel.open_sessions
        self.sessions += parcel.given
        self.late += parcel.late
        self.too_late += parcel.too_late

    def line(self, now_ms: int) -> str:
        """The line for a terminal."""
        beyond = f" ({self.too_late:,} beyond the allowance)" if self.too_late else ""
        return (
            f"{self.records:,} records read, {self.sessions:,} sessions given, {self.open_sessions:,} open, "
            f"{self.late:,} late messages{beyond}, {self.commits:,} commits, lag {self.lag_seconds(now_ms)} s"
        )


def write_status(output: str, run: str, status: Status) -> None:
    """Writes the status beside the commits. What it tells is in the state as well: never raises."""
    with contextlib.suppress(Exception):
        waiting = FileSystems.join(output, TEMPORARY, f"status-{run}.json")
        with FileSystems.create(waiting, compression_type=CompressionTypes.UNCOMPRESSED) as stream:
            stream.write(msgspec.json.encode(status))
        FileSystems.rename([waiting], [FileSystems.join(output, STATUS)])


def read_status(output: str) -> Status | None:
    """The status as last written, None where there is none."""
    with contextlib.suppress(Exception):
        return msgspec.json.decode(read_bytes(FileSystems.join(output, STATUS)), type=Status)
    return None
