"""Random AG-UI histories, made to be nasty; and the strict guards on them."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st

from schemas.records import AguiMessage, History, Place, Record
from schemas.turns import Conversion
from transforms.decode import record_of_line
from transforms.formats.langchain import langchain_message
from transforms.guards.rules import GuardOptions
from transforms.guards.strict import strict_history

TOOLS = ("f", "g")
IDS = st.sampled_from(["c1", "c2", "c3", " c1 ", "", "x.y:z", "x_y_z", "L" * 70, None, 7])
TEXTS = st.sampled_from(
    ["hi", "fine ", "", " ", "\u0085", "\ufeff", "é😀", "[tool:f]{}", '[tool:g]{"a":1}[tool:f]{}']
)
ARGUMENTS = st.sampled_from(
    ["{}", '{"a":1}', "", "null", "[1]", '{"a":1}{}', "{", '{"b":"\\ud83d"}', None, {"a": 1}, 5]
)
CALL = st.one_of(
    st.fixed_dictionaries(
        {"id": IDS, "type": st.just("function"),
         "function": st.fixed_dictionaries({"name": st.sampled_from(["f", "g", "", None]), "arguments": ARGUMENTS})}
    ),
    st.sampled_from([None, 5, {}, {"id": "c1"}]),
)  # fmt: skip
CONTENT = st.one_of(
    TEXTS,
    TEXTS,
    st.none(),
    st.just(5),
    st.lists(
        st.one_of(
            st.fixed_dictionaries({"type": st.just("text"), "text": TEXTS}), st.just({"type": "image"})
        ),
        max_size=2,
    ),
)
USER = st.fixed_dictionaries({"role": st.just("user"), "content": CONTENT})
ASSISTANT = st.fixed_dictionaries(
    {"role": st.just("assistant"), "content": CONTENT},
    optional={"toolCalls": st.one_of(st.none(), st.lists(CALL, max_size=3), st.just({}))},
)
RESULT = st.fixed_dictionaries(
    {"role": st.just("tool"), "content": st.sampled_from(["ok", "", " ", "done"])},
    optional={"toolCallId": IDS, "error": st.just("bad")},
)
OTHERS = st.sampled_from(
    [
        {"role": "system", "content": "s1"},
        {"role": "developer", "content": "s2"},
        {"role": "system", "content": " "},
        {"role": "reasoning", "content": "hm"},
        {"role": "activity", "content": {"a": 1}},
        {"role": "User", "content": "odd"},
        {"content": "no role"},
        None,
        [],
    ]
)
MESSAGE = st.one_of(USER, ASSISTANT, ASSISTANT, RESULT, RESULT, OTHERS)
HISTORY = st.lists(MESSAGE, max_size=10).map(
    lambda messages: [
        {"id": f"m{at}", **message} if isinstance(message, dict) else message
        for at, message in enumerate(messages)
    ]
)


def agui_messages(messages: list[Any]) -> list[AguiMessage]:
    """The messages as the job reads them from a whole history."""
    line = json.dumps({"threadId": "t", "messages": messages}).encode()
    record = record_of_line(line, Place(0, 0), "ag-ui")
    assert isinstance(record, Record)
    assert isinstance(record.body, History)
    return record.body.messages


def guarded(messages: list[Any], options: GuardOptions) -> Conversion:
    return strict_history(agui_messages(messages), options)


def as_langchain(conversion: Conversion) -> list[dict[str, Any]]:
    messages = []
    for turn in conversion.turns:
        message = langchain_message(turn, [])
        assert message is not None
        messages.append(message)
    return messages


def as_agui(conversion: Conversion) -> list[dict[str, Any]]:
    """The turns as AG-UI messages again: what a client would send back."""
    messages: list[dict[str, Any]] = []
    for at, turn in enumerate(conversion.turns):
        message: dict[str, Any] = {
            "id": turn.message_id or f"new{at}",
            "role": turn.role,
            "content": turn.text,
        }
        if turn.calls:
            message["toolCalls"] = [
                {
                    "id": call.id,
                    "type": "function",
                    "function": {"name": call.name, "arguments": json.dumps(call.args)},
                }
                for call in turn.calls
            ]
        if turn.role == "tool":
            message["toolCallId"] = turn.result_of
        if turn.failed:
            message["error"] = "bad"
        messages.append(message)
    return messages
