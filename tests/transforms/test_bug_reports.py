"""The ag_ui/ cases of bugs.jsonl: public bug reports with what the strict guards must make of them."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from case_files import cases
from threads import agui_records, comparable, messages_of, outcome_of, target

from schemas.formats import Format

BUGS = [case for case in cases("bugs.jsonl") if case["kind"].startswith("ag_ui/")]
ID = re.compile(r"<id:\d+>")


def given_for(case: dict[str, Any], records: list[Any]) -> list[dict[str, Any]]:
    options = case["options"]
    to = target(
        Format.LANGCHAIN,
        allowed=options.get("allowedToolNames", ()),
        provider=options.get("provider"),
    )
    return [comparable(message) for message in messages_of(outcome_of(records, to))]


def ids_in(messages: list[dict[str, Any]]) -> list[str]:
    ids: list[str] = []
    for message in messages:
        ids += [call["id"] for call in message.get("tool_calls", [])]
        ids += [message["tool_call_id"]] if "tool_call_id" in message else []
    return ids


def check(case: dict[str, Any], given: list[dict[str, Any]]) -> None:
    expected = case["expected"]
    match case.get("match"):
        case None:
            assert given == expected
        case "content_contains":
            assert [message["type"] for message in given] == [one["type"] for one in expected]
            for message, one in zip(given, expected, strict=True):
                assert one["content"] in message["content"]
        case "one_result_per_id":
            results = [message["tool_call_id"] for message in given if message["type"] == "tool"]
            assert len(results) == len(set(results))
            assert given == expected
        case "ids_bijective":
            minted = dict(zip(ids_in(expected), ids_in(given), strict=True))
            assert len(set(minted.values())) == len(minted)
            constraint = case.get("id_constraint", {})
            for one in minted.values():
                assert re.search(constraint.get("pattern", "."), one)
                assert len(one) <= constraint.get("max", 1000)
            written = ID.sub(lambda found: minted[found.group()], json.dumps(expected))
            assert given == json.loads(written)
        case other:
            raise AssertionError(f"unknown match {other}")


@pytest.mark.parametrize("case", BUGS, ids=lambda case: case["name"])
def test_as_single_records(case: dict[str, Any]) -> None:
    check(case, given_for(case, agui_records(case["input"])))


@pytest.mark.parametrize("case", BUGS, ids=lambda case: case["name"])
def test_as_one_whole_history(case: dict[str, Any]) -> None:
    check(case, given_for(case, [{"threadId": "t", "messages": case["input"]}]))
