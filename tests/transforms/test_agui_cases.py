"""Section B: ag_ui.jsonl with the upstream guards."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from case_files import cases, plain
from threads import comparable, messages_of, outcome_of, target

from schemas.formats import Format
from schemas.reasons import Repair
from transforms.guards.rules import Guards

# The bad entry alone goes, where upstream aborts the whole history: what then stays.
EMPTY_CALLER = [{"type": "ai", "content": ""}]
THROWS: dict[str, list[dict[str, Any]]] = {
    "args/arguments_object_throws": EMPTY_CALLER,
    "args/arguments_number_throws": EMPTY_CALLER,
    "null_element_throws": [{"type": "human", "content": "hi"}],
    "toolCalls/object_throws": [{"type": "ai", "content": "hey"}],
    "toolCalls/null_entry_throws": EMPTY_CALLER,
    "toolCalls/no_function_throws": EMPTY_CALLER,
}
# Numbers that no JSON can hold (JavaScript makes them Infinity), and a depth that Python's reader
# does not go to: here such arguments are unreadable, `{}`, and a repair says so.
UNREADABLE_HERE = ("args/overflow_exp", "args/int_5000_digits", "args/deep_nesting_2000")
# Integers beyond 2^53 keep their digits here, where JavaScript rounds them.
EXACT_INTEGERS = ("args/big_int", "args/float_integral")

UPSTREAM = cases("ag_ui.jsonl")
WARNINGS = {
    Repair.ORPHAN_RESULT: "orphan",
    Repair.ARGUMENTS_RECOVERED: "recovered",
    Repair.ARGUMENTS_UNREADABLE: "unparseable",
}


def without_minted_ids(messages: list[Any]) -> list[Any]:
    text = re.sub(r'"(<uuid:\d+>|promoted_\d+)"', '"minted"', json.dumps(messages))
    return json.loads(text)


def without_absent(message: dict[str, Any]) -> dict[str, Any]:
    """Without the keys whose value JavaScript leaves undefined: JSON does not write them."""
    kept = {key: value for key, value in message.items() if value is not None}
    if "tool_calls" in kept:
        kept["tool_calls"] = [
            {key: value for key, value in call.items() if value is not None} for call in kept["tool_calls"]
        ]
    return kept


@pytest.mark.parametrize("case", UPSTREAM, ids=lambda case: case["name"])
def test_upstream_guards_give_what_upstream_gives(case: dict[str, Any]) -> None:
    to = target(
        Format.LANGCHAIN,
        guards=Guards.UPSTREAM,
        allowed=case["options"].get("allowedToolNames", ()),
    )
    # As one whole history, so that upstream's order is the order, whatever ids the messages have.
    history = {"threadId": "t", "messages": case["input"]}
    outcome = outcome_of([history], to)
    given = [without_absent(comparable(message)) for message in messages_of(outcome)]
    if "throws" in case["expected"]:
        assert given == THROWS[case["name"]]
        return
    expected = [without_absent(message) for message in plain(case["expected"]["messages"])]
    notes = [WARNINGS[note.reason] for note in outcome_notes(outcome) if note.reason in WARNINGS]
    if case["name"] in UNREADABLE_HERE:
        assert given[0]["tool_calls"][0]["args"] == {}
        assert notes == ["unparseable"]
    elif case["name"] in EXACT_INTEGERS:
        args = given[0]["tool_calls"][0]["args"]
        assert {key: float(value) for key, value in args.items()} == expected[0]["tool_calls"][0]["args"]
    elif not expected:
        # No row: what was dropped is in the ledger, not in repairs.
        assert given == []
    else:
        assert without_minted_ids(given) == without_minted_ids(expected)
        assert notes == case["expected"]["warnings"]


def outcome_notes(outcome: Any) -> list[Any]:
    return outcome.row.repairs if outcome.row is not None else []


def test_every_listed_exception_is_a_case() -> None:
    names = {case["name"] for case in UPSTREAM}
    throwing = {case["name"] for case in UPSTREAM if "throws" in case["expected"]}
    assert set(THROWS) == throwing
    assert {*UNREADABLE_HERE, *EXACT_INTEGERS} <= names
