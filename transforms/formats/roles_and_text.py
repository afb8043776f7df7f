"""Format `messages`: role and text. Calls, results and images have no place in it."""

from __future__ import annotations

from typing import Any

from schemas.reasons import Repair
from schemas.turns import RepairNote, Turn
from transforms.formats.inlined import text_without_images


def role_and_text(turn: Turn, notes: list[RepairNote]) -> dict[str, Any] | None:
    """`{role, content}`, content a string."""
    if turn.role == "tool":
        detail = f"result of {turn.tool_name or 'a tool'} ({turn.result_of!r})"
        notes.append(RepairNote(turn.message_id, Repair.NO_PLACE_IN_FORMAT, detail))
        return None
    for call in turn.calls:
        detail = f"call of {call.name} ({call.id!r})"
        notes.append(RepairNote(turn.message_id, Repair.NO_PLACE_IN_FORMAT, detail))
    if turn.calls and not turn.text:
        return None
    text = text_without_images(turn, notes)
    return None if text is None else {"role": turn.role, "content": text}
