"""A Chat SDK message to a turn: section A of the rules, as far as one message goes.

Source: Chat SDK 4.41, `buildMessageText`, `toAiMessages`, `toTanStackMessages`. A failed attachment
leaves a repair here; upstream writes a line to the console, or nothing.
"""

from __future__ import annotations

from collections.abc import Callable

from schemas.reasons import Repair
from schemas.records import Attachment, ChatMessage
from schemas.turns import FilePart, RepairNote, Turn
from transforms.attachments import (
    AttachmentRefused,
    FileReader,
    described,
    file_part,
    is_unsupported,
)
from transforms.js_text import is_blank
from transforms.links import link_section

# Called for each video or audio attachment of a user's message, with the attachment and its message.
OnUnsupported = Callable[[Attachment, ChatMessage], None]


def chat_turn(
    message: ChatMessage,
    source: int,
    *,
    include_names: bool = False,
    read_file: FileReader | None = None,
    on_unsupported: OnUnsupported | None = None,
) -> tuple[Turn, list[RepairNote]]:
    """The message as a turn, and a note for each attachment that could not come along.

    A turn with a blank text and no files is an empty message: the caller leaves it out.
    """
    role = "assistant" if message.is_me else "user"
    turn = Turn(
        role,  # type: ignore[arg-type]
        message_text(message, include_names=include_names),
        source,
        message.id,
        message.sent_ms,
    )
    notes: list[RepairNote] = []
    if message.attachments and role == "user":
        files: list[FilePart] = []
        for attachment in message.attachments:
            part = _part(attachment, message, read_file, on_unsupported, notes)
            if part is not None:
                files.append(part)
        turn.files = files
    return turn, notes


def is_empty(turn: Turn) -> bool:
    """Whether upstream drops it: no text but white space, and no attachment."""
    return not turn.files and is_blank(turn.text)


def message_text(message: ChatMessage, *, include_names: bool) -> str:
    """The message's text, a user's with its name before it if wanted, and its links behind."""
    text = message.text
    if is_blank(text):
        text = ""
    elif include_names and not message.is_me:
        name = "undefined" if message.user_name is None else message.user_name
        text = f"[{name}]: {text}"
    if not message.links:
        return text
    section = link_section(message.links)
    return f"{text}\n\n{section}" if text else section


def _part(
    attachment: Attachment,
    message: ChatMessage,
    read_file: FileReader | None,
    on_unsupported: OnUnsupported | None,
    notes: list[RepairNote],
) -> FilePart | None:
    try:
        part = file_part(attachment, read_file)
    except AttachmentRefused as refused:
        notes.append(RepairNote(message.id, refused.reason, f"{described(attachment)}: {refused}"))
        return None
    if part is None:
        notes.append(RepairNote(message.id, Repair.ATTACHMENT_UNSUPPORTED, described(attachment)))
        if on_unsupported is not None and is_unsupported(attachment):
            on_unsupported(attachment, message)
    return part
