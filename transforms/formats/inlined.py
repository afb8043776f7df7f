"""Text files inside the text of a turn, the way toTanStackMessages of Chat SDK 4.41 writes them."""

from __future__ import annotations

from schemas.reasons import Repair
from schemas.turns import FilePart, RepairNote, Turn
from transforms.attachments import text_of
from transforms.js_text import is_blank


def text_with_files(turn: Turn) -> str:
    """The turn's text, then a block for each text file, split by blank lines."""
    blocks = [_block(part) for part in turn.files if part.kind == "text-file"]
    if not blocks:
        return turn.text
    files = "\n\n".join(blocks)
    return f"{turn.text}\n\n{files}" if turn.text else files


def images(turn: Turn) -> list[FilePart]:
    """The turn's images, in order."""
    return [part for part in turn.files if part.kind == "image"]


def text_without_images(turn: Turn, notes: list[RepairNote]) -> str | None:
    """The text for a format that has no place for images: each is noted; None if nothing is left."""
    if not turn.files:
        return turn.text
    for image in images(turn):
        named = f" {image.name!r}" if image.name else ""
        detail = f"image{named} ({image.media_type})"
        notes.append(RepairNote(turn.message_id, Repair.NO_PLACE_IN_FORMAT, detail))
    text = text_with_files(turn)
    return None if is_blank(text) else text


def _block(part: FilePart) -> str:
    name = "attachment" if part.name is None else part.name
    return f"[File: {name} ({part.media_type})]\n{text_of(part)}"
