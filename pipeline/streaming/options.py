"""The options of a job that never ends, checked where they are made."""

from __future__ import annotations

import re

import msgspec

from pipeline.options import MAX_SHARDS
from schemas.errors import UsageError
from transforms.sessions import SessionRule

LANES = 8
_UNITS = {"ms": 1, "s": 1000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}
# So long that nobody waits for it, and short enough for every clock.
_LONGEST_MS = 3650 * _UNITS["d"]
_DURATION = re.compile(r"(\d{1,15}(?:\.\d{1,15})?)\s*([a-z]*)", re.ASCII)
_SIZES = {"": 1, "b": 1, "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30}
# As Google names them.
_SUBSCRIPTION = re.compile(
    r"projects/[a-z][-a-z0-9:.]{4,61}[a-z0-9]/subscriptions/[a-zA-Z][-_.~+%a-zA-Z0-9]{2,254}"
)
# What gathers for a commit is held in memory when it is written.
_LARGEST_COMMIT = 4 << 30
_SIZE = re.compile(r"(\d{1,15})\s*([a-z]*)", re.ASCII)


class StreamOptions(msgspec.Struct, frozen=True):
    """Where messages come from, when a session is over, when a commit is made. Raises UsageError.

    Times are in milliseconds. Exactly one source is given.
    """

    watch: tuple[str, ...] = ()
    poll_ms: int = 10_000
    kafka_brokers: str | None = None
    kafka_topics: tuple[str, ...] = ()
    kafka_expansion_service: str | None = None
    pubsub_subscription: str | None = None
    gap_ms: int = 1_800_000
    lateness_ms: int = 0
    commit_ms: int = 600_000
    commit_bytes: int = 128 << 20
    lanes: int = LANES

    def __post_init__(self) -> None:
        if bool(self.kafka_brokers) != bool(self.kafka_topics):
            raise UsageError("--kafka_brokers and --kafka_topic go together: who to ask, and for what")
        sources = [bool(self.watch), bool(self.kafka_topics), bool(self.pubsub_subscription)]
        if sum(sources) != 1:
            given = "none" if not any(sources) else "several"
            raise UsageError(
                f"--streaming reads one source, and {given} is given: --watch, --kafka_topic or "
                "--pubsub_subscription"
            )
        if self.pubsub_subscription and not _SUBSCRIPTION.fullmatch(self.pubsub_subscription):
            raise UsageError(
                f"--pubsub_subscription {self.pubsub_subscription!r} is not of the form "
                "projects/PROJECT/subscriptions/NAME"
            )
        if any(not pattern for pattern in self.watch):
            raise UsageError("--watch '' is no pattern")
        for option, value, least in (
            ("session_gap", self.gap_ms, 1),
            ("allowed_lateness", self.lateness_ms, 0),
            ("commit_every", self.commit_ms, 100),
            ("poll_every", self.poll_ms, 100),
        ):
            if not least <= value <= _LONGEST_MS:
                raise UsageError(f"--{option} of {value} ms is not between {least} ms and 3650 days")
        if not 1 <= self.commit_bytes <= _LARGEST_COMMIT:
            raise UsageError(f"--commit_bytes {self.commit_bytes} is not between 1 and {_LARGEST_COMMIT}")
        if not 1 <= self.lanes <= MAX_SHARDS:
            raise UsageError(f"--num_shards {self.lanes} is not between 1 and {MAX_SHARDS}")

    @property
    def rule(self) -> SessionRule:
        return SessionRule(self.gap_ms, self.lateness_ms)

    @property
    def sources(self) -> tuple[str, ...]:
        """What is read, by name."""
        if self.watch:
            return self.watch
        if self.kafka_topics:
            return tuple(f"kafka://{topic}" for topic in self.kafka_topics)
        return (f"pubsub://{self.pubsub_subscription}",)

    @property
    def granule_ms(self) -> int:
        """How close together the moments are in which sessions are closed: what nobody sees is not done."""
        return max(1, min(self.gap_ms, self.commit_ms) // 4)


def milliseconds(option: str, value: str) -> int:
    """A duration: `90` or `90s`, `1.5h`, `30 min`, `2d`, `500ms`. Raises UsageError."""
    found = _DURATION.fullmatch(value.strip().lower())
    unit = _UNITS.get(found[2] or "s") if found else None
    if found is None or unit is None:
        raise UsageError(f"--{option} {value!r} is no duration: seconds, or a number with ms, s, m, h or d")
    exact = float(found[1]) * unit
    if 0 < exact < 1:
        raise UsageError(f"--{option} {value!r} is less than a millisecond")
    return round(exact)


def size_in_bytes(option: str, value: str) -> int:
    """A size: `1000000`, `128MiB`. Raises UsageError."""
    found = _SIZE.fullmatch(value.strip().lower())
    unit = _SIZES.get(found[2]) if found else None
    if found is None or unit is None:
        raise UsageError(f"--{option} {value!r} is no size: bytes, or a number with KiB, MiB or GiB")
    return int(found[1]) * unit
