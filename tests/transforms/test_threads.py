"""Which versions count, and where messages stand."""

from __future__ import annotations

from typing import Any

import pytest
from threads import decoded, ordered_threads

from transforms.threads import Duplicates


def chat(text: str, message_id: str | None, sent: Any = None, edited: Any = None) -> dict[str, Any]:
    record: dict[str, Any] = {
        "_type": "chat:Message",
        "threadId": "t",
        "text": text,
        "author": {"isMe": False},
        "metadata": {"dateSent": sent, "editedAt": edited},
    }
    return record if message_id is None else {**record, "id": message_id}


def agui(text: str, message_id: str | None = None, sent: Any = None) -> dict[str, Any]:
    record = {"threadId": "t", "role": "user", "content": text}
    if message_id is not None:
        record["id"] = message_id
    return record if sent is None else {**record, "dateSent": sent}


def history(texts: list[Any], sent: Any = None, tools: Any = None) -> dict[str, Any]:
    messages = [one if isinstance(one, dict) else {"role": "user", "content": one} for one in texts]
    return {"threadId": "t", "messages": messages, "dateSent": sent, "tools": tools}


def texts_and_superseded(records: list[Any], duplicates: Duplicates = "latest") -> tuple[list[str], int]:
    good, bad = decoded(records)
    assert not bad
    (thread,) = ordered_threads(good, duplicates)
    texts = [message.text if thread.is_chat else message.content for message in thread.messages]
    return texts, len(thread.superseded)


@pytest.mark.parametrize(
    ("records", "texts", "superseded"),
    [
        # The later date stands later; no date counts as 0; equal dates keep archive order.
        ([chat("b", "1", 200), chat("a", "2", 100), chat("z", "3"), chat("y", "4", -5)], "yzab", 0),
        ([chat("a", "1", 100), chat("b", "2", 100), chat("c", "3", 100)], "abc", 0),
        # Of two versions the one that was edited last counts, wherever it stands.
        ([chat("new", "1", 100, 300), chat("old", "1", 100, 200), chat("x", "2", 50)], ["x", "new"], 1),
        ([chat("first", "1", 100), chat("second", "1", 100)], ["second"], 1),
        ([chat("edited", "1", 100, 200), chat("never edited", "1", 100)], ["edited"], 1),
        # A record without an id is nobody's version.
        ([chat("a", None, 100), chat("a", None, 100), chat("a", "", 100)], "aaa", 0),
        # AG-UI records: archive order where there is no date.
        ([agui("a", "1"), agui("b", "2"), agui("c")], "abc", 0),
        ([agui("a", "1"), agui("b", "1")], "b", 1),
        # Of several histories the latest by date counts, then by place.
        ([history("ab", 200), history("abc", 100)], "ab", 1),
        ([history("ab"), history("abc")], "abc", 1),
        # Inside one history nothing is a version of anything.
        ([history([{"id": "1", "role": "user", "content": "a"}] * 3)], "aaa", 0),
        # Single records that the history does not hold join by date, those it holds do not.
        (
            [
                history([{"id": "1", "role": "user", "content": "a"}, "b"], 200),
                agui("held", "1", 300),
                agui("before", "2", 100),
                agui("after", "3", 300),
                agui("no id", None, 400),
            ],
            ["before", "a", "b", "after", "no id"],
            1,
        ),
        # A message's own date places it, but never before the one above it in its history.
        (
            [
                history([{"role": "user", "content": "a", "dateSent": 300}, "b"], 100),
                agui("between", "2", 200),
                agui("late", "3", 400),
            ],
            ["between", "a", "b", "late"],
            0,
        ),
    ],
)  # fmt: skip
def test_latest(records: list[Any], texts: Any, superseded: int) -> None:
    assert texts_and_superseded(records) == (list(texts), superseded)


def test_keep_keeps_all_versions() -> None:
    records = [chat("old", "1", 100), chat("new", "1", 100, 200)]
    assert texts_and_superseded(records, "keep") == (["old", "new"], 0)


def test_tools_are_those_of_the_latest_history() -> None:
    good, _bad = decoded([history("a", 200, [{"name": "new"}]), history("a", 100, [{"name": "old"}])])
    (thread,) = ordered_threads(good)
    assert thread.tools == [{"name": "new"}]


@pytest.mark.parametrize(
    ("kinds", "kept", "misplaced"),
    [("cca", "cc", "a"), ("aac", "aa", "c"), ("ca", "c", "a"), ("ac", "a", "c"), ("caac", "cc", "aa")],
)
def test_a_mixed_thread_keeps_the_vocabulary_of_most_or_else_of_the_first(
    kinds: str, kept: str, misplaced: str
) -> None:
    make = {"c": chat, "a": agui}
    good, _bad = decoded([make[kind](kind, str(at)) for at, kind in enumerate(kinds)])
    (thread,) = ordered_threads(good)
    assert "".join("c" if thread.is_chat else "a" for _ in thread.records) == kept
    assert len(thread.misplaced) == len(misplaced)
