"""The column path is an optimisation: value by value it gives what the record path gives."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from threads import target

from schemas.formats import Format
from schemas.records import Place, Record
from transforms.convert import Hooks, Target
from transforms.decode import record_of_line
from transforms.decoded_lines import decoded_lines
from transforms.lines import Lines
from transforms.record_tables import in_total_order, records_of, records_table
from transforms.shards import ShardOutput, _thread_by_thread, converted_shard

DATES = st.one_of(
    st.sampled_from(
        [
            "2024-01-15T10:00:00.000Z",
            "2024-01-15T10:00:01.250Z",
            "1969-12-31T23:59:59.999Z",
            "0000-01-01T00:00:00.000Z",
            "2024-02-30T00:00:00.000Z",
            "2024-01-15T24:00:00.000Z",
            "2024-01-15T10:00:00+02:00",
            "2024-01-15T10:00:00.123456Z",
            "2024-01-15",
            "no date",
            "",
        ]
    ),
    st.none(),
    st.integers(-(10**17), 10**17),
    st.floats(allow_nan=False, allow_infinity=False, width=32),
    st.booleans(),
)
TEXTS = st.one_of(
    st.sampled_from(["", " ", "\ufeff", "\u0085", "hello", "a\nb", "😀", "x" * 40]), st.text(max_size=20)
)
LINKS = st.lists(
    st.fixed_dictionaries(
        {"url": TEXTS}, optional={"title": st.none() | TEXTS, "description": TEXTS, "siteName": TEXTS}
    ),
    max_size=2,
)
ATTACHMENTS = st.lists(
    st.fixed_dictionaries(
        {"type": st.sampled_from(["image", "file", "video", "audio", "sticker"])},
        optional={
            "mimeType": st.sampled_from(["text/plain", "image/png", "application/pdf", ""]),
            "name": st.none() | TEXTS,
            "data": st.sampled_from(["", "aGk=", "not base64", "aGk"]),
            "url": st.just("https://e.test/x"),
        },
    ),
    max_size=2,
)
CHAT = st.fixed_dictionaries(
    {
        "_type": st.just("chat:Message"),
        "threadId": st.sampled_from(["a", "b", "ü", "c"]),
        "id": st.one_of(st.none(), st.sampled_from(["1", "2", ""]), st.text(max_size=3)),
        "text": TEXTS,
        "author": st.fixed_dictionaries(
            {"isMe": st.sampled_from([True, False, 0, "false", None, []])},
            optional={"userName": st.none() | TEXTS},
        ),
    },
    optional={
        "metadata": st.none() | st.fixed_dictionaries({}, optional={"dateSent": DATES, "editedAt": DATES}),
        "attachments": st.none() | ATTACHMENTS,
        "links": st.none() | LINKS,
    },
)
OTHER = st.fixed_dictionaries(
    {
        "threadId": st.sampled_from(["a", "b", "z"]),
        "role": st.sampled_from(["user", "assistant"]),
        "content": TEXTS,
    },
    optional={"dateSent": DATES},
)
BROKEN = st.sampled_from([b"{", b"[1]", b'{"threadId":5}', b'{"text":"\\ud83d","threadId":"a"}', b'"x"'])
LINES = st.lists(
    st.one_of(CHAT, CHAT, CHAT, OTHER, BROKEN).map(
        lambda one: one if isinstance(one, bytes) else json.dumps(one).encode()
    ),
    max_size=12,
)


def one_by_one(lines: list[bytes]) -> tuple[list[Record], list[Any]]:
    results = [record_of_line(line, Place(3, at * 1000), "auto") for at, line in enumerate(lines)]
    good = [result for result in results if isinstance(result, Record)]
    return good, [result for result in results if not isinstance(result, Record)]


@given(LINES)
@settings(max_examples=400, deadline=None)
def test_lines_decode_to_the_same_records(lines: list[bytes]) -> None:
    offsets = [at * 1000 for at in range(len(lines))]
    block = decoded_lines(Lines(offsets, lines, []), 3, "auto")
    good, bad = one_by_one(lines)
    assert sorted(records_of(block.table), key=lambda record: record.place) == records_of(records_table(good))
    assert sorted(block.rejects, key=lambda reject: reject.place) == bad


def by_threads(table: Any, to: Target) -> ShardOutput:
    tables, rejects, tally = _thread_by_thread(table, to, Hooks(), "latest")
    return ShardOutput(tables, rejects, tally)  # type: ignore[arg-type]


@given(LINES, st.sampled_from(list(Format)), st.booleans())
@settings(max_examples=400, deadline=None)
def test_threads_convert_to_the_same_rows(lines: list[bytes], fmt: Format, names: bool) -> None:
    good, _bad = one_by_one(lines)
    table = in_total_order(records_table(good))
    to = target(fmt, include_names=names)
    columns = converted_shard(table, to, Hooks(), "latest")
    threads = by_threads(table, to)
    assert rows_of(columns) == rows_of(threads)
    prefix = f"{to.dataset.value}/"
    plain = Counter({key.removeprefix(prefix): count for key, count in columns.tally.items() if count})
    assert plain == Counter({key: count for key, count in threads.tally.items() if count})
    rejected = [(reject.place, reject.reason, reject.detail) for reject in columns.rejects]
    expected = [(record.place, reason, detail) for record, reason, detail in threads.rejects]  # type: ignore[misc]
    assert sorted(rejected) == sorted(expected)


def rows_of(output: ShardOutput) -> list[Any]:
    return [row for table in output.tables for row in table.to_pylist()]
