"""A user's hooks: what they give is written, what they raise ends their message alone."""

from __future__ import annotations

from pathlib import Path

import pytest
from product import chat, rejects, rows, run, write_lines

HOOK = "tests.product.my_hooks:shout"
IMAGE = {"type": "image", "mimeType": "image/png", "data": "aGk="}


@pytest.mark.parametrize("fmt", ["messages", "ai-sdk", "tanstack", "trl", "openai"])
def test_transform_message(tmp_path: Path, fmt: str) -> None:
    texts = ["hello", "skip me", "break", "no message", "bye"]
    records = [chat(number, text) for number, text in enumerate(texts)]
    records.append(chat(9, "see", attachments=[IMAGE]))
    archive = write_lines(tmp_path / "a.jsonl", records)
    content = run(tmp_path / "out", "--input", archive, "--format", fmt, "--transform_message", HOOK)
    (row,) = rows(tmp_path / "out", "training")
    assert [message["content"] for message in row["messages"][:2]] == ["HELLO", "BYE"]
    assert row["message_ids"] == ["m0", "m4", "m9"]
    failed = rejects(tmp_path / "out")
    assert [(one["reason"], one["thread_id"]) for one in failed] == [("hook_failed", "t1")] * 2
    assert failed[0]["detail"] == "ValueError: bad \ufffd luck"
    assert failed[0]["raw"]
    ledger = content["datasets"]["training"]["records"]
    assert ledger["left_out"] == {"skipped_by_hook": 1}
    assert ledger["rejected"] == {"hook_failed": 2}


def test_the_hook_works_for_replay_rows_too(tmp_path: Path) -> None:
    archive = write_lines(tmp_path / "a.jsonl", [chat(1, "hello"), chat(2, "see", attachments=[IMAGE])])
    run(tmp_path / "out", "--input", archive, "--dataset", "replay", "--transform_message", HOOK)
    (row,) = rows(tmp_path / "out", "replay")
    assert row["messages"][0] == {"type": "human", "data": {"content": "HELLO"}}
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}}
    assert row["messages"][1]["data"]["content"] == [{"type": "text", "text": "see"}, image]


def test_a_hook_for_unsupported_attachments_may_refuse_a_message(tmp_path: Path) -> None:
    video = {"type": "video", "name": "v.mp4"}
    archive = write_lines(tmp_path / "a.jsonl", [chat(1), chat(2, attachments=[video])])
    arguments = ["--on_unsupported_attachment", "tests.product.my_hooks:refuse_video"]
    run(tmp_path / "out", "--input", archive, *arguments)
    (reject,) = rejects(tmp_path / "out")
    assert (reject["reason"], reject["detail"]) == ("hook_failed", "RuntimeError: video in m2")
    (row,) = rows(tmp_path / "out", "training")
    assert row["message_ids"] == ["m1"]


def test_without_the_hook_an_unsupported_attachment_is_a_repair(tmp_path: Path) -> None:
    archive = write_lines(tmp_path / "a.jsonl", [chat(1, attachments=[{"type": "video", "name": "v.mp4"}])])
    run(tmp_path / "out", "--input", archive)
    (row,) = rows(tmp_path / "out", "training")
    assert [(one["reason"], one["detail"]) for one in row["repairs"]] == [
        ("attachment_unsupported", "video 'v.mp4'")
    ]
