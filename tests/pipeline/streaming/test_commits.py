"""When a commit is made: by time, by size, never of nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from commit_logs import preparing, read_parcels
from product import chat, write_lines
from states import Bag, Value

from pipeline.streaming.commits import CommitParcels, CommitRule
from pipeline.streaming.parcels import TICK, addressed
from pipeline.streaming.status import read_status
from schemas.parcels import LaneParcel, Parcel


class Clock:
    """A clock that is set by hand; a bundle finalizer that keeps what it is asked for."""

    def __init__(self) -> None:
        self.seconds = 1_000.0
        self.callbacks: list[Any] = []

    def __call__(self) -> float:
        return self.seconds

    def register(self, callback: Any) -> None:
        self.callbacks.append(callback)

    def checkpoint(self) -> None:
        callbacks, self.callbacks = self.callbacks, []
        for callback in callbacks:
            callback()


class Committer:
    """The one who commits, without a runner."""

    def __init__(self, folder: Path, every_ms: int, size: int) -> None:
        write_lines(folder / "a.jsonl", [chat(number) for number in range(50)])
        self.archive = str(folder / "a.jsonl")
        self.clock = Clock()
        self.output = folder / "out"
        what = preparing(self.output, [self.archive])
        self.dofn = CommitParcels(what, CommitRule(every_ms, size), self.clock)._commit
        self.dofn.setup()
        self.waiting, self.state = Bag(), Value()

    def gets(self, parcel: Parcel) -> list[int]:
        return list(self.dofn.process(addressed(parcel), self.waiting, self.state, self.clock))

    def ticks(self, seconds: float) -> list[int]:
        self.clock.seconds += seconds
        return list(self.dofn.process((0, TICK), self.waiting, self.state, self.clock))

    def published(self) -> list[str]:
        return sorted(path.name for path in self.output.glob("_commits/*.json"))


def test_by_time(tmp_path: Path) -> None:
    one = Committer(tmp_path, every_ms=10_000, size=1 << 30)
    (parcel,) = read_parcels([one.archive])
    assert one.ticks(100) == []
    assert one.gets(parcel) == []
    assert one.ticks(9.9) == []
    assert one.ticks(0.1) == [1]
    assert one.ticks(1) == []
    assert one.published() == []
    one.clock.checkpoint()
    one.ticks(1)
    one.clock.checkpoint()
    assert one.published() == ["00000001.json"]
    assert one.gets(parcel) == []
    assert one.ticks(10) == [2]


def test_by_size(tmp_path: Path) -> None:
    one = Committer(tmp_path, every_ms=10_000_000, size=2_000)
    (parcel,) = read_parcels([one.archive])
    made = [number for _ in range(20) for number in one.gets(parcel)]
    assert made == list(range(1, len(made) + 1))
    assert made


def test_never_of_nothing(tmp_path: Path) -> None:
    one = Committer(tmp_path, every_ms=1_000, size=1 << 30)
    assert one.gets(LaneParcel(0, open_sessions=3, given=0, late=0, too_late=0)) == []
    assert [number for _ in range(30) for number in one.ticks(60)] == []
    assert one.published() == []


def test_the_status_tells_how_it_stands(tmp_path: Path) -> None:
    one = Committer(tmp_path, every_ms=1_000, size=1 << 30)
    (parcel,) = read_parcels([one.archive])
    one.gets(parcel)
    one.gets(LaneParcel(0, open_sessions=3, given=5, late=2, too_late=1))
    one.gets(LaneParcel(1, open_sessions=4, given=1, late=0, too_late=0))
    one.gets(LaneParcel(0, open_sessions=1, given=2, late=0, too_late=0))
    one.ticks(10)
    status = read_status(str(one.output))
    assert status is not None
    told = (status.records, status.sessions, status.open_sessions, status.late, status.commits)
    assert told == (50, 8, 5, 2, 1)
    assert status.newest_ms is not None
    assert status.line(status.newest_ms + 90_000) == (
        "50 records read, 8 sessions given, 5 open, 2 late messages (1 beyond the allowance), "
        "1 commits, lag 90 s"
    )
