"""Sessions: which of a thread's records belong together, which sessions are over, what is late.

Two neighbours in time belong to one session unless a gap lies between them; the order in which records
arrive does not matter to that. A session is over when a gap has passed since its last record. What was
given once is held while late records are allowed; with them it is given again, whole.

Everything here works on whole tables: the records of many threads, once for many sessions that end.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from schemas.arrow import KNOWN
from transforms.record_tables import value_ranks

Numbers = npt.NDArray[np.int64]
NEVER = -(1 << 62)


class SessionRule(msgspec.Struct, frozen=True):
    """When a session is over, and for how long after that late records join it. In milliseconds."""

    gap_ms: int
    lateness_ms: int

    def __post_init__(self) -> None:
        if self.gap_ms <= 0:
            raise ValueError(f"a session gap of {self.gap_ms} ms is not above 0")
        if self.lateness_ms < 0:
            raise ValueError(f"an allowed lateness of {self.lateness_ms} ms is below 0")


class Session(NamedTuple):
    """A session of a thread in one of its versions."""

    thread_id: str
    session: int
    version: int


class Closing(msgspec.Struct):
    """What a moment makes of a lane's records.

    `given`: the records of sessions that are over, numbered, to be written now. `withdrawn`: sessions that
    another one has swallowed. `open`: the records to keep waiting. `held`: those of given sessions that late
    ones may still join. `known`: what is now known of the threads that were given something. `late`: new
    records that came when a session of theirs alone was over; `too_late`: those of them that came behind the
    allowance, too, and make up a session of their own. `due_ms`: when the next session will be over, None
    where none is open.
    """

    given: pa.Table
    withdrawn: list[Session]
    open: pa.Table
    held: pa.Table
    known: pa.Table
    late: int
    too_late: int
    open_sessions: int
    due_ms: int | None


def latest_known(known: pa.Table) -> pa.Table:
    """One row a thread, of all that was ever noted of it: both numbers only grow."""
    latest = known.group_by("thread_id").aggregate([("sessions", "max"), ("until_ms", "max")])
    columns = [latest["thread_id"], latest["sessions_max"], latest["until_ms_max"]]
    return pa.Table.from_arrays(columns, schema=KNOWN)


class LateThreads(NamedTuple):
    """Threads with a record from before the end of a session that was given already, and when the first
    of these records arrived."""

    ids: list[str]
    first_arrived_ms: int


def late_threads(waiting: pa.Table, known: pa.Table) -> LateThreads:
    """Which of the threads of the records that wait have late ones.

    `known` has one row a thread. Whether that session is still held is for `still_held` to say.
    """
    new = waiting.filter(pc.equal(waiting["session"], 0))
    if not new.num_rows or not known.num_rows:
        return LateThreads([], 0)
    at = pc.index_in(new["thread_id"], known["thread_id"].combine_chunks())
    until = pc.fill_null(known["until_ms"].combine_chunks().take(at.combine_chunks()), NEVER)
    late = new.filter(pc.less(new["event_ms"], until))
    if not late.num_rows:
        return LateThreads([], 0)
    return LateThreads(late["thread_id"].unique().to_pylist(), pc.min(late["arrived_ms"]).as_py())


def still_held(held: pa.Table, rule: SessionRule, moment_ms: int) -> pa.Table:
    """The records of sessions that one that arrives at that moment could still join."""
    if not held.num_rows:
        return held
    ranks = value_ranks(held["thread_id"])
    session, event = _numbers(held["session"]), _numbers(held["event_ms"])
    order = np.lexsort((session, ranks))
    r, s = ranks[order], session[order]
    begins = np.ones(len(order), bool)
    begins[1:] = (r[1:] != r[:-1]) | (s[1:] != s[:-1])
    last = np.maximum.reduceat(event[order], np.flatnonzero(begins))
    keep = last + rule.gap_ms + rule.lateness_ms > moment_ms
    return held.take(pa.array(np.sort(order[keep[np.cumsum(begins) - 1]])))


def closing(records: pa.Table, known: pa.Table, rule: SessionRule, now_ms: int) -> Closing:
    """What a moment makes of the records that wait, and of those held that late ones may join.

    `records` is a table of `STREAMED`: of the records that wait, and of every session that is held of the
    threads with late ones. `known` has one row a thread. `now_ms` is how far event time has come.
    """
    runs = _runs(records, rule.gap_ms)
    over = runs.last_ms + rule.gap_ms <= now_ms
    given = over & runs.has_new
    numbers, versions, sessions, threads = _numbering(runs, given, records, known)
    of_record = runs.of_record
    is_given = given[of_record]
    table = records.take(pa.array(runs.order))
    named = _with_numbers(table, numbers[of_record], versions[of_record], is_given)
    allowed = runs.last_ms + rule.gap_ms + rule.lateness_ms > now_ms
    held = over & (allowed | ~runs.has_new)
    is_open = ~over
    alone_until = runs.event_ms + rule.gap_ms
    is_late = runs.is_new & is_given & (alone_until <= runs.arrived_ms)
    is_too_late = is_late & ~runs.had_session[of_record] & (alone_until + rule.lateness_ms <= runs.arrived_ms)
    return Closing(
        given=named.filter(pa.array(is_given)),
        withdrawn=_withdrawn(runs, given, numbers, versions, table),
        open=named.filter(pa.array(is_open[of_record])),
        held=named.filter(pa.array(held[of_record])),
        known=_now_known(runs, given, threads, sessions, rule.gap_ms),
        late=int(is_late.sum()),
        too_late=int(is_too_late.sum()),
        open_sessions=int(is_open.sum()),
        due_ms=int(runs.last_ms[is_open].min()) + rule.gap_ms if is_open.any() else None,
    )


class _Runs(NamedTuple):
    """Records by thread and time (`order`), cut where a gap lies; arrays by record or by run."""

    order: Numbers
    event_ms: Numbers
    arrived_ms: Numbers
    of_record: Numbers
    session: Numbers
    is_new: npt.NDArray[np.bool_]
    # by run
    first: Numbers
    thread: Numbers
    last_ms: Numbers
    version: Numbers
    has_new: npt.NDArray[np.bool_]
    had_session: npt.NDArray[np.bool_]


def _runs(records: pa.Table, gap_ms: int) -> _Runs:
    ranks, event = value_ranks(records["thread_id"]), _numbers(records["event_ms"])
    order = np.lexsort((event, ranks))
    r, e = ranks[order], event[order]
    session, version = _numbers(records["session"])[order], _numbers(records["version"])[order]
    begins = np.ones(len(order), bool)
    begins[1:] = (r[1:] != r[:-1]) | (e[1:] - e[:-1] >= gap_ms)
    first = np.flatnonzero(begins)
    last = np.append(first[1:], len(order)) - 1
    is_new = session == 0
    return _Runs(
        order,
        e,
        _numbers(records["arrived_ms"])[order],
        np.cumsum(begins) - 1,
        session,
        is_new,
        first,
        r[first] if len(first) else first,
        e[last] if len(first) else first,
        _by_run(np.maximum, version, first),
        _by_run(np.logical_or, is_new, first),
        _by_run(np.logical_or, ~is_new, first),
    )


def _by_run(reduce: np.ufunc, values: npt.NDArray[Any], first: Numbers) -> npt.NDArray[Any]:
    return np.asarray(reduce.reduceat(values, first)) if len(first) else values[:0]


def _numbering(
    runs: _Runs, given: npt.NDArray[np.bool_], records: pa.Table, known: pa.Table
) -> tuple[Numbers, Numbers, Numbers, list[str]]:
    """Number and version of each run as it is given; sessions so far by thread, and the threads' ids."""
    encoded = records["thread_id"].combine_chunks().dictionary_encode()
    threads = _in_rank_order(encoded.dictionary)
    before = pc.index_in(pa.array(threads, pa.string()), known["thread_id"].combine_chunks())
    sessions = _numbers(pc.fill_null(known["sessions"].combine_chunks().take(before), 0)).copy()
    oldest = _by_run(np.minimum, np.where(runs.is_new, 1 << 30, runs.session), runs.first)
    numbers = np.where(runs.had_session, oldest, 0)
    fresh = np.flatnonzero(given & ~runs.had_session)
    if len(fresh):
        of_thread = runs.thread[fresh]
        begins = np.ones(len(fresh), bool)
        begins[1:] = of_thread[1:] != of_thread[:-1]
        start = np.flatnonzero(begins)
        nth = np.arange(len(fresh)) - start[np.cumsum(begins) - 1]
        numbers[fresh] = sessions[of_thread] + nth + 1
        np.add.at(sessions, of_thread, 1)
    return numbers, np.asarray(runs.version + 1, np.int64), sessions, threads


