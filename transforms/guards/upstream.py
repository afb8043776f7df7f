"""The guards as gaunt-sloth 4271be4 has them, faults included: for comparison, and to prove parity.

Forward (EXT-43 there): a text call is promoted only when the next message is a tool result.
Backward (RC-18): a tool result whose id no preceding assistant call bears is dropped.
The two do not know of each other: a promoted call has an id that no result answers. Upstream mints
a random one; here it is `promoted_N`, since a data file holds no random value.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import Any

from schemas.reasons import Repair
from schemas.records import AguiMessage
from schemas.turns import Conversion, LeftOut, RepairNote, ToolCall, Turn
from transforms.agui_turns import answered_id, id_of
from transforms.js_text import is_truthy
from transforms.text_calls import text_calls
from transforms.tool_calls import (
    ArgumentsFound,
    call_entries,
    is_well_formed_call,
    parsed_arguments,
)

_ROLES = {"assistant": "assistant", "system": "system", "developer": "system", "tool": "tool"}


def upstream_history(messages: Sequence[AguiMessage], allowed: Set[str]) -> Conversion:
    """The turns that upstream gives. An entry that aborts the whole history there goes alone here."""
    history = Conversion([], [], [])
    name_of_call: dict[Any, Any] = {}
    promoted = 0
    for at, message in enumerate(messages):
        if message.malformed:
            _leave_out(history, at, message, Repair.MALFORMED_MESSAGE, "not an object")
            continue
        role = _ROLES.get(message.role, "user") if isinstance(message.role, str) else "user"
        text = message.content if isinstance(message.content, str) else ""
        turn = Turn(role, text, at, id_of(message), message.sent_ms)  # type: ignore[arg-type]
        if role == "tool":
            answered = answered_id(message)
            if not is_truthy(answered) or _key(answered) not in name_of_call:
                _leave_out(history, at, message, Repair.ORPHAN_RESULT, f"answers {answered!r}")
                continue
            turn.result_of = answered
            turn.tool_name = name_of_call[_key(answered)] or None
        elif role == "assistant":
            turn.calls = _native_calls(history, message)
            next_role = messages[at + 1].role if at + 1 < len(messages) else None
            if not call_entries(message.tool_calls) and next_role == "tool":
                for call in text_calls(text, allowed) or []:
                    promoted += 1
                    turn.text = ""
                    minted = ToolCall(f"promoted_{promoted}", call.name, call.args)
                    turn.calls = [*turn.calls, minted]
                    _note(history, message, Repair.CALL_PROMOTED, call.name)
            for made in turn.calls:
                if is_truthy(made.id):
                    name_of_call[_key(made.id)] = made.name
        history.turns.append(turn)
    return history


def _native_calls(history: Conversion, message: AguiMessage) -> list[ToolCall]:
    calls: list[ToolCall] = []
    for entry in call_entries(message.tool_calls):
        if not is_well_formed_call(entry):
            _note(history, message, Repair.MALFORMED_CALL, type(entry).__name__)
            continue
        args, found = parsed_arguments(entry["function"].get("arguments"))
        if found is ArgumentsFound.RECOVERED:
            _note(history, message, Repair.ARGUMENTS_RECOVERED, "")
        elif found is ArgumentsFound.UNREADABLE:
            _note(history, message, Repair.ARGUMENTS_UNREADABLE, "")
        calls.append(ToolCall(entry.get("id"), entry["function"].get("name"), args))
    return calls


def _key(call_id: Any) -> Any:
    """A JavaScript Map's key: 1 and "1" differ, and an object is only itself."""
    return (
        type(call_id).__name__,
        call_id if isinstance(call_id, (str, int, float)) else id(call_id),
    )


def _note(history: Conversion, message: AguiMessage, reason: Repair, detail: str) -> None:
    history.repairs.append(RepairNote(id_of(message), reason, detail))


def _leave_out(history: Conversion, at: int, message: AguiMessage, reason: Repair, detail: str) -> None:
    _note(history, message, reason, detail)
    history.left_out.append(LeftOut(at, reason))
