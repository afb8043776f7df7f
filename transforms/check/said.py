"""Messages of a replay dataset as the checker hears them: LangChain, OpenAI or AG-UI, one by one."""

from __future__ import annotations

import json
from typing import Any

import msgspec

_ROLES = {
    "human": "user",
    "user": "user",
    "ai": "assistant",
    "assistant": "assistant",
    "system": "system",
    "developer": "system",
    "tool": "tool",
}


class SaidCall(msgspec.Struct):
    """A call: its id and whether its arguments are a JSON object."""

    id: Any
    has_object: bool


class Said(msgspec.Struct):
    """One message: its role, its texts, whether it holds anything else, its calls, what it answers."""

    role: str
    texts: list[str]
    other_parts: int = 0
    calls: list[SaidCall] = []
    answers: Any = None
    name: Any = None


class Unheard(ValueError):
    """The value is no message of a known vocabulary."""


def said(message: Any) -> Said:
    """The message, whatever vocabulary it is in. Raises Unheard."""
    if isinstance(message, str):
        try:
            message = json.loads(message)
        except (ValueError, RecursionError):
            raise Unheard("not JSON") from None
    if not isinstance(message, dict):
        raise Unheard(f"a {type(message).__name__}, not a message")
    kind = message.get("type")
    data = message.get("data")
    if isinstance(data, dict) and isinstance(kind, str):
        message = {**data, "role": kind}
    elif "role" not in message and isinstance(kind, str):
        message = {**message, "role": kind}
    role = _ROLES.get(message.get("role", ""))
    if role is None:
        raise Unheard(f"role {message.get('role')!r}")
    texts, others = _parts(message.get("content"))
    return Said(
        role,
        texts,
        others,
        [_call(call) for call in message.get("tool_calls") or message.get("toolCalls") or []],
        # AG-UI lets a result bear its call's id as its own.
        message.get("tool_call_id") or message.get("toolCallId") or message.get("id"),
        message.get("name"),
    )


def _parts(content: Any) -> tuple[list[str], int]:
    if content is None:
        return [], 0
    if isinstance(content, str):
        return [content] if content else [], 0
    if not isinstance(content, list):
        raise Unheard(f"content is a {type(content).__name__}")
    texts = []
    others = 0
    for part in content:
        if isinstance(part, str):
            texts.append(part)
        elif isinstance(part, dict) and isinstance(part.get("text"), str):
            texts.append(part["text"])
        else:
            others += 1
    return texts, others


def _call(call: Any) -> SaidCall:
    if not isinstance(call, dict):
        raise Unheard("a tool call that is no object")
    function = call.get("function")
    arguments = call.get("args")
    if isinstance(function, dict):
        arguments = function.get("arguments")
        if isinstance(arguments, str):
            try:
                arguments = json.loads(arguments)
            except (ValueError, RecursionError):
                arguments = None
    return SaidCall(call.get("id"), isinstance(arguments, dict))