def _in_rank_order(dictionary: pa.Array) -> list[str]:
    found: list[str] = dictionary.take(pc.sort_indices(dictionary)).to_pylist()
    return found


def _with_numbers(
    table: pa.Table, numbers: Numbers, versions: Numbers, chosen: npt.NDArray[np.bool_]
) -> pa.Table:
    for name, values in (("session", numbers), ("version", versions)):
        at = table.schema.get_field_index(name)
        value = np.where(chosen, values, _numbers(table[name])).astype(np.int32)
        table = table.set_column(at, table.schema.field(at), pa.array(value))
    return table


def _withdrawn(
    runs: _Runs,
    given: npt.NDArray[np.bool_],
    numbers: Numbers,
    versions: Numbers,
    table: pa.Table,
) -> list[Session]:
    """The sessions that ended up in a run that goes by another number."""
    other = ~runs.is_new & given[runs.of_record] & (runs.session != numbers[runs.of_record])
    at = np.flatnonzero(other)
    ids = table["thread_id"].take(pa.array(at)).to_pylist()
    run = runs.of_record[at]
    gone = {
        Session(thread_id, session, version)
        for thread_id, session, version in zip(
            ids, runs.session[at].tolist(), versions[run].tolist(), strict=True
        )
    }
    return sorted(gone)


def _now_known(
    runs: _Runs, given: npt.NDArray[np.bool_], threads: list[str], sessions: Numbers, gap_ms: int
) -> pa.Table:
    until = np.full(len(threads), NEVER, np.int64)
    np.maximum.at(until, runs.thread[given], runs.last_ms[given] + gap_ms)
    at = np.flatnonzero(until > NEVER)
    columns = [
        pa.array([threads[one] for one in at.tolist()], pa.string()),
        pa.array(sessions[at].astype(np.int32)),
        pa.array(until[at]),
    ]
    return pa.Table.from_arrays(columns, schema=KNOWN)


def _numbers(column: pa.ChunkedArray | pa.Array) -> Numbers:
    values = (
        column.to_numpy() if isinstance(column, pa.ChunkedArray) else column.to_numpy(zero_copy_only=False)
    )
    return np.asarray(values, np.int64)
