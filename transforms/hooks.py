"""A user's own functions: found by `module:function`, and kept from taking the job down."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import msgspec

from schemas.records import Attachment, ChatMessage
from schemas.turns import FilePart, Turn
from transforms.js_text import scrubbed, without_lone_surrogates


class HookFailed(Exception):
    """A hook raised, or gave something that is no message."""


def hook_failed(error: Exception) -> HookFailed:
    """What a hook raised, in a line that can be written to a file."""
    text = without_lone_surrogates(f"{type(error).__name__}: {error}")
    return HookFailed(text[:500])


def hook_function(spec: str, option: str) -> Callable[..., Any]:
    """The function that `module:function` names. Raises ValueError, with the option's name."""
    module_name, _, name = spec.partition(":")
    if not module_name or not name:
        raise ValueError(f"--{option} {spec!r} is not of the form module:function")
    try:
        function = getattr(importlib.import_module(module_name), name)
    except ImportError as error:
        raise ValueError(f"--{option} {spec!r} cannot be imported: {error}") from None
    except AttributeError:
        raise ValueError(f"--{option}: module {module_name} has no {name!r}") from None
    if not callable(function):
        raise ValueError(f"--{option} {spec!r} is not a function")
    return function  # type: ignore[no-any-return]


def source_of(message: ChatMessage, thread_id: str) -> dict[str, Any]:
    """The record as a hook sees it: the fields that the job reads, in the Chat SDK's names."""
    return {
        "_type": "chat:Message",
        "id": message.id,
        "threadId": thread_id,
        "text": message.text,
        "author": {"isMe": message.is_me, "userName": message.user_name},
        "metadata": {"dateSent": message.sent_ms},
        "attachments": [attachment_dict(attachment) for attachment in message.attachments],
        "links": [msgspec.to_builtins(link) for link in message.links],
    }


def attachment_dict(attachment: Attachment) -> dict[str, Any]:
    built: dict[str, Any] = msgspec.to_builtins(attachment)
    return built


def transformed(
    hook: Callable[..., Any], message: dict[str, Any], source: dict[str, Any]
) -> dict[str, Any] | None:
    """What the hook makes of a message; None to skip it. Raises HookFailed."""
    try:
        result = hook(message, source)
        if result is None:
            return None
        plain = scrubbed(msgspec.to_builtins(result))
        msgspec.json.encode(plain)
    except RecursionError:
        raise HookFailed("the hook's message is nested too deep") from None
    except Exception as error:  # the hook is the user's: whatever it raises is its message's end
        raise hook_failed(error) from None
    if not isinstance(plain, dict) or not isinstance(plain.get("role"), str):
        raise HookFailed("the hook must give a message with a role, or None")
    if not isinstance(plain.get("content"), (str, list)):
        raise HookFailed("the hook's message must have a content: a string or a list of parts")
    return plain


def turn_of_message(message: dict[str, Any], original: Turn) -> Turn:
    """The turn that an AI SDK message stands for, in the place of the original. Raises HookFailed."""
    role = message["role"]
    if role not in ("user", "assistant", "system"):
        raise HookFailed(f"the hook's message has the role {role!r}: not user, assistant or system")
    turn = Turn(role, "", original.source, original.message_id, original.sent_ms)
    content = message["content"]
    if isinstance(content, str):
        turn.text = content
        return turn
    texts: list[str] = []
    files: list[FilePart] = []
    for part in content:
        kind = part.get("type") if isinstance(part, dict) else None
        if kind == "text" and isinstance(part.get("text"), str):
            texts.append(part["text"])
        elif kind == "file":
            files.append(_file_part(part))
        else:
            raise HookFailed(f"the hook's message has a part of the type {kind!r}: not text or file")
    turn.text, turn.files = "\n\n".join(texts), files
    return turn


def _file_part(part: dict[str, Any]) -> FilePart:
    head, comma, data = str(part.get("data", "")).partition(";base64,")
    media_type = part.get("mediaType")
    if not comma or not head.startswith("data:") or not isinstance(media_type, str):
        raise HookFailed("the hook's file part needs a mediaType and a data url in base64")
    kind = "image" if media_type.startswith("image/") or not media_type else "text-file"
    return FilePart(kind, media_type, data, part.get("filename"), "filename" in part)  # type: ignore[arg-type]
