"""The strict guards on random histories: valid for every provider, nothing invented, all explained."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from histories import HISTORY, agui_messages, as_agui, as_langchain, guarded
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.reasons import Repair
from schemas.turns import Conversion
from transforms.agui_turns import answered_id
from transforms.check.history import broken_rules
from transforms.guards.rules import GuardOptions
from transforms.guards.strict import strict_history
from transforms.js_text import is_blank_anywhere
from transforms.providers import RULES, Provider
from transforms.text_calls import text_calls
from transforms.tool_calls import call_entries, is_well_formed_call, parsed_arguments

PROVIDERS = [None, *Provider]
ALLOWED = frozenset({"f", "g"})
RANDOM = settings(max_examples=1000, deadline=None)


def options_for(provider: Provider | None) -> GuardOptions:
    return GuardOptions(allowed_tools=ALLOWED, provider=provider)


def speaks(conversion: Conversion) -> bool:
    return any(turn.role in ("user", "assistant") for turn in conversion.turns)


def texts_in(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [text for item in value.values() for text in texts_in(item)]
    if isinstance(value, list):
        return [text for item in value for text in texts_in(item)]
    return []


@pytest.mark.parametrize("provider", PROVIDERS, ids=str)
@given(messages=HISTORY)
@RANDOM
def test_any_history_comes_out_valid(provider: Provider | None, messages: list[Any]) -> None:
    conversion = guarded(messages, options_for(provider))
    replayed = as_langchain(conversion)
    checked = [provider] if provider else [Provider.OPENAI_CHAT, Provider.OPENAI_RESPONSES]
    for one in checked if speaks(conversion) else []:
        broken = [
            found
            for found in broken_rules(replayed, RULES[one])
            # No provider was named: whose alphabet ids are in is open.
            if provider or found.violation != "call_id_refused"
        ]
        assert not broken
    _nothing_is_invented(messages, replayed)
    _sums_add_up(messages, conversion)
    again = guarded(as_agui(conversion), options_for(provider))
    assert as_langchain(again) == replayed
    assert not again.repairs


def _nothing_is_invented(messages: list[Any], replayed: list[dict[str, Any]]) -> None:
    source = texts_in(json.loads(json.dumps(messages)))
    arguments = [json.dumps(parsed_arguments(text)[0]) for text in source if text]
    promoted = [json.dumps(call.args) for text in source for call in text_calls(text, ALLOWED) or []]
    for message in replayed:
        for part in message["data"]["content"].split("\n\n"):
            assert not part or any(part in text or part == text for text in source)
        for call in message["data"].get("tool_calls", []):
            assert call["args"] == {} or json.dumps(call["args"]) in arguments + promoted
            assert call["name"] in source or call["name"] in ALLOWED


def _sums_add_up(messages: list[Any], conversion: Conversion) -> None:
    """Every message is in a turn, joined to one, or left out: once."""
    places = [turn.source for turn in conversion.turns]
    places += [source for turn in conversion.turns for source in turn.joined]
    places += [left.source for left in conversion.left_out]
    assert sorted(places) == list(range(len(messages)))


@given(messages=HISTORY)
@RANDOM
def test_every_difference_has_exactly_one_repair(messages: list[Any]) -> None:
    conversion = guarded(messages, options_for(None))
    repairs = Counter(note.message_id for note in conversion.repairs)
    expected = differences(messages, conversion)
    assert repairs == expected


def differences(messages: list[Any], conversion: Conversion) -> Counter[str | None]:
    """How many things differ between a message as it stood and as it is now, by message id."""
    found: Counter[str | None] = Counter()
    turns = {turn.source: turn for turn in conversion.turns}
    heard = agui_messages(messages)
    new_ids = _new_call_ids(conversion)
    order = [turn.source for turn in conversion.turns]
    for at, message in enumerate(heard):
        name = message.id if isinstance(message.id, str) else None
        text, other_parts = _content(message.content)
        entries = call_entries(message.tool_calls) if message.role == "assistant" else []
        known = not message.malformed and message.role in ("user", "assistant", "system", "developer", "tool")
        turn = turns.get(at)
        if turn is None:
            lost = len(entries) + bool(other_parts)
            silent = known and message.role != "tool" and is_blank_anywhere(text)
            count = lost if silent and lost else 1 + (bool(other_parts) and known)
            found[name] += count
            continue
        promoted = bool(turn.calls) and not entries
        found[name] += int(bool(other_parts)) + int(turn.text != text)
        if promoted:
            continue
        found[name] += len(entries) - len(turn.calls)
        written = [entry for entry in entries if is_well_formed_call(entry)]
        for call in turn.calls:
            entry = _entry_of(call, written, new_ids)
            found[name] += int(entry.get("id") != call.id)
            arguments, how = parsed_arguments(entry["function"].get("arguments"))
            found[name] += int(not isinstance(arguments, dict) or how.value != "as_written")
        if turn.role == "tool":
            place = order.index(at)
            found[name] += int(any(source < at for source in order[place + 1 :]))
            owner = new_ids[turn.result_of]
            found[name] += int(answered_id(message) != turn.result_of and owner == turn.result_of)
    return +found


def _content(content: Any) -> tuple[str, int]:
    if isinstance(content, str) or content is None:
        return content or "", 0
    if not isinstance(content, list):
        return "", 1
    texts = [part["text"] for part in content if part.get("type") == "text"]
    kept = [text for text in texts if text.strip("\ufeff \n")]
    return "\n\n".join(kept), len(content) - len(texts)


def _new_call_ids(conversion: Conversion) -> dict[Any, Any]:
    """Each call's id, and the id as it was written where only blanks changed or nothing did."""
    ids = {call.id: call.id for turn in conversion.turns for call in turn.calls}
    callers = {turn.message_id for turn in conversion.turns if turn.calls}
    for note in conversion.repairs:
        of_id = note.reason in (Repair.ID_RENAMED, Repair.ID_NORMALIZED)
        if of_id and note.message_id in callers and " -> " in note.detail:
            old, new = note.detail.rsplit(" -> ", 1)
            if new[1:-1] in ids and old != new:
                ids[new[1:-1]] = f"was {old}"
    return ids


