"""The column path is an optimisation: value by value it gives what the record path gives."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from threads import target

from schemas.formats import Format
from schemas.records import Place, Record
from transforms.convert import Hooks, Target
from transforms.decode import Source, record_of_line
from transforms.decoded_lines import decoded_lines
from transforms.json_columns import plain_messages
from transforms.lines import lines_of, lines_of_blocks
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


def one_by_one(lines: list[bytes], source: Source = "auto") -> tuple[list[Record], list[Any]]:
    results = [record_of_line(line, Place(3, at * 1000), source) for at, line in enumerate(lines)]
    good = [result for result in results if isinstance(result, Record)]
    return good, [result for result in results if not isinstance(result, Record)]


@given(LINES)
@settings(max_examples=400, deadline=None)
def test_lines_decode_to_the_same_records(lines: list[bytes]) -> None:
    offsets = [at * 1000 for at in range(len(lines))]
    block = decoded_lines(lines_of(lines, offsets), 3, "auto")
    good, bad = one_by_one(lines)
    assert sorted(records_of(block.table), key=lambda record: record.place) == records_of(records_table(good))
    assert sorted(block.rejects, key=lambda reject: reject.place) == bad


def line(**fields: Any) -> bytes:
    record = {"_type": "chat:Message", "threadId": "t", "id": "1", "text": "x", "author": {"isMe": True}}
    record["author"] = {"isMe": True, "userName": "bot"}
    return json.dumps({**record, "metadata": {"dateSent": "2024-01-15T10:00:00.000Z"}, **fields}).encode()


# What two JSON readers may disagree about, each beside lines that both read alike.
NASTY = {
    "a key twice": b'{"text":"first",' + line()[1:],
    "a key twice in the author": line().replace(b'"isMe"', b'"isMe": false, "isMe"'),
    "an unread key twice": b'{"raw":1,"raw":[],' + line()[1:],
    "an escaped key": line().replace(b'"text"', b'"te\\u0078t"'),
    "a pair of escaped surrogates": line().replace(b'"x"', b'"\\ud83d\\ude00"'),
    "a high surrogate": line().replace(b'"x"', b'"\\ud83d"'),
    "a low surrogate": line().replace(b'"x"', b'"\\ude00"'),
    "surrogates the wrong way round": line().replace(b'"x"', b'"\\ude00\\ud83d"'),
    "a surrogate in an unread field": b'{"raw":"\\ud83d",' + line()[1:],
    "a NUL": line().replace(b'"x"', b'"a\\u0000b"'),
    "a raw control character": line().replace(b'"x"', b'"a\x01b"'),
    "a raw tab": line().replace(b'"x"', b'"a\tb"'),
    "a raw DEL": line().replace(b'"x"', b'"a\x7fb"'),
    "not UTF-8": line().replace(b'"x"', b'"\xff"'),
    "not UTF-8 in an unread field": b'{"raw":"\xff",' + line()[1:],
    "UTF-8 of a surrogate": line().replace(b'"x"', b'"\xed\xa0\xbd"'),
    "an overlong form": line().replace(b'"x"', b'"\xc0\xaf"'),
    "an escape that is none": line().replace(b'"x"', b'"\\q"'),
    "NaN": b'{"raw":NaN,' + line()[1:],
    "Infinity": b'{"raw":-Infinity,' + line()[1:],
    "a leading zero": b'{"raw":01,' + line()[1:],
    "a bare minus": b'{"raw":-,' + line()[1:],
    "a number without digits behind the point": b'{"raw":1.,' + line()[1:],
    "a huge number": b'{"raw":1e999999,' + line()[1:],
    "a long number": b'{"raw":' + b"9" * 400 + b"," + line()[1:],
    "a comma too many": line()[:-1] + b",}",
    "a comma too many in an unread list": b'{"raw":[1,],' + line()[1:],
    "a comment": b"{/* */" + line()[1:],
    "single quotes": b"{'raw':1," + line()[1:],
    "two objects": line() + line(id="2"),
    "two objects, parted": line() + b" " + line(id="2"),
    "behind a comma": line() + b"," + line(id="2"),
    "the start of an object": b'{"raw":{}',
    "the end of an object": b'{"raw":1}}',
    "blanks around": b" \t" + line() + b" \r",
    "blanks within": line().replace(b":", b" \r\t: "),
    "an empty object": b"{}",
    "an array": b"[1]",
    "a string": b'"{}"',
    "null": b"null",
    "no type": line(_type=None),
    "a type that is a number": line(_type=1),
    "another type": line(_type="chat:Other"),
    "thread id null": line(threadId=None),
    "thread id empty": line(threadId=""),
    "thread id a number": line(threadId=7),
    "id null": line(id=None),
    "id empty": line(id=""),
    "id a number": line(id=7),
    "text null": line(text=None),
    "text a list": line(text=["x"]),
    "author null": line(author=None),
    "author a string": line(author="sam"),
    "author empty": line(author={}),
    "isMe null": line(author={"isMe": None, "userName": "a"}),
    "isMe a string": line(author={"isMe": "false", "userName": "a"}),
    "name null": line(author={"isMe": False, "userName": None}),
    "name absent": line(author={"isMe": False}),
    "name a number": line(author={"isMe": False, "userName": 5}),
    "metadata null": line(metadata=None),
    "metadata a list": line(metadata=[]),
    "metadata empty": line(metadata={}),
    "a date that does not exist": line(metadata={"dateSent": "2024-02-30T10:00:00.000Z"}),
    "a date before year 1": line(metadata={"dateSent": "0000-01-01T00:00:00.000Z"}),
    "a date with Arabic digits": line(metadata={"dateSent": "٢٠٢٤-01-15T10:00:00.000Z"}),
    "epoch milliseconds": line(metadata={"dateSent": 1705312800000}),
    "edited": line(metadata={"dateSent": None, "editedAt": "2024-01-15T10:00:00.000Z"}),
    "edited at no date": line(metadata={"editedAt": "yesterday"}),
    "no attachments": line(attachments=[], links=[]),
    "attachments null": line(attachments=None, links=None),
    "an attachment null": line(attachments=[None]),
    "an attachment": line(attachments=[{"type": "image", "mimeType": "image/png", "name": None}]),
    "attachments an object": line(attachments={}),
    "a link": line(links=[{"url": "https://e.test/", "fetchMessage": {"a": 1}}]),
    "a link without a url": line(links=[{}]),
    "messages": line(messages=[]),
    "messages null": line(messages=None),
    "a role as well": line(role="user", content=[1], toolCalls="x"),
    "nested deep": line(raw=json.loads("[" * 399 + "]" * 399)),
    "brackets in a long text": line(text="[" * 900),
    "nested to the limit": b'{"raw":' + b"[" * 399 + b" " * 900 + b"]" * 399 + b"," + line()[1:],
    "nested one too deep": b'{"raw":' + b"[" * 400 + b" " * 900 + b"]" * 400 + b"," + line()[1:],
    "nested too deep by braces": b'{"raw":' + b'{"a":' * 450 + b"1" + b"}" * 450 + b"," + line()[1:],
    "nested too deep": b'{"raw":' + b"[" * 500 + b"]" * 500 + b"," + line()[1:],
}


def agui(**fields: Any) -> bytes:
    return json.dumps({"threadId": "t", "id": "1", "role": "user", "content": "x", **fields}).encode()


CALL = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
NASTY |= {
    **{
        f"{digits} digits in {field}": line().replace(b'"text"', b'"%s":%s,"text"' % (field, b"9" * digits))
        for field in (b"content", b"tools", b"raw", b"dateSent")
        for digits in (4299, 4300, 4301, 9000)
    },
    "AG-UI": agui(dateSent="2024-01-15T10:00:00.000Z"),
    "AG-UI, our own words": agui(malformed=True, sentMs=5, sent_ms=6, tool_calls=[1], toolCallID="x"),
    "AG-UI, our own words escaped": agui().replace(b'"id"', b'"\\u006dalformed":true,"id"'),
    "AG-UI, a key twice": agui().replace(b'"content"', b'"content":5,"content"'),
    "AG-UI, nothing but a role": b'{"threadId":"t","role":"user"}',
    "AG-UI, all null": agui(id=None, role=None, content=None, toolCalls=None, name=None, error=None),
    "AG-UI, calls": agui(role="assistant", content=None, toolCalls=[CALL], extra={"a": [1]}),
    "AG-UI, a result": agui(role="tool", toolCallId="c1", error="e", name="n"),
    "AG-UI, parts": agui(content=[{"type": "text", "text": "ü\u0000"}]),
    "AG-UI, numbers": agui(content=[1.5e300, -0.0, 2**63, -(2**63), 2**70]),
    "AG-UI, long": agui(content="y" * 3000, rawEvent=["z"] * 2000),
    "AG-UI, escaped surrogates": agui(content="😀").replace(b'"user"', b'"us\\u0065r"'),
    "AG-UI, half a pair": agui().replace(b'"x"', b'"\\ud83d"'),
    "a history": b'{"threadId":"t","messages":[{"role":"user","content":"x"},{"role":1},5]}',
}


@pytest.mark.parametrize("source", ["auto", "chat-sdk", "ag-ui"])
@pytest.mark.parametrize("name", NASTY)
def test_nasty_lines_decode_to_the_same_records(name: str, source: Source) -> None:
    for lines in (
        [line(id="a"), NASTY[name], line(id="b")],
        [line(id="a") + b"\r", NASTY[name] + b"\r", line(id="b") + b"\r"],
        [line(id="a"), NASTY[name], NASTY["an empty object"], line(id="b")],
        [line(id="a"), *NASTY[name].split(b","), line(id="b")],
    ):
        block = decoded_lines(lines_of(lines, [at * 1000 for at in range(len(lines))]), 3, source)
        good, bad = one_by_one(lines, source)
        found = sorted(records_of(block.table), key=lambda record: record.place)
        assert found == records_of(records_table(good))
        assert sorted(block.rejects, key=lambda reject: reject.place) == bad


def test_an_object_over_several_lines_is_not_one_record() -> None:
    """Rows and lines may be as many, and still not be the same."""
    lines = [line(id="a"), line(id="b") + line(id="c"), b'{"raw":{},', line(id="d")[1:], line(id="e")]
    block = decoded_lines(lines_of(lines, [at * 1000 for at in range(len(lines))]), 3, "auto")
    assert [record.id for record in records_of(block.table)] == ["a", "e"]
    assert [reject.place.at for reject in block.rejects] == [1000, 2000, 3000]


def test_what_is_left_out_between_lines_does_not_join_them() -> None:
    """An oversized line that stands between the halves of an object; and two objects in the next line."""
    limit = 500
    parts = [line(id="a"), b'{"raw":[{}', b"," + b" " * limit, b"{}]," + line(id="b")[1:], line(id="c") * 2]
    text = b"\n".join([*parts, line(id="d")])
    (lines,) = lines_of_blocks([text + b"\n"], 0, None, limit)
    assert len(lines.oversized) == 1
    block = decoded_lines(lines, 3, "auto")
    assert [record.id for record in records_of(block.table)] == ["a", "d"]
    assert [reject.reason.value for reject in sorted(block.rejects, key=lambda one: one.place)] == [
        "not_json",
        "too_large",
        "not_json",
        "not_json",
    ]


def test_plain_lines_take_the_fast_way() -> None:
    plain = [line(id="a"), line(id="b", text="ü"), line(links=[{"url": "u"}]), line(links=[{"title": "t"}])]
    read = plain_messages(lines_of(plain, [0, 1, 2, 3]), 3, chat_only=False)
    assert read.is_plain.tolist() == [True, True, True, False]


@pytest.mark.parametrize("name", ["text a list", "an array", "two objects", "not UTF-8", "NaN"])
def test_a_line_that_is_refused_takes_few_others_with_it(name: str) -> None:
    count, bad = 5_000, 3_333
    lines = [NASTY[name] if number == bad else line(id=str(number)) for number in range(count)]
    offsets = [number * 1000 for number in range(count)]
    read = plain_messages(lines_of(lines, offsets), 3, chat_only=False)
    assert not read.is_plain[bad]
    assert read.is_plain.sum() > count - 512
    assert read.table["id"].to_pylist() == [str(number) for number in np.flatnonzero(read.is_plain)]
    assert read.table["at"].to_pylist() == (np.flatnonzero(read.is_plain) * 1000).tolist()
    block = decoded_lines(lines_of(lines, offsets), 3, "auto")
    good, rejects = one_by_one(lines)
    assert sorted(records_of(block.table), key=lambda record: record.place) == good
    assert block.rejects == rejects


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
