"""AG-UI messages to turns, as far as one message tells: role, content, native calls.

What needs its neighbours (which result answers which call, which text is a call) is the guards'.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from schemas.reasons import Repair
from schemas.records import AguiMessage
from schemas.turns import RepairNote, Role, ToolCall, Turn
from transforms.js_text import is_blank, is_truthy
from transforms.tool_calls import (
    ArgumentsFound,
    call_entries,
    is_well_formed_call,
    parsed_arguments,
)

_ROLES: dict[Any, Role] = {
    "user": "user",
    "assistant": "assistant",
    "system": "system",
    "developer": "system",
    "tool": "tool",
}
_DISPLAY_ROLES = ("reasoning", "activity")


class Heard(msgspec.Struct, gc=False):
    """What a message says: its role, its text, and its native calls, with what was wrong in them.

    `role` is None where the message has no part in a history; `left_out` then says why.
    """

    role: Role | None
    text: str
    calls: Sequence[ToolCall] = ()
    notes: Sequence[RepairNote] = ()
    left_out: Repair | None = None


def heard(message: AguiMessage) -> Heard:
    """One message read strictly: text of all text parts, malformed calls gone, arguments objects."""
    role = _ROLES.get(message.role) if isinstance(message.role, str) else None
    if message.malformed:
        return Heard(None, "", left_out=Repair.MALFORMED_MESSAGE)
    if role is None:
        known = isinstance(message.role, str) and message.role in _DISPLAY_ROLES
        return Heard(None, "", left_out=Repair.DISPLAY_ROLE if known else Repair.UNKNOWN_ROLE)
    message_id = id_of(message)
    text, dropped = _text_of_content(message.content)
    notes = []
    if dropped:
        notes.append(RepairNote(message_id, Repair.CONTENT_PARTS_DROPPED, dropped))
    calls: list[ToolCall] = []
    if role == "assistant":
        calls, call_notes = _native_calls(message, message_id)
        notes += call_notes
    return Heard(role, text, calls, notes)


def plain_turn(message: AguiMessage, source: int) -> Turn | None:
    """The turn of a message that is text and nothing else, as nearly all are; None for any other."""
    role = _ROLES.get(message.role) if isinstance(message.role, str) else None
    if role is None or not isinstance(message.content, str) or message.malformed:
        return None
    if role == "assistant" and message.tool_calls is not None:
        return None
    return Turn(role, message.content, source, id_of(message), message.sent_ms)


def id_of(message: AguiMessage) -> str | None:
    """The message's id, or None where it has none."""
    return message.id if isinstance(message.id, str) and message.id else None


def answered_id(message: AguiMessage) -> Any:
    """The call id that a tool message answers: `toolCallId`, or `id` where that is no id."""
    return message.tool_call_id if is_truthy(message.tool_call_id) else message.id


def _text_of_content(content: Any) -> tuple[str, str]:
    """The text of a `content` value, and which parts of it have no place in a turn."""
    if isinstance(content, str):
        return content, ""
    if not isinstance(content, list):
        return "", "" if content is None else f"content is {type(content).__name__}, not text"
    texts: list[str] = []
    others: list[str] = []
    for part in content:
        kind = part.get("type") if isinstance(part, dict) else None
        if kind == "text" and isinstance(part.get("text"), str):
            texts.append(part["text"])
        else:
            others.append(kind if isinstance(kind, str) else type(part).__name__)
    return "\n\n".join(text for text in texts if not is_blank(text)), ", ".join(others)


def _native_calls(message: AguiMessage, message_id: str | None) -> tuple[list[ToolCall], list[RepairNote]]:
    calls: list[ToolCall] = []
    notes: list[RepairNote] = []
    for entry in call_entries(message.tool_calls):
        if not is_well_formed_call(entry):
            notes.append(RepairNote(message_id, Repair.MALFORMED_CALL, _shown(entry)))
            continue
        arguments = entry["function"].get("arguments")
        args, found = parsed_arguments(arguments)
        if not isinstance(args, dict):
            args, found = {}, ArgumentsFound.UNREADABLE
        mended = None
        if found is not ArgumentsFound.AS_WRITTEN:
            recovered = found is ArgumentsFound.RECOVERED
            reason = Repair.ARGUMENTS_RECOVERED if recovered else Repair.ARGUMENTS_UNREADABLE
            mended = RepairNote(message_id, reason, _shown(arguments))
        calls.append(ToolCall(entry.get("id"), entry["function"].get("name"), args, mended))
    return calls, notes


def _shown(value: Any) -> str:
    """A value from the archive in a repair's detail: JSON, cut to a line."""
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return text if len(text) <= 200 else text[:199] + "…"
