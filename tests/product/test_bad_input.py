"""What bad input gets: it harms only itself, and says where it stands and why."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from product import ARCHIVES, chat, refused, rejects, rows, run, write_lines

from schemas.avro import avro_schema
from transforms.js_text import is_blank

GOOD = [chat(number, f"good {number}", thread=f"good-{number % 3}") for number in range(30)]


def deep(levels: int) -> bytes:
    return b'{"threadId":"x","role":"user","content":' + b"[" * levels + b"]" * levels + b"}"


def broken(**fields: Any) -> dict[str, Any]:
    record = chat(900, thread="bad")
    record.update(fields)
    return record


def without(name: str) -> dict[str, Any]:
    record = chat(901, thread="bad")
    del record[name]
    return record


BAD_LINES: dict[str, tuple[Any, str]] = {
    "invalid UTF-8": (b'{"_type":"chat:Message","threadId":"bad","text":"\xff\xfe"}', "not_utf8"),
    "invalid UTF-8 in a key": (b'{"\xff":1', "not_utf8"),
    "not JSON": (b"hello there", "not_json"),
    "cut off": (b'{"_type":"chat:Message","thr', "not_json"),
    "NaN": (b'{"threadId":"bad","role":"user","content":NaN}', "not_json"),
    "NaN where nobody looks": (b'{"threadId":"bad","role":"user","raw":NaN}', "not_json"),
    "nested 2,000 deep": (deep(2000), "nested_too_deep"),
    "nested 200,000 deep": (deep(200_000), "nested_too_deep"),
    "a list": (b"[1,2]", "not_an_object"),
    "a string": (b'"text"', "not_an_object"),
    "null": (b"null", "not_an_object"),
    "a 5,000-digit date": (
        b'{"threadId":"bad","role":"user","content":"x","dateSent":' + b"1" * 5000 + b"}",
        "bad_date",
    ),
    "no thread id": (without("threadId"), "no_thread_id"),
    "an empty thread id": (broken(threadId=""), "no_thread_id"),
    "a null thread id": (broken(threadId=None), "no_thread_id"),
    "a number as thread id": (broken(threadId=5), "wrong_type"),
    "a list as thread id": (broken(threadId=["t"]), "wrong_type"),
    "a number as id": (broken(id=5), "wrong_type"),
    "a number as text": (broken(text=5), "wrong_type"),
    "no text": (without("text"), "missing_field"),
    "no author": (without("author"), "missing_field"),
    "a string as author": (broken(author="sam"), "wrong_type"),
    "a number as user name": (broken(author={"isMe": False, "userName": 7}), "wrong_type"),
    "a list as metadata": (broken(metadata=[]), "wrong_type"),
    "a string as attachments": (broken(attachments="none"), "wrong_type"),
    "null in attachments": (broken(attachments=[None]), "wrong_type"),
    "a number as attachment data": (broken(attachments=[{"type": "image", "data": 5}]), "wrong_type"),
    "an object as links": (broken(links={}), "wrong_type"),
    "a link without a url": (broken(links=[{"title": "t"}]), "missing_field"),
    "a number as link title": (broken(links=[{"url": "u", "title": 5}]), "wrong_type"),
    "a date that is no date": (broken(metadata={"dateSent": "yesterday"}), "bad_date"),
    "a date without a zone": (broken(metadata={"dateSent": "2024-01-15T10:00:00"}), "bad_date"),
    "true as a date": (broken(metadata={"dateSent": True}), "bad_date"),
    "an object as a date": (broken(metadata={"dateSent": {}}), "bad_date"),
    "the year 275760": (broken(metadata={"dateSent": "+275760-09-13T00:00:00.000Z"}), "bad_date"),
    "neither vocabulary": (b'{"threadId":"bad","hello":1}', "unknown_kind"),
    "toolCalls: [null]": (
        {"threadId": "bad", "role": "assistant", "content": "", "toolCalls": [None]},
        "malformed_calls",
    ),
    "arguments as an object": (
        {
            "threadId": "bad",
            "role": "assistant",
            "toolCalls": [{"id": "c", "function": {"name": "f", "arguments": {"a": 1}}}],
        },
        "malformed_calls",
    ),
    "messages that are no list": ({"threadId": "bad", "messages": "none"}, "wrong_type"),
}


def as_line(record: Any) -> bytes:
    return record if isinstance(record, bytes) else json.dumps(record).encode()


def good_texts(output: Path) -> list[str]:
    return sorted(
        message["content"]
        for row in rows(output, "training")
        for message in row["messages"]
        if row["thread_id"].startswith("good")
    )


@pytest.fixture(scope="module")
def bad_lines(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("bad")
    lines = [as_line(record) for record, _reason in BAD_LINES.values()]
    mixed = [line for pair in zip(map(as_line, GOOD), lines, strict=False) for line in pair]
    archive = write_lines(folder / "a.jsonl", mixed + lines[len(GOOD) :])
    run(folder / "out", "--input", archive, "--format", "messages")
    return archive, folder / "out"


@pytest.mark.parametrize("name", BAD_LINES)
def test_a_bad_line_is_rejected_with_its_place_and_reason(bad_lines: Any, name: str) -> None:
    archive, output = bad_lines
    line, reason = as_line(BAD_LINES[name][0]), BAD_LINES[name][1]
    place = archive.read_bytes().index(b"\n" + line + b"\n") + 1
    (row,) = [row for row in rejects(output) if row["place"] == place]
    assert row["reason"] == reason
    assert row["detail"]
    assert row["source_file"] == str(archive)
    assert row["raw"] == line[: 64 << 10]


def test_a_bad_line_harms_no_other(bad_lines: Any) -> None:
    _archive, output = bad_lines
    assert good_texts(output) == sorted(record["text"] for record in GOOD)
    assert len(rejects(output)) == len(BAD_LINES)


def test_what_is_odd_but_not_bad_is_kept(tmp_path: Path) -> None:
    archive = tmp_path / "a.jsonl"
    lines = [
        b"\xef\xbb\xbf" + as_line(chat(1, "after a byte-order mark")),
        b"",
        b"  \t ",
        as_line(chat(2, "before a carriage return")) + b"\r",
        b'{"_type":"chat:Message","threadId":"no","threadId":"t1","id":"m3","text":"first",'
        b'"text":"the last of two keys counts","author":{"isMe":false},"metadata":{}}',
        as_line(chat(4, "a 5,000-digit number where nobody looks"))[:-1] + b',"raw":' + b"9" * 5000 + b"}",
        b'{"_type":"chat:Message","threadId":"t1","id":"m5","text":"half \\ud83d a pair",'
        b'"author":{"isMe":true},"metadata":{"dateSent":1705312860}}',
    ]
    archive.write_bytes(b"\n".join(lines))
    (tmp_path / "empty.jsonl").write_bytes(b"")
    manifest = run(tmp_path / "out", "--input", tmp_path / "*.jsonl")
    assert not rejects(tmp_path / "out")
    assert manifest["read"]["records"] == 5
    (row,) = rows(tmp_path / "out", "training")
    assert [message["content"] for message in row["messages"]] == [
        "the last of two keys counts",
        "after a byte-order mark",
        "before a carriage return",
        "a 5,000-digit number where nobody looks",
        "half \ufffd a pair",
    ]


@pytest.mark.parametrize("ending", ["gz", "zst"])
def test_a_truncated_archive_gives_what_came_before(tmp_path: Path, ending: str) -> None:
    many = [chat(number, os.urandom(200).hex(), thread=f"good-{number % 9}") for number in range(2000)]
    plain = b"".join(as_line(record) + b"\n" for record in many)
    packed = gzip.compress(plain) if ending == "gz" else zstandard.compress(plain)
    archive = tmp_path / f"a.jsonl.{ending}"
    archive.write_bytes(packed[: len(packed) // 2])
    manifest = run(tmp_path / "out", "--input", archive)
    reasons = [row["reason"] for row in rejects(tmp_path / "out")]
    assert reasons.count("broken_file") == 1
    assert set(reasons) <= {"broken_file", "not_json"}
    kept = good_texts(tmp_path / "out")
    assert manifest["read"]["records"] == len(kept) + len(reasons)
    assert set(kept) <= {record["text"] for record in many}
    assert ending == "zst" or len(kept) > 500


def test_whole_compressed_archives_lose_nothing(tmp_path: Path) -> None:
    half = [b"".join(as_line(record) + b"\n" for record in part) for part in (GOOD[:15], GOOD[15:])]
    # Two members in one file: what `cat a.gz b.gz` makes.
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(half[0]) + gzip.compress(half[1]))
    (tmp_path / "b.jsonl.zst").write_bytes(zstandard.compress(half[0]) + zstandard.compress(half[1]))
    run(tmp_path / "out", "--input", tmp_path / "*", "--duplicates", "keep")
    assert good_texts(tmp_path / "out") == sorted(2 * [record["text"] for record in GOOD])


def avro_file(path: Path, records: list[dict[str, Any]]) -> bytes:
    schema = fastavro.parse_schema(avro_schema("chat_message"))
    with open(path, "wb") as stream:
        fastavro.writer(stream, schema, records, sync_interval=400)
    return path.read_bytes()


def test_a_truncated_avro_file_gives_what_came_before(tmp_path: Path) -> None:
    archive = tmp_path / "a.avro"
    records = [
        chat(number, f"good {number}", thread="good", metadata={"dateSent": number}) for number in range(300)
    ]
    whole = avro_file(archive, records)
    archive.write_bytes(whole[: len(whole) // 2])
    run(tmp_path / "out", "--input", archive)
    (row,) = rejects(tmp_path / "out")
    assert (row["reason"], row["place_unit"]) == ("broken_file", "row")
    assert row["place"] == len(good_texts(tmp_path / "out")) > 0


@pytest.mark.parametrize("name", ["a.avro", "a.parquet", "a.jsonl.gz", "a.jsonl.zst"])
def test_a_file_that_is_something_else_is_one_reject(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"this is not what its name says" * 50)
    write_lines(tmp_path / "good.jsonl", GOOD)
    run(tmp_path / "out", "--input", tmp_path / "*")
    (row,) = rejects(tmp_path / "out")
    assert row["reason"] == "broken_file"
    assert row["source_file"].endswith(name)
    assert len(good_texts(tmp_path / "out")) == len(GOOD)


def test_a_parquet_file_without_the_columns(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [1, 2], "text": ["x", "y"]}), tmp_path / "a.parquet")
    write_lines(tmp_path / "good.jsonl", GOOD)
    run(tmp_path / "out", "--input", tmp_path / "*")
    (row,) = rejects(tmp_path / "out")
    assert (row["reason"], row["place"]) == ("missing_columns", 0)
    assert "a, text" in row["detail"]
    assert len(good_texts(tmp_path / "out")) == len(GOOD)


def test_a_64_mib_line(tmp_path: Path) -> None:
    long = as_line(chat(500, "x" * (64 << 20), thread="good-0"))
    archive = tmp_path / "a.jsonl"
    archive.write_bytes(
        b"".join(as_line(record) + b"\n" for record in GOOD[:5])
        + long
        + b"\n"
        + b"".join(as_line(record) + b"\n" for record in GOOD[5:])
    )
    run(tmp_path / "out", "--input", archive)
    (row,) = rejects(tmp_path / "out")
    assert row["reason"] == "too_large"
    assert str(len(long)) in row["detail"]
    assert row["raw"] == long[: 64 << 10]
    assert good_texts(tmp_path / "out") == sorted(record["text"] for record in GOOD)


def test_a_thread_of_both_vocabularies_keeps_the_one_that_most_records_have(tmp_path: Path) -> None:
    stray = {"threadId": "t1", "id": "a1", "role": "assistant", "content": "stray"}
    archive = write_lines(tmp_path / "a.jsonl", [chat(1), stray, chat(2)])
    manifest = run(tmp_path / "out", "--input", archive, "--format", "messages")
    (row,) = rejects(tmp_path / "out")
    assert (row["reason"], row["thread_id"]) == ("mixed_kinds", "t1")
    assert row["place"] == len(as_line(chat(1))) + 1
    assert json.loads(row["raw"])["content"] == "stray"
    assert manifest["datasets"]["training"]["records"]["kept"] == 2


def test_naughty_strings_in_every_text_field(tmp_path: Path) -> None:
    naughty = json.loads((ARCHIVES / "dirty-naughty-strings" / "blns.json").read_text())
    records: list[Any] = []
    for number, text in enumerate(naughty):
        link = {"url": text, "title": text, "description": text, "siteName": text}
        attachment = {"type": "file", "mimeType": "text/plain", "name": text, "data": "aGk=", "url": text}
        author = {"isMe": False, "userName": text, "fullName": text}
        records.append(
            chat(number, text, f"{number}-{text}", links=[link], attachments=[attachment], author=author)
        )
        call = {"id": text or "c", "type": "function", "function": {"name": "f", "arguments": text}}
        thread = f"agui-{number}"
        records += [
            {"threadId": thread, "id": f"{text}-u", "role": "user", "content": text},
            {
                "threadId": thread,
                "id": f"{text}-a",
                "role": "assistant",
                "content": text,
                "toolCalls": [call],
            },
            {
                "threadId": thread,
                "id": f"{text}-t",
                "role": "tool",
                "content": text,
                "toolCallId": call["id"],
            },
        ]
    archive = write_lines(tmp_path / "a.jsonl", records)
    manifest = run(tmp_path / "out", "--input", archive, "--dataset", "both", "--include_names")
    assert manifest["read"]["records"] == len(records)
    by_thread = {row["thread_id"]: row for row in rows(tmp_path / "out", "training")}
    blank = {f"agui-{number}" for number, text in enumerate(naughty) if text and is_blank(text)}
    left = rejects(tmp_path / "out")
    assert {(row["thread_id"], row["reason"]) for row in left} == {(one, "no_turn_left") for one in blank}
    for number, text in enumerate(naughty):
        if f"agui-{number}" in blank:
            continue
        (message,) = by_thread[f"{number}-{text}"]["messages"]
        assert message["content"].startswith(f"[{text}]: {text}" if text.strip() else "Links:")
        results = [one for one in by_thread[f"agui-{number}"]["messages"] if one["role"] == "tool"]
        assert [one["content"] for one in results] == [text]


class TestAttachments:
    """Data comes from inside the record or from below the root; the text stays in any case."""

    @pytest.fixture
    def root(self, tmp_path: Path) -> Path:
        root = tmp_path / "files"
        (root / "deep").mkdir(parents=True)
        (root / "deep" / "a.txt").write_text("inside")
        (tmp_path / "secret.txt").write_text("secret")
        (root / "link.txt").symlink_to(tmp_path / "secret.txt")
        (root / "out").symlink_to(tmp_path)
        return root

    @pytest.mark.parametrize(
        ("url", "reason"),
        [
            ("deep/a.txt", None),
            ("deep/../../secret.txt", "attachment_outside_root"),
            ("..\\secret.txt", "attachment_outside_root"),
            ("/etc/passwd", "attachment_outside_root"),
            ("link.txt", "attachment_outside_root"),
            ("out/secret.txt", "attachment_outside_root"),
            ("http://127.0.0.1:1/a.txt", "attachment_without_data"),
            ("file:///etc/passwd", "attachment_without_data"),
            ("//host/share/a.txt", "attachment_without_data"),
            ("missing.txt", "attachment_unreadable"),
            ("deep", "attachment_unreadable"),
            ("nul\0.txt", "attachment_outside_root"),
            ("x" * 5000, "attachment_unreadable"),
        ],
    )
    def test_paths(self, tmp_path: Path, root: Path, url: str, reason: str | None) -> None:
        attachment = {"type": "file", "mimeType": "text/plain", "name": "a.txt", "url": url}
        archive = write_lines(tmp_path / "a.jsonl", [chat(1, attachments=[attachment])])
        run(tmp_path / "o", "--input", archive, "--attachment_root", root)
        (row,) = rows(tmp_path / "o", "training")
        inlined = "hello\n\n[File: a.txt (text/plain)]\ninside"
        assert [one["content"] for one in row["messages"]] == ["hello" if reason else inlined]
        assert [note["reason"] for note in row["repairs"]] == ([reason] if reason else [])
        assert not rejects(tmp_path / "o")

    def test_data_that_is_not_base64(self, tmp_path: Path) -> None:
        attachment = {"type": "image", "data": "not base64!"}
        archive = write_lines(tmp_path / "a.jsonl", [chat(1, attachments=[attachment])])
        run(tmp_path / "o", "--input", archive, "--format", "ai-sdk")
        (row,) = rows(tmp_path / "o", "training")
        assert row["messages"] == [{"role": "user", "content": "hello"}]
        assert [note["reason"] for note in row["repairs"]] == ["attachment_unreadable"]


class TestRefusals:
    """What ends the job: one line, a code other than 0, and nothing that looks like a result."""

    def test_a_pattern_that_matches_nothing(self, tmp_path: Path) -> None:
        said = refused(tmp_path / "out", "--input", tmp_path / "none*.jsonl", code=2)
        assert "none*.jsonl" in said
        assert not (tmp_path / "out").exists()

    def test_an_ending_that_nobody_knows(self, tmp_path: Path) -> None:
        (tmp_path / "a.csv").write_text("x")
        assert "a.csv" in refused(tmp_path / "out", "--input", tmp_path / "*", code=2)

    def test_an_output_that_holds_a_result(self, tmp_path: Path) -> None:
        archive = write_lines(tmp_path / "a.jsonl", GOOD)
        run(tmp_path / "out", "--input", archive)
        before = {path: path.read_bytes() for path in (tmp_path / "out").rglob("*") if path.is_file()}
        said = refused(tmp_path / "out", "--input", archive, code=2)
        assert "--overwrite" in said
        after = {path: path.read_bytes() for path in (tmp_path / "out").rglob("*") if path.is_file()}
        assert after == before

    def test_an_output_that_is_a_file(self, tmp_path: Path) -> None:
        archive = write_lines(tmp_path / "a.jsonl", GOOD)
        (tmp_path / "out").write_text("mine")
        assert "cannot be written" in refused(tmp_path / "out", "--input", archive, code=1)
        assert (tmp_path / "out").read_text() == "mine"

    def test_an_output_that_lies_where_nobody_can_write(self, tmp_path: Path) -> None:
        archive = write_lines(tmp_path / "a.jsonl", GOOD)
        said = refused(Path("/proc/threadloom/out"), "--input", archive, code=1)
        assert "/proc/threadloom/out" in said

    def test_an_archive_inside_the_output(self, tmp_path: Path) -> None:
        (tmp_path / "out").mkdir()
        archive = write_lines(tmp_path / "out" / "a.jsonl", GOOD)
        assert "lies in --output" in refused(tmp_path / "out", "--input", archive, code=2)
