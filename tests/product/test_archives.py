"""The five real archives in both directions, the sums recounted from the files alone."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from product import ARCHIVES, FIVE, rejects, rows, run


def lines_of(pattern: str) -> list[dict[str, Any]]:
    return [
        json.loads(line)
        for path in sorted(ARCHIVES.glob(pattern))
        for line in path.read_text(encoding="utf-8").splitlines()
        if line.strip()
    ]


def messages_in(record: dict[str, Any]) -> int:
    return len(record["messages"]) if "messages" in record and "threadId" in record else 1


@pytest.fixture(scope="module", params=FIVE, ids=lambda pattern: pattern.split("/")[0])
def archive(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    output = tmp_path_factory.mktemp("archive") / "out"
    manifest = run(output, "--input", ARCHIVES / request.param, "--dataset", "both", "--num_shards", "3")
    return request.param, output, manifest


def test_every_sum_adds_up(archive: Any) -> None:
    pattern, output, manifest = archive
    records = lines_of(pattern)
    assert manifest["read"]["records"] == len(records)
    assert manifest["read"]["messages"] == sum(map(messages_in, records))
    for name, dataset in manifest["datasets"].items():
        for unit in ("records", "messages"):
            ledger = dataset[unit]
            ended = ledger["kept"] + ledger["superseded"]
            ended += sum(ledger["left_out"].values()) + sum(ledger["rejected"].values())
            assert ended == ledger["read"] == manifest["read"][unit]
        read_back = rows(output, name)
        assert len(read_back) == dataset["rows"]
        assert sum(row["message_count"] for row in read_back) == dataset["messages"]["kept"]
        repairs = Counter(note["reason"] for row in read_back for note in row["repairs"])
        assert repairs == dataset["repairs"]


def test_rejects_are_rows_with_a_place(archive: Any) -> None:
    _pattern, output, manifest = archive
    read_back = rejects(output)
    assert len(read_back) == manifest["rejected"]["rows"]
    for name, dataset in manifest["datasets"].items():
        own = [row for row in read_back if row["dataset"] in (None, name)]
        assert Counter(row["reason"] for row in own) == dataset["records"]["rejected"]
    for row in read_back:
        assert Path(row["source_file"]).exists()
        line = Path(row["source_file"]).read_bytes()[row["place"] :].split(b"\n")[0]
        if row["dataset"] is None:
            assert row["raw"] == line
        assert json.loads(line)


def test_rows_are_aligned_and_in_order(archive: Any) -> None:
    pattern, output, _manifest = archive
    known = {record.get("threadId") for record in lines_of(pattern)}
    for name in ("training", "replay"):
        read_back = rows(output, name)
        assert len({row["thread_id"] for row in read_back}) == len(read_back)
        for row in read_back:
            assert row["thread_id"] in known
            lengths = {len(row["messages"]), len(row["message_ids"]), len(row["sent_at"])}
            assert lengths == {row["message_count"]}
            dates = [date for date in row["sent_at"] if date is not None]
            assert dates == sorted(dates)
            assert row["first_sent"] == (dates[0] if dates else None)
            assert row["last_sent"] == (dates[-1] if dates else None)


def test_texts_of_chat_archives_are_all_there(archive: Any) -> None:
    pattern, output, _manifest = archive
    if not pattern.startswith("chatsdk"):
        return
    texts = {message["content"] for row in rows(output, "training") for message in row["messages"]}
    for record in lines_of(pattern):
        if record["text"].strip() and not record.get("links"):
            assert record["text"] in texts


def test_tool_calls_of_tau_bench_keep_their_results(archive: Any) -> None:
    pattern, output, manifest = archive
    if not pattern.startswith("agui-tau"):
        return
    results = {
        (record["threadId"], record["content"]) for record in lines_of(pattern) if record["role"] == "tool"
    }
    found = set()
    for row in rows(output, "replay"):
        calls: list[str] = []
        for message in row["messages"]:
            if message["type"] == "tool":
                assert message["data"]["tool_call_id"] == calls.pop(0)
                found.add((row["thread_id"], message["data"]["content"]))
            else:
                assert not calls
            calls += [call["id"] for call in message["data"].get("tool_calls", [])]
    assert found == results
    # The trajectories number their calls anew: an id that comes again is renamed with its result.
    assert manifest["datasets"]["replay"]["repairs"] == {"id_renamed": repeated_call_ids(pattern)}


def repeated_call_ids(pattern: str) -> int:
    """How many calls have an id that an earlier call of their thread has."""
    ids: dict[str, list[str]] = {}
    for record in lines_of(pattern):
        of_thread = ids.setdefault(record["threadId"], [])
        of_thread += [call["id"] for call in record.get("toolCalls") or []]
    return sum(len(of_thread) - len(set(of_thread)) for of_thread in ids.values())
