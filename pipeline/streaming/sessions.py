"""Records into sessions: the streaming way, one lane of threads a key.

A lane keeps its records packed, in few large elements, and looks at them only when a session of it is over
in event time: the state of a thread of its own would cost a call to the runner for every message.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import apache_beam as beam
import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from apache_beam.coders import BytesCoder
from apache_beam.metrics import Metrics
from apache_beam.pvalue import DoOutputsTuple, PCollection, TaggedOutput
from apache_beam.transforms.timeutil import TimeDomain
from apache_beam.transforms.userstate import BagStateSpec, ReadModifyWriteStateSpec, TimerSpec, on_timer
from apache_beam.utils.timestamp import Timestamp

from pipeline.streaming.parcels import Keyed, addressed
from schemas.arrow import KNOWN, STREAMED
from schemas.parcels import LaneParcel
from transforms.record_tables import packed_table, unpacked_tables
from transforms.sessions import (
    NEVER,
    Closing,
    Session,
    SessionRule,
    closing,
    late_threads,
    latest_known,
    still_held,
)
from transforms.streamed import arrived

LANE_PARCELS = "lane"


class Given(msgspec.Struct, frozen=True):
    """Sessions of a lane that are over: their records, whole, and the sessions that went into others."""

    records: pa.Table
    withdrawn: list[Session]


class _Held(msgspec.Struct, array_like=True):
    """One element of the held records: how large it is, and when the last session in it is too old."""

    size: int
    until_ms: int


class _Lane(msgspec.Struct, array_like=True):
    """What a lane knows without looking at its records."""

    come_to_ms: int = NEVER
    due_ms: int | None = None
    held: list[_Held] = []
    known_rows: int = 0
    known_threads: int = 0


_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(_Lane)


class GroupIntoSessions(beam.PTransform):  # type: ignore[misc]
    """(lane, packed records) … -> Given, whenever sessions are over; LaneParcel on a tag of its own"""

    def __init__(self, rule: SessionRule, granule_ms: int, *, by_clock: bool = False) -> None:
        super().__init__()
        close = _CloseByClock if by_clock else _CloseByWatermark
        self._close: _CloseSessions = close(rule, granule_ms)

    def expand(self, records: PCollection) -> DoOutputsTuple:
        return (
            records
            | Keyed()
            | "Close sessions" >> beam.ParDo(self._close).with_outputs(LANE_PARCELS, main="given")
        )


class _CloseSessions(beam.DoFn):  # type: ignore[misc]
    """What a lane does when records arrive, and when its moment has come; whose moment, others say."""

    WAITING = BagStateSpec("waiting", BytesCoder())
    HELD = BagStateSpec("held", BytesCoder())
    KNOWN = BagStateSpec("known", BytesCoder())
    LANE = ReadModifyWriteStateSpec("lane", BytesCoder())

    def __init__(self, rule: SessionRule, granule_ms: int) -> None:
        self._rule = rule
        self._granule_ms = granule_ms
        self._late = Metrics.counter("threadloom", "late_messages")
        self._too_late = Metrics.counter("threadloom", "messages_beyond_the_allowance")
        self._given = Metrics.counter("threadloom", "sessions_given")

    def _arrive(self, element: tuple[int, bytes], time: Any, waiting: Any, lane_state: Any, due: Any) -> None:
        _key, packed = element
        lane = _lane(lane_state)
        # Time has come as far as the lane knows, or farther: sources that have no watermark but the clock
        # stamp an element with when it came.
        now_ms = max(lane.come_to_ms, time.micros // 1000)
        records = arrived(unpacked_tables([packed], STREAMED), now_ms)
        waiting.add(packed_table(records).to_pybytes())
        over = max(int(pc.min(records["event_ms"]).as_py()) + self._rule.gap_ms, time.micros // 1000)
        if lane.due_ms is None or over < lane.due_ms:
            lane.due_ms = over
            lane_state.write(_ENCODER.encode(lane))
        due.set(self._moment(lane))

    def _close(
        self, key: int, moment_ms: int, waiting: Any, held: Any, known: Any, lane_state: Any, due: Any
    ) -> Iterator[Any]:
        lane = _lane(lane_state)
        now_ms = max(moment_ms, lane.come_to_ms)
        if lane.due_ms is not None and lane.due_ms <= now_ms:
            done = self._closed(lane, now_ms, waiting, held, known)
            if done.given.num_rows or done.withdrawn:
                yield Given(done.given, done.withdrawn)
            yield TaggedOutput(LANE_PARCELS, addressed(self._counted(key, done)))
        elif lane.due_ms is None:
            self._drop_expired(lane, now_ms, held)
        lane.come_to_ms = now_ms
        lane_state.write(_ENCODER.encode(lane))
        if (moment := self._moment(lane)) is not None:
            due.set(moment)

    def _closed(self, lane: _Lane, now_ms: int, waiting: Any, held: Any, known: Any) -> Closing:
        """Closes what is over at that moment, and writes back what waits and what is held."""
        records = unpacked_tables(waiting.read(), STREAMED)
        known_now = latest_known(unpacked_tables(known.read(), KNOWN))
        late = late_threads(records, known_now)
        if late.ids and lane.held:
            kept = still_held(unpacked_tables(held.read(), STREAMED), self._rule, late.first_arrived_ms)
            joined = pc.is_in(kept["thread_id"], pa.array(late.ids, pa.string()))
            records = pa.concat_tables([records, kept.filter(joined)])
            self._hold_only(lane, held, kept.filter(pc.invert(joined)))
        done = closing(records, known_now, self._rule, now_ms)
        waiting.clear()
        if done.open.num_rows:
            waiting.add(packed_table(done.open).to_pybytes())
        self._hold(lane, held, done.held)
        self._drop_expired(lane, now_ms, held)
        self._note(lane, known, known_now, done.known)
        lane.due_ms = done.due_ms
        return done

    def _hold_only(self, lane: _Lane, held: Any, records: pa.Table) -> None:
        held.clear()
        lane.held = []
        self._hold(lane, held, records)

    def _hold(self, lane: _Lane, held: Any, records: pa.Table) -> None:
        if not records.num_rows:
            return
        packed = packed_table(records).to_pybytes()
        last = int(pc.max(records["event_ms"]).as_py())
        held.add(packed)
        lane.held.append(_Held(len(packed), last + self._rule.gap_ms + self._rule.lateness_ms))

    def _drop_expired(self, lane: _Lane, now_ms: int, held: Any) -> None:
        """Rewrites what is held when most of it is too old to be of use.

        Not while there are records that nobody has looked at: they may have come in time to join it.
        """
        expired = sum(one.size for one in lane.held if one.until_ms <= now_ms)
        if not expired or 2 * expired < sum(one.size for one in lane.held):
            return
        if all(one.until_ms <= now_ms for one in lane.held):
            held.clear()
            lane.held = []
            return
        kept = still_held(unpacked_tables(held.read(), STREAMED), self._rule, now_ms)
        self._hold_only(lane, held, kept)

    def _note(self, lane: _Lane, known: Any, before: pa.Table, more: pa.Table) -> None:
        """Notes what is new of some threads; everything anew where most notes are out of date."""
        if not more.num_rows:
            return
        lane.known_threads = max(lane.known_threads, before.num_rows)
        lane.known_rows += more.num_rows
        if lane.known_rows > 2 * lane.known_threads + 64:
            everything = latest_known(pa.concat_tables([before, more]))
            known.clear()
            known.add(packed_table(everything).to_pybytes())
            lane.known_rows = lane.known_threads = everything.num_rows
        else:
            known.add(packed_table(more).to_pybytes())

    def _moment(self, lane: _Lane) -> Timestamp | None:
        """When to look again: the next session's end or the next expiry, but not much sooner than a granule.

        Messages that come in a crowd would otherwise make as many moments as they have sessions.
        """
        moments = [one.until_ms for one in lane.held if one.until_ms > lane.come_to_ms]
        if lane.due_ms is not None:
            moments.append(lane.due_ms)
        if not moments:
            return None
        granules = -(-min(moments) // self._granule_ms)
        least = lane.come_to_ms // self._granule_ms + 1
        return Timestamp(micros=max(granules, least) * self._granule_ms * 1000)

    def _counted(self, lane: int, done: Closing) -> LaneParcel:
        given = _sessions_in(done.given)
        self._late.inc(done.late)
        self._too_late.inc(done.too_late)
        self._given.inc(given)
        return LaneParcel(lane, done.open_sessions, given, done.late, done.too_late)


class _CloseByWatermark(_CloseSessions):
    """Moments of event time, as the runner's watermark tells it."""

    DUE = TimerSpec("due", TimeDomain.WATERMARK)

    def process(
        self,
        element: tuple[int, bytes],
        time: Any = beam.DoFn.TimestampParam,
        waiting: Any = beam.DoFn.StateParam(_CloseSessions.WAITING),
        lane: Any = beam.DoFn.StateParam(_CloseSessions.LANE),
        due: Any = beam.DoFn.TimerParam(DUE),
    ) -> None:
        self._arrive(element, time, waiting, lane, due)

    @on_timer(DUE)  # type: ignore[untyped-decorator]
    def close(
        self,
        key: Any = beam.DoFn.KeyParam,
        time: Any = beam.DoFn.TimestampParam,
        waiting: Any = beam.DoFn.StateParam(_CloseSessions.WAITING),
        held: Any = beam.DoFn.StateParam(_CloseSessions.HELD),
        known: Any = beam.DoFn.StateParam(_CloseSessions.KNOWN),
        lane: Any = beam.DoFn.StateParam(_CloseSessions.LANE),
        due: Any = beam.DoFn.TimerParam(DUE),
    ) -> Iterator[Any]:
        yield from self._close(key, time.micros // 1000, waiting, held, known, lane, due)


class _CloseByClock(_CloseSessions):
    """The same by the clock, where the runner's source has no watermark."""

    DUE = TimerSpec("due", TimeDomain.REAL_TIME)

    def process(
        self,
        element: tuple[int, bytes],
        time: Any = beam.DoFn.TimestampParam,
        waiting: Any = beam.DoFn.StateParam(_CloseSessions.WAITING),
        lane: Any = beam.DoFn.StateParam(_CloseSessions.LANE),
        due: Any = beam.DoFn.TimerParam(DUE),
    ) -> None:
        self._arrive(element, time, waiting, lane, due)

    @on_timer(DUE)  # type: ignore[untyped-decorator]
    def close(
        self,
        key: Any = beam.DoFn.KeyParam,
        waiting: Any = beam.DoFn.StateParam(_CloseSessions.WAITING),
        held: Any = beam.DoFn.StateParam(_CloseSessions.HELD),
        known: Any = beam.DoFn.StateParam(_CloseSessions.KNOWN),
        lane: Any = beam.DoFn.StateParam(_CloseSessions.LANE),
        due: Any = beam.DoFn.TimerParam(DUE),
    ) -> Iterator[Any]:
        yield from self._close(key, int(time.time() * 1000), waiting, held, known, lane, due)


def _sessions_in(given: pa.Table) -> int:
    return int(given.group_by(["thread_id", "session"]).aggregate([]).num_rows)


def _lane(state: Any) -> _Lane:
    packed = state.read()
    return _Lane() if packed is None else _DECODER.decode(packed)
