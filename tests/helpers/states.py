"""What a runner gives a stateful DoFn: a bag, a value, a timer."""

from __future__ import annotations

from apache_beam.utils.timestamp import Timestamp


class Bag:
    """A bag of elements."""

    def __init__(self) -> None:
        self.kept: list[bytes] = []

    def add(self, element: bytes) -> None:
        self.kept.append(element)

    def read(self) -> list[bytes]:
        return list(self.kept)

    def clear(self) -> None:
        self.kept = []


class Value:
    """One value, or none."""

    def __init__(self) -> None:
        self.kept: bytes | None = None

    def read(self) -> bytes | None:
        return self.kept

    def write(self, value: bytes) -> None:
        self.kept = value


class Timer:
    """A timer of event time; `moment` is when it is due, in milliseconds."""

    def __init__(self) -> None:
        self.moment: int | None = None

    def set(self, moment: Timestamp) -> None:
        assert moment.micros % 1000 == 0
        self.moment = moment.micros // 1000
