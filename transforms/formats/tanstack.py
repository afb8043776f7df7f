"""Format `tanstack`: what toTanStackMessages of Chat SDK 4.41 gives; for tools, TanStack AI's own.

TanStack AI hands system prompts over beside the messages: a system turn has no place among them.
"""

from __future__ import annotations

from typing import Any

import msgspec

from schemas.reasons import Repair
from schemas.turns import RepairNote, Turn
from transforms.formats.inlined import images, text_with_files


def tanstack_message(turn: Turn, notes: list[RepairNote]) -> dict[str, Any] | None:
    """`{role, content, toolCalls?, toolCallId?}`; text files inlined, images as parts."""
    if turn.role == "system":
        detail = f"system message: {turn.text[:200]}"
        notes.append(RepairNote(turn.message_id, Repair.NO_PLACE_IN_FORMAT, detail))
        return None
    text = text_with_files(turn)
    pictures = [
        {
            "type": "image",
            "source": {"type": "data", "value": image.data, "mimeType": image.media_type},
        }
        for image in images(turn)
    ]
    content: Any = text
    if pictures:
        content = [{"type": "text", "content": text}, *pictures] if text else pictures
    message: dict[str, Any] = {"role": turn.role, "content": content}
    if turn.calls:
        message["toolCalls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {
                    "name": call.name,
                    "arguments": msgspec.json.encode(call.args).decode(),
                },
            }
            for call in turn.calls
        ]
    if turn.role == "tool":
        message["toolCallId"] = turn.result_of
    return message
