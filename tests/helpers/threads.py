"""Records of one thread through the pure half of the job: decode, order, convert."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from schemas.arrow import RECORDS
from schemas.formats import Dataset, Format
from schemas.records import Place, Record, Rejected
from transforms.convert import Hooks, Outcome, Target, converted
from transforms.decode import Source, record_of_line
from transforms.guards.rules import GuardOptions, Guards
from transforms.providers import Provider
from transforms.record_tables import (
    in_total_order,
    packed_table,
    records_table,
    threads_of,
    unpacked_tables,
)
from transforms.threads import Duplicates, Thread, thread_of_records


def decoded(records: Iterable[Any], source: Source = "auto") -> tuple[list[Record], list[Rejected]]:
    """Each record written as a line, one byte of place apart, and read."""
    good: list[Record] = []
    bad: list[Rejected] = []
    for at, record in enumerate(records):
        line = record if isinstance(record, bytes) else json.dumps(record).encode()
        result = record_of_line(line, Place(0, at), source)
        if isinstance(result, Record):
            good.append(result)
        else:
            bad.append(result)
    return good, bad


def ordered_threads(records: list[Record], duplicates: Duplicates = "latest") -> list[Thread]:
    """The threads, by way of the tables that cross the shuffle."""
    table = in_total_order(unpacked_tables([packed_table(records_table(records)).to_pybytes()], RECORDS))
    return [thread_of_records(of_thread, duplicates) for of_thread in threads_of(table)]


def target(
    fmt: Format,
    *,
    dataset: Dataset | None = None,
    guards: Guards = Guards.STRICT,
    allowed: Iterable[str] = (),
    include_names: bool = False,
    keep_pending_call: bool = False,
    provider: str | None = None,
) -> Target:
    if dataset is None:
        dataset = Dataset.REPLAY if fmt is Format.LANGCHAIN else Dataset.TRAINING
    named = None if provider is None else Provider(provider)
    options = GuardOptions(guards, frozenset(allowed), keep_pending_call, named)
    return Target(dataset, fmt, options, include_names)


def outcome_of(
    records: Iterable[Any], to: Target, hooks: Hooks | None = None, source: Source = "auto"
) -> Outcome:
    """The outcome of the one thread that the records make up."""
    good, _bad = decoded(records, source)
    threads = ordered_threads(good)
    assert len(threads) == 1, "the records are of one thread"
    return converted(threads[0], to, hooks or Hooks())


def messages_of(outcome: Outcome) -> list[Any]:
    return outcome.row.messages if outcome.row is not None else []


def agui_records(messages: Iterable[Any], thread_id: str = "t") -> list[Any]:
    """AG-UI messages as single records of one thread; what is no object stays what it is."""
    return [
        {"threadId": thread_id, **message} if isinstance(message, dict) else message for message in messages
    ]


def comparable(message: dict[str, Any]) -> dict[str, Any]:
    """A LangChain row message in the shape of the cases: type and data in one, no call type."""
    flat = {"type": message["type"], **message["data"]}
    if "tool_calls" in flat:
        flat["tool_calls"] = [
            {key: value for key, value in call.items() if key != "type"} for call in flat["tool_calls"]
        ]
    return flat
