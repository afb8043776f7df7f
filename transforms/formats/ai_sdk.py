"""Format `ai-sdk`: what toAiMessages of Chat SDK 4.41 gives; for tools, AI SDK 5 ModelMessages."""

from __future__ import annotations

from typing import Any

from schemas.turns import FilePart, RepairNote, Turn


def ai_sdk_message(turn: Turn, _notes: list[RepairNote]) -> dict[str, Any] | None:
    """`{role, content}`; content a string, or a list of parts where a string cannot hold it."""
    if turn.role == "tool":
        kind = "error-text" if turn.failed else "text"
        result = {
            "type": "tool-result",
            "toolCallId": turn.result_of,
            "toolName": turn.tool_name,
            "output": {"type": kind, "value": turn.text},
        }
        return {"role": "tool", "content": [result]}
    parts = [_file(part) for part in turn.files] + [
        {"type": "tool-call", "toolCallId": call.id, "toolName": call.name, "input": call.args}
        for call in turn.calls
    ]
    if not parts:
        return {"role": turn.role, "content": turn.text}
    text = [{"type": "text", "text": turn.text}] if turn.text else []
    return {"role": turn.role, "content": text + parts}


def _file(part: FilePart) -> dict[str, Any]:
    written: dict[str, Any] = {
        "type": "file",
        "data": f"data:{part.media_type};base64,{part.data}",
        "mediaType": part.media_type,
    }
    if part.has_name:
        written["filename"] = part.name
    return written
