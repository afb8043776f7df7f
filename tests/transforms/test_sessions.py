"""Sessions as plain tables: cut at gaps, given once over, given again with what is late."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pytest

from schemas.arrow import KNOWN, RECORDS, STREAMED
from schemas.records import ChatMessage, Kind, Place, Record
from transforms.record_tables import records_table
from transforms.sessions import (
    Closing,
    Session,
    SessionRule,
    closing,
    late_threads,
    latest_known,
    still_held,
)
from transforms.streamed import arrived, decoded_values, numbered, source_numbers, streamed

RULE = SessionRule(gap_ms=10, lateness_ms=30)


def table(*moments: tuple[str, int], arrived_ms: int = 0) -> pa.Table:
    """Records by thread and time of sending."""
    records = [
        Record(thread, Kind.CHAT, Place(0, at), ChatMessage(None, "hi", False, None, ms), None, ms)
        for at, (thread, ms) in enumerate(moments)
    ]
    return arrived(streamed(records_table(records), "a.jsonl", 0), arrived_ms)


def given(done: Closing) -> list[tuple[str, int, int, int]]:
    """(thread, session, version, time), sorted"""
    columns = ("thread_id", "session", "version", "event_ms")
    return sorted(zip(*(done.given[name].to_pylist() for name in columns), strict=True))


@pytest.mark.parametrize(
    ("moments", "now", "expected", "open_sessions", "due"),
    [
        ([], 100, [], 0, None),
        ([("a", 0)], 9, [], 1, 10),
        ([("a", 0)], 10, [("a", 1, 1, 0)], 0, None),
        ([("a", 9), ("a", 0)], 18, [], 1, 19),
        ([("a", 0), ("a", 10)], 20, [("a", 1, 1, 0), ("a", 2, 1, 10)], 0, None),
        ([("a", 0), ("a", 10)], 19, [("a", 1, 1, 0)], 1, 20),
        ([("b", 0), ("a", 5)], 11, [("b", 1, 1, 0)], 1, 15),
        ([("a", 5), ("a", 5)], 15, [("a", 1, 1, 5), ("a", 1, 1, 5)], 0, None),
    ],
)
def test_what_is_over(
    moments: Sequence[tuple[str, int]],
    now: int,
    expected: list[tuple[str, int, int, int]],
    open_sessions: int,
    due: int | None,
) -> None:
    records = table(*moments) if moments else STREAMED.empty_table()
    done = closing(records, KNOWN.empty_table(), RULE, now)
    assert given(done) == expected
    assert (done.open_sessions, done.due_ms) == (open_sessions, due)
    assert done.given.num_rows + done.open.num_rows == len(moments)


def test_numbers_go_on_where_the_thread_left_off() -> None:
    known = pa.Table.from_pylist([{"thread_id": "a", "sessions": 7, "until_ms": 0}], schema=KNOWN)
    done = closing(table(("a", 100), ("a", 200)), known, RULE, 300)
    assert [one[1] for one in given(done)] == [8, 9]
    assert latest_known(pa.concat_tables([known, done.known])).to_pylist() == [
        {"thread_id": "a", "sessions": 9, "until_ms": 210}
    ]


def test_a_late_record_that_bridges_two_sessions_withdraws_the_second() -> None:
    first = closing(table(("a", 0), ("a", 12)), KNOWN.empty_table(), RULE, 22)
    records = pa.concat_tables([table(("a", 6), arrived_ms=25), first.held])
    again = closing(records, latest_known(first.known), RULE, 30)
    assert given(again) == [("a", 1, 2, 0), ("a", 1, 2, 6), ("a", 1, 2, 12)]
    assert again.withdrawn == [Session("a", 2, 2)]
    assert (again.late, again.too_late) == (1, 0)


def test_held_sessions_that_nothing_joins_stay_as_they_are() -> None:
    first = closing(table(("a", 0), ("a", 50)), KNOWN.empty_table(), RULE, 60)
    records = pa.concat_tables([table(("a", 55), arrived_ms=60), first.held])
    again = closing(records, latest_known(first.known), RULE, 65)
    assert given(again) == [("a", 2, 2, 50), ("a", 2, 2, 55)]
    # The first session is too old by then to be joined.
    assert first.held["event_ms"].to_pylist() == [50]


def test_which_threads_have_late_records() -> None:
    known = pa.Table.from_pylist(
        [
            {"thread_id": "a", "sessions": 1, "until_ms": 20},
            {"thread_id": "b", "sessions": 1, "until_ms": 20},
        ],
        schema=KNOWN,
    )
    waiting = pa.concat_tables(
        [table(("a", 19), arrived_ms=40), table(("b", 20), ("c", 0)), table(("a", 3), arrived_ms=35)]
    )
    assert late_threads(waiting, known) == (["a"], 35)
    assert late_threads(table(("c", 0)), known).ids == []


def test_what_is_still_held_is_judged_session_by_session() -> None:
    done = closing(table(("a", 0), ("a", 20), ("b", 5)), KNOWN.empty_table(), RULE, 30)
    assert done.held.num_rows == 3
    assert sorted(still_held(done.held, RULE, 44)["event_ms"].to_pylist()) == [5, 20]
    assert sorted(still_held(done.held, RULE, 45)["event_ms"].to_pylist()) == [20]
    assert still_held(done.held, RULE, 60).num_rows == 0


@pytest.mark.parametrize(("gap", "lateness"), [(0, 0), (-1, 0), (1, -1)])
def test_rules_that_cannot_be(gap: int, lateness: int) -> None:
    with pytest.raises(ValueError, match="ms"):
        SessionRule(gap, lateness)


def test_records_come_back_as_batch_has_them() -> None:
    records = records_table(
        [
            Record("a", Kind.CHAT, Place(0, 5), ChatMessage("m", "hi", True, "sam", 7), "m", 7),
            Record("a", Kind.CHAT, Place(0, 9), ChatMessage("n", "no date", True), "n"),
        ]
    )
    numbers = source_numbers(["b.jsonl", "a.jsonl"])
    assert numbers == {"a.jsonl": 0, "b.jsonl": 1}
    there = streamed(records, "b.jsonl", 42)
    assert there["event_ms"].to_pylist() == [7, 42]
    back = numbered(there, numbers)
    assert back["file"].to_pylist() == [1, 1]
    assert back.drop_columns("file").equals(records.drop_columns("file"))
    assert back.schema == RECORDS


def test_values_of_a_broker() -> None:
    whole = b'{"_type": "chat:Message", "id": "m", "threadId": "t", "text": "hi", "author": {"isMe": false}, '
    whole += b'"metadata": {"dateSent": 5}, "attachments": []}'
    values = [whole, b"", b" \n", b"{", whole.replace(b", ", b",\n"), b"\xef\xbb\xbf" + whole, b"[]"]
    block = decoded_values(values, [3, 4, 5, 10, 11, 12, 900], "auto")
    assert sorted(block.table["at"].to_pylist()) == [3, 11, 12]
    assert sorted((one.place.at, one.reason.value) for one in block.rejects) == [
        (10, "not_json"),
        (900, "not_an_object"),
    ]