def _entry_of(call: Any, written: list[Any], new_ids: dict[Any, Any]) -> dict[str, Any]:
    """The entry that a call was made of: entries keep their order, so the first that fits."""
    for entry in written:
        fits = entry["function"].get("name") == call.name
        clean = str(entry.get("id") or "").strip()
        if fits and (not clean or call.id == clean or str(call.id).startswith(f"{clean}_")):
            written.remove(entry)
            return entry
    raise AssertionError(f"no entry for {call}")


ROUND = st.one_of(
    st.just([{"role": "assistant", "content": "fine"}]),
    st.lists(st.sampled_from(["f", "g"]), min_size=1, max_size=3).map(
        lambda names: [
            {"role": "assistant", "content": "", "toolCalls": names},
            *[{"role": "tool", "content": "ok", "toolCallId": at} for at in range(len(names))],
            {"role": "assistant", "content": "done"},
        ]
    ),
)


def valid_history(rounds: list[list[dict[str, Any]]], system: bool) -> list[dict[str, Any]]:
    """Rounds of user, calls, results and answer, every call with an id of its own."""
    messages: list[dict[str, Any]] = [{"role": "system", "content": "be brief"}] if system else []
    for number, answer in enumerate(rounds):
        messages.append({"role": "user", "content": f"question {number}"})
        for message in answer:
            copy = dict(message)
            if "toolCalls" in copy:
                copy["toolCalls"] = [
                    {
                        "id": f"call{number:04d}{at}",
                        "type": "function",
                        "function": {"name": name, "arguments": '{"n":1}'},
                    }
                    for at, name in enumerate(copy["toolCalls"])
                ]
            if "toolCallId" in copy:
                copy["toolCallId"] = f"call{number:04d}{copy['toolCallId']}"
            messages.append(copy)
    return [{"id": f"m{at}", **message} for at, message in enumerate(messages)]


@pytest.mark.parametrize("provider", PROVIDERS, ids=str)
@given(rounds=st.lists(ROUND, min_size=1, max_size=4), system=st.booleans())
@settings(max_examples=150, deadline=None)
def test_a_valid_history_comes_out_unchanged(
    provider: Provider | None, rounds: list[Any], system: bool
) -> None:
    messages = valid_history(rounds, system)
    conversion = guarded(messages, options_for(provider))
    assert not conversion.repairs
    assert as_agui(conversion) == [
        {
            **message,
            **(
                {"toolCalls": [
                    {**call, "function": {**call["function"], "arguments": '{"n": 1}'}}
                    for call in message["toolCalls"]
                ]}
                if "toolCalls" in message
                else {}
            ),
        }
        for message in messages
    ]  # fmt: skip


def reasons(messages: list[Any], **options: Any) -> list[str]:
    return [
        note.reason.value
        for note in guarded(messages, GuardOptions(allowed_tools=ALLOWED, **options)).repairs
    ]


def user(text: str = "q") -> dict[str, Any]:
    return {"role": "user", "content": text}


