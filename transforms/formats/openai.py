"""Formats `trl` and `openai`: chat completion messages; absent keys absent, content never null.

They differ in the arguments of a call: an object for chat templates (`trl`), a JSON string for the
API (`openai`), and in images, which only `openai` has a place for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from schemas.turns import RepairNote, Turn
from transforms.formats.inlined import images, text_with_files, text_without_images


def trl_message(turn: Turn, notes: list[RepairNote]) -> dict[str, Any] | None:
    """`{role, content, tool_calls?, tool_call_id?, name?}` with arguments as objects."""
    text = text_without_images(turn, notes)
    return None if text is None else _with_tools(turn, text, lambda args: args)


def openai_message(turn: Turn, _notes: list[RepairNote]) -> dict[str, Any] | None:
    """`{role, content, …}` with arguments as JSON strings and images as `image_url` parts."""
    return _with_tools(turn, content_with_images(turn), _json_text)


def content_with_images(turn: Turn) -> str | list[dict[str, Any]]:
    """The text, or, where there are images, a list: a text part if there is text, then the images."""
    if not turn.files:
        return turn.text
    text = text_with_files(turn)
    pictures = [
        {
            "type": "image_url",
            "image_url": {"url": f"data:{image.media_type};base64,{image.data}"},
        }
        for image in images(turn)
    ]
    if not pictures:
        return text
    return [{"type": "text", "text": text}, *pictures] if text else pictures


def _with_tools(turn: Turn, content: Any, arguments: Callable[[Any], Any]) -> dict[str, Any]:
    message: dict[str, Any] = {"role": turn.role, "content": content}
    if turn.calls:
        message["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": arguments(call.args)},
            }
            for call in turn.calls
        ]
    if turn.role == "tool":
        message["tool_call_id"] = turn.result_of
        if turn.tool_name:
            message["name"] = turn.tool_name
    return message


def _json_text(args: Any) -> str:
    return msgspec.json.encode(args).decode()
