"""Format `langchain`: `{type, data}` as langchain-core's `messages_from_dict` takes it."""

from __future__ import annotations

from typing import Any

from schemas.turns import RepairNote, Turn
from transforms.formats.openai import content_with_images

_TYPES = {"user": "human", "assistant": "ai", "system": "system", "tool": "tool"}


def langchain_message(turn: Turn, _notes: list[RepairNote]) -> dict[str, Any] | None:
    """`{"type": human|ai|system|tool, "data": {content, tool_calls?, tool_call_id?, name?}}`."""
    data: dict[str, Any] = {"content": content_with_images(turn)}
    if turn.calls:
        data["tool_calls"] = [
            {"id": call.id, "name": call.name, "args": call.args, "type": "tool_call"} for call in turn.calls
        ]
    if turn.role == "tool":
        data["tool_call_id"] = turn.result_of
        if turn.tool_name:
            data["name"] = turn.tool_name
        if turn.failed:
            data["status"] = "error"
    return {"type": _TYPES[turn.role], "data": data}