def caller(*ids: Any, text: str = "") -> dict[str, Any]:
    calls = [{"id": one, "function": {"name": "f", "arguments": "{}"}} for one in ids]
    return {"role": "assistant", "content": text, "toolCalls": calls}


def result(call_id: Any, text: str = "ok") -> dict[str, Any]:
    return {"role": "tool", "content": text, "toolCallId": call_id}


@pytest.mark.parametrize(
    ("messages", "options", "expected"),
    [
        ([user(), caller("a"), user()], {}, ["unanswered_call"]),
        ([user(), caller("a", text="wait"), user()], {}, ["unanswered_call"]),
        ([user(), caller("a")], {"keep_pending_call": True}, []),
        ([user(), caller("a", "b"), result("b")], {"keep_pending_call": True}, []),
        ([user(), caller("a"), user()], {"keep_pending_call": True}, ["unanswered_call"]),
        ([user(), caller("a"), result("a"), result("a")], {}, ["duplicate_result"]),
        ([user(), result("a"), caller("a")], {}, ["orphan_result", "unanswered_call"]),
        ([user(), caller("a"), user(), result("a")], {}, ["result_moved"]),
        ([user(), caller("a", "b"), result("b"), result("a")], {}, ["result_moved"]),
        ([user(), caller("a"), result("a"), caller("a"), result("a")], {}, ["id_renamed"]),
        ([user(), caller("a"), user(), caller("a"), result("a")], {}, ["unanswered_call"]),
        ([user(), caller(None), result("a")], {}, ["call_without_id"]),
        ([user(), caller(None, None), result("a"), result("b")], {}, ["call_without_id"] * 2 + ["orphan_result"] * 2),
        ([user(), caller("a"), result(" a ")], {}, ["id_normalized"]),
        ([user(), user(" ")], {}, ["blank_message"]),
        ([user(), {"role": "assistant", "content": "[tool:f]{}"}, result("a")], {}, ["call_promoted"]),
        ([user(), {"role": "assistant", "content": "[tool:f]{}"}, result("a"), result("b")], {}, ["orphan_result"] * 2),
        ([user(), caller("a.b"), result("a.b")], {"provider": Provider.ANTHROPIC}, ["id_mapped"]),
        ([{"role": "assistant", "content": "hi"}, user()], {"provider": Provider.ANTHROPIC}, ["before_first_user"]),
        ([user(), {"role": "system", "content": "s"}], {"provider": Provider.ANTHROPIC}, ["system_moved"]),
        ([user(), user()], {"provider": Provider.GEMINI}, ["turns_joined"]),
        ([user(), user()], {"provider": Provider.ANTHROPIC}, []),
        ([user(), caller("abcdefghi"), result("abcdefghi"), user()], {"provider": Provider.MISTRAL}, ["user_behind_result"] * 2),
    ],
)  # fmt: skip
def test_reasons(messages: list[Any], options: dict[str, Any], expected: list[str]) -> None:
    assert reasons(messages, **options) == expected


def test_a_call_turn_takes_the_text_before_it_for_gemini() -> None:
    messages = [user(), {"role": "assistant", "content": "let me look"}, caller("a"), result("a")]
    conversion = guarded(messages, GuardOptions(provider=Provider.GEMINI))
    assert [message["type"] for message in as_langchain(conversion)] == ["human", "ai", "tool"]
    joined = conversion.turns[1]
    assert (joined.text, [call.id for call in joined.calls], joined.joined) == ("let me look", ["a"], [2])


def long_thread(messages: int) -> list[Any]:
    """Every kind of repair, again and again: one id for all calls, late results, text calls."""
    block = [
        user("question"),
        caller("c", "d", None),
        result("d"),
        user("wait"),
        result("c"),
        {"role": "reasoning", "content": "hm"},
        {"role": "assistant", "content": "[tool:f]{}"},
        result("e"),
        caller("gone"),
        {"role": "assistant", "content": "answer"},
    ]
    return (block * (messages // len(block) + 1))[:messages]


def lines_executed(work: Callable[[], Any]) -> int:
    """How many lines of Python it takes: the same on each run, however busy the machine is."""
    count = 0

    def trace(_frame: Any, event: str, _argument: Any) -> Any:
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return count


@pytest.mark.parametrize("provider", PROVIDERS, ids=str)
def test_work_grows_with_the_thread_and_not_faster(provider: Provider | None) -> None:
    taken = {}
    for size in (300, 3_000):
        messages = agui_messages(long_thread(size))
        taken[size] = lines_executed(partial(strict_history, messages, options_for(provider)))
    # Ten times the messages; something quadratic would take a hundred times as many.
    assert taken[3_000] < 11 * taken[300]
