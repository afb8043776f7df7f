"""Whole commits: parcels gather, become files, and are published once they cannot be taken back.

A runner that restores a job from a checkpoint plays everything since again. So a commit is first prepared
(files under `_temporary`, its manifest in the state) and published only when a checkpoint that holds it is
complete. Beam says so by finalizing bundles. One finalization is not enough: a bundle that ends between a
checkpoint's snapshot and its completion is finalized with it and is not in it. The second one, of a bundle
that began after the first, is of a later checkpoint, and that one holds the prepared commit.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import apache_beam as beam
import msgspec
from apache_beam.coders import BytesCoder
from apache_beam.metrics import Metrics
from apache_beam.pvalue import PCollection
from apache_beam.transforms.userstate import BagStateSpec, ReadModifyWriteStateSpec
from apache_beam.utils.shared import Shared

from pipeline.streaming.log import Prepared, Preparing, makes_files, prepared
from pipeline.streaming.parcels import TICK, Keyed, opened
from pipeline.streaming.publisher import Publisher
from pipeline.streaming.status import Status, write_status
from schemas.parcels import LaneParcel, ReadParcel


class CommitRule(msgspec.Struct, frozen=True):
    """When a commit is made: so long after the first of its parcels, or when so much has gathered."""

    every_ms: int
    size: int


class _Gathering(msgspec.Struct):
    """What is known of the parcels that wait and of the commits that are prepared."""

    number: int = 1
    size: int = 0
    since_ms: int | None = None
    prepared: list[Prepared] = []
    status: Status = msgspec.field(default_factory=Status)


_STATUS_MS = 10_000
_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(_Gathering)


class CommitParcels(beam.PTransform):  # type: ignore[misc]
    """(0, parcel) … and ticks (0, b"") -> the number of each commit as it is prepared. Raises JobError."""

    def __init__(
        self, preparing: Preparing, rule: CommitRule, clock: Callable[[], float] = time.time
    ) -> None:
        super().__init__()
        self._commit = _CommitParcels(preparing, rule, clock)

    def expand(self, parcels: PCollection) -> PCollection:
        return parcels | Keyed() | "Gather and commit" >> beam.ParDo(self._commit).with_output_types(int)


class _CommitParcels(beam.DoFn):  # type: ignore[misc]
    WAITING = BagStateSpec("waiting", BytesCoder())
    GATHERING = ReadModifyWriteStateSpec("gathering", BytesCoder())

    def __init__(self, preparing: Preparing, rule: CommitRule, clock: Callable[[], float]) -> None:
        self._preparing = preparing
        self._rule = rule
        self._clock = clock
        self._commits = Metrics.counter("threadloom", "commits")
        self._open = Metrics.gauge("threadloom", "open_sessions")
        self._lag = Metrics.gauge("threadloom", "lag_seconds")
        self._shared = Shared()

    def setup(self) -> None:
        # A bundle that waits to be finalized keeps its DoFn: there are several in a process at a time.
        self._publisher: Publisher = self._shared.acquire(lambda: Publisher(self._preparing.output))

    def process(
        self,
        element: tuple[int, bytes],
        waiting: Any = beam.DoFn.StateParam(WAITING),
        state: Any = beam.DoFn.StateParam(GATHERING),
        bundle: Any = beam.DoFn.BundleFinalizerParam,
    ) -> Iterator[int]:
        _key, packed = element
        known = state.read()
        gathering = _Gathering() if known is None else _DECODER.decode(known)
        now_ms = int(self._clock() * 1000)
        if packed != TICK:
            waiting.add(packed)
            gathering.size += len(packed)
            parcel = opened(packed)
            if isinstance(parcel, ReadParcel | LaneParcel):
                gathering.status.add(parcel)
            if makes_files(parcel):
                gathering.since_ms = gathering.since_ms or now_ms
        if self._is_due(gathering, now_ms, is_tick=packed == TICK):
            yield self._prepare(gathering, waiting, now_ms)
        if packed == TICK:
            self._tick(gathering, now_ms, bundle)
        state.write(_ENCODER.encode(gathering))

    def _is_due(self, gathering: _Gathering, now_ms: int, *, is_tick: bool) -> bool:
        if gathering.since_ms is None:
            return False
        if gathering.size >= self._rule.size:
            return True
        return is_tick and now_ms - gathering.since_ms >= self._rule.every_ms

    def _prepare(self, gathering: _Gathering, waiting: Any, now_ms: int) -> int:
        number = gathering.number
        gathering.prepared.append(prepared(self._preparing, number, map(opened, waiting.read()), now_ms))
        waiting.clear()
        gathering.number += 1
        gathering.size, gathering.since_ms = 0, None
        gathering.status.commits += 1
        self._commits.inc()
        return number

    def _tick(self, gathering: _Gathering, now_ms: int, bundle: Any) -> None:
        published = self._publisher.published(gathering.prepared)
        del gathering.prepared[:published]
        self._open.set(gathering.status.open_sessions)
        self._lag.set(gathering.status.lag_seconds(now_ms))
        if now_ms - gathering.status.at_ms >= _STATUS_MS:
            gathering.status.at_ms = now_ms
            write_status(self._preparing.output, uuid.uuid4().hex, gathering.status)
        if gathering.prepared:
            bundle.register(self._publisher.when_finalized(gathering.prepared))
