"""One thread from its records: which versions count, in which order its messages stand.

The total order inside a thread is (dateSent, no date counting as 0; file path; place in the file).
A version is a record with the id of another record of the thread; the latest by (editedAt, place)
counts. Of several whole histories the latest by (dateSent, place) counts, since each resends all.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import Any, Literal

import msgspec

from schemas.records import AguiMessage, ChatMessage, History, Kind, Record

Duplicates = Literal["latest", "keep"]


class Thread(msgspec.Struct):
    """A thread, ready to convert. `messages` are in order; `owners` gives each one's record, as a
    position in `records`; None where message i is record i. `records` are those that count.
    """

    thread_id: str
    is_chat: bool
    messages: list[Any]
    records: list[Record]
    owners: list[int] | None = None
    tools: list[Any] | None = None
    superseded: list[Record] = []
    misplaced: list[Record] = []

    def chat_messages(self) -> list[ChatMessage]:
        return self.messages

    def agui_messages(self) -> list[AguiMessage]:
        return self.messages


def thread_of_records(records: Sequence[Record], duplicates: Duplicates) -> Thread:
    """The thread that its records make up. `records` is not empty and stands in the total order."""
    kept = list(records)
    misplaced: list[Record] = []
    if any(record.kind is not kept[0].kind for record in kept):
        kept, misplaced = _of_one_vocabulary(kept)
    superseded: list[Record] = []
    if duplicates == "latest":
        kept, superseded = _latest_versions(kept)
    thread_id = records[0].thread_id
    if kept[0].kind is Kind.CHAT:
        messages = [record.body for record in kept]
        return Thread(thread_id, True, messages, kept, superseded=superseded, misplaced=misplaced)
    thread = _agui_thread(thread_id, kept)
    thread.superseded += superseded
    thread.misplaced = misplaced
    return thread


def _of_one_vocabulary(records: list[Record]) -> tuple[list[Record], list[Record]]:
    """The records of the vocabulary that most of them have (at a tie, the first one's), the rest."""
    chat = [record for record in records if record.kind is Kind.CHAT]
    agui = [record for record in records if record.kind is not Kind.CHAT]
    chat_is_first = bool(chat) and min(map(_place, chat)) < min(map(_place, agui or chat[:1]))
    if (len(chat), chat_is_first) > (len(agui), not chat_is_first):
        return chat, agui
    return agui, chat


_place = attrgetter("place")


def _latest_versions(records: list[Record]) -> tuple[list[Record], list[Record]]:
    ids = [record.id for record in records if record.id is not None]
    if len(set(ids)) == len(ids):
        return records, []
    latest: dict[str, Record] = {}
    for record in records:
        if record.id is not None:
            rival = latest.get(record.id)
            if rival is None or _version(record) > _version(rival):
                latest[record.id] = record
    kept: list[Record] = []
    superseded: list[Record] = []
    for record in records:
        counts = record.id is None or latest[record.id] is record
        (kept if counts else superseded).append(record)
    return kept, superseded


def _version(record: Record) -> tuple[bool, int, int, int]:
    edited = record.edited_ms
    return edited is not None, edited or 0, record.place.file, record.place.at


def _agui_thread(thread_id: str, records: list[Record]) -> Thread:
    histories = [record for record in records if record.kind is Kind.HISTORY]
    if not histories:
        messages = [record.body for record in records]
        return Thread(thread_id, False, messages, records)
    latest = max(histories, key=lambda record: (record.sent_ms or 0, record.place))
    history = latest.body
    assert isinstance(history, History)
    held = {message.id for message in history.messages if isinstance(message.id, str) and message.id}
    singles = [record for record in records if record.kind is Kind.AGUI]
    joining = [record for record in singles if record.id is None or record.id not in held]
    kept = [latest, *joining]
    superseded = [record for record in histories if record is not latest]
    superseded += [record for record in singles if record.id is not None and record.id in held]
    places = _in_date_order(latest, history, joining)
    return Thread(
        thread_id,
        False,
        [message for message, _owner in places],
        kept,
        owners=[owner for _message, owner in places],
        tools=history.tools,
        superseded=superseded,
    )


def _in_date_order(latest: Record, history: History, joining: list[Record]) -> list[tuple[AguiMessage, int]]:
    """The history in its own order, and each single record where its date puts it, with owners."""
    placed: list[tuple[tuple[int, int, int, int], AguiMessage, int]] = []
    at, start = latest.place, latest.sent_ms or 0
    reached: int | None = None
    for number, message in enumerate(history.messages):
        date = start if message.sent_ms is None else message.sent_ms
        # A history keeps its order: no message of it stands before the one above it.
        reached = date if reached is None else max(reached, date)
        placed.append(((reached, at.file, at.at, number), message, 0))
    for owner, record in enumerate(joining, start=1):
        assert isinstance(record.body, AguiMessage)
        key = (record.sent_ms or 0, record.place.file, record.place.at, 0)
        placed.append((key, record.body, owner))
    placed.sort(key=lambda entry: entry[0])
    return [(message, owner) for _key, message, owner in placed]
