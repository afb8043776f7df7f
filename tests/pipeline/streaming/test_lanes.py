"""A lane through thousands of arrivals: whatever comes when, each record ends in its one session."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from apache_beam.utils.timestamp import Timestamp
from hypothesis import given, settings
from hypothesis import strategies as st
from states import Bag, Timer, Value

from pipeline.streaming.parcels import opened
from pipeline.streaming.sessions import Given, GroupIntoSessions
from schemas.records import ChatMessage, Kind, Place, Record
from transforms.record_tables import packed_table, records_table
from transforms.sessions import SessionRule
from transforms.streamed import streamed


class Lane:
    """One lane and its clock; what it gives is kept by (thread, session)."""

    def __init__(self, rule: SessionRule, granule_ms: int) -> None:
        self.dofn = GroupIntoSessions(rule, granule_ms)._close
        self.waiting, self.held, self.known, self.state, self.timer = Bag(), Bag(), Bag(), Value(), Timer()
        self.latest: dict[tuple[str, int], tuple[int, set[int]]] = defaultdict(lambda: (0, set()))
        self.late = self.too_late = self.arrived = self.firings = 0

    def arrive(self, thread: str, sent_ms: int, stamp_ms: int) -> None:
        message = ChatMessage(None, "hi", False, None, sent_ms)
        record = Record(thread, Kind.CHAT, Place(0, self.arrived), message, None, sent_ms)
        packed = packed_table(streamed(records_table([record]), "a", 0)).to_pybytes()
        self.arrived += 1
        self.dofn.process(
            (0, packed), Timestamp(micros=stamp_ms * 1000), self.waiting, self.state, self.timer
        )

    def come_to(self, watermark_ms: int) -> None:
        """Fires the timer as often as it is due."""
        while self.timer.moment is not None and self.timer.moment <= watermark_ms:
            moment, self.timer.moment = self.timer.moment, None
            self.firings += 1
            states = (self.waiting, self.held, self.known, self.state, self.timer)
            for output in self.dofn.close(0, Timestamp(micros=moment * 1000), *states):
                if isinstance(output, Given):
                    self._keep(output)
                else:
                    parcel: Any = opened(output.value[1])
                    self.late += parcel.late
                    self.too_late += parcel.too_late

    def _keep(self, output: Given) -> None:
        rows: dict[tuple[str, int, int], set[int]] = defaultdict(set)
        columns = (output.records[name].to_pylist() for name in ("thread_id", "session", "version", "at"))
        for thread, session, version, at in zip(*columns, strict=True):
            assert at not in rows[thread, session, version]
            rows[thread, session, version].add(at)
        for gone in output.withdrawn:
            assert not rows[gone]
        for (thread, session, version), members in rows.items():
            assert version > self.latest[thread, session][0]
            self.latest[thread, session] = version, members

    def sessions(self) -> list[list[int]]:
        return sorted(sorted(members) for _version, members in self.latest.values() if members)


def expected_sessions(sent: list[tuple[str, int]], gap_ms: int) -> list[list[int]]:
    """By hand: each thread's records by time, cut where a gap lies."""
    sessions: list[list[int]] = []
    for thread in {thread for thread, _ms in sent}:
        last = None
        for ms, at in sorted((ms, at) for at, (one, ms) in enumerate(sent) if one == thread):
            if last is None or ms - last >= gap_ms:
                sessions.append([])
            sessions[-1].append(at)
            last = ms
    return sorted(sorted(one) for one in sessions)


ARRIVALS = st.lists(
    st.tuples(
        st.sampled_from("abc"),
        st.integers(0, 40),  # how much event time has gone on since the last one
        st.integers(0, 60),  # how much behind it this one was sent
    ),
    min_size=1,
    max_size=40,
)


@settings(max_examples=300, deadline=None)
@given(ARRIVALS, st.integers(1, 30), st.integers(1, 20))
def test_what_comes_within_the_allowance_ends_where_it_belongs(
    arrivals: list[tuple[str, int, int]], gap_ms: int, granule_ms: int
) -> None:
    lane = Lane(SessionRule(gap_ms, lateness_ms=60), granule_ms)
    sent: list[tuple[str, int]] = []
    now = 1_000
    for thread, later, behind in arrivals:
        now += later
        lane.come_to(now)
        sent.append((thread, now - behind))
        lane.arrive(thread, now - behind, now - behind)
    lane.come_to(1 << 40)
    assert lane.sessions() == expected_sessions(sent, gap_ms)
    assert lane.too_late == 0
    assert lane.late <= sum(behind >= gap_ms for _thread, _later, behind in arrivals)
    assert not lane.waiting.kept
    assert not lane.held.kept


@settings(max_examples=300, deadline=None)
@given(ARRIVALS, st.integers(1, 30), st.integers(1, 20), st.integers(0, 20))
def test_whatever_comes_nothing_is_lost_and_nothing_is_twice(
    arrivals: list[tuple[str, int, int]], gap_ms: int, granule_ms: int, lateness_ms: int
) -> None:
    lane = Lane(SessionRule(gap_ms, lateness_ms), granule_ms)
    now = 1_000
    for thread, later, behind in arrivals:
        now += later
        lane.come_to(now)
        lane.arrive(thread, now - behind, now)
    lane.come_to(1 << 40)
    members = [at for session in lane.sessions() for at in session]
    assert sorted(members) == list(range(len(arrivals)))
    assert lane.too_late <= lane.late <= len(arrivals)
    assert not lane.held.kept


def test_on_time_records_are_not_late() -> None:
    lane = Lane(SessionRule(100, 0), 25)
    for moment in range(0, 1001, 50):
        lane.come_to(moment)
        lane.arrive("a", moment, moment)
        lane.arrive(f"b{moment}", moment, moment)
    lane.come_to(1 << 40)
    assert (lane.late, lane.too_late) == (0, 0)


def test_a_record_in_time_joins_its_session_though_that_expires_meanwhile() -> None:
    lane = Lane(SessionRule(100, 50), 1)
    lane.arrive("a", 0, 0)
    lane.come_to(100)
    lane.arrive("a", 80, 100)
    lane.come_to(1 << 40)
    assert lane.sessions() == [[0, 1]]


def test_what_expires_makes_no_moments_of_its_own() -> None:
    lane = Lane(SessionRule(1_000, 3_600_000), 250)
    for moment in range(0, 600_000, 20_000):
        lane.come_to(moment)
        lane.arrive(f"t{moment}", moment, moment)
    lane.come_to(1 << 40)
    assert lane.firings <= 3 * 30


def test_what_is_known_is_rewritten_and_stays_right() -> None:
    lane = Lane(SessionRule(10, 0), 1)
    for round_ in range(300):
        lane.come_to(round_ * 100)
        lane.arrive("a", round_ * 100, round_ * 100)
    lane.come_to(1 << 40)
    assert sorted(lane.latest) == [("a", number) for number in range(1, 301)]
    assert len(lane.known.kept) < 100
