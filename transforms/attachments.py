"""Which attachments a model sees, and where their data may come from.

Source of the rules: Chat SDK 4.41, `fetchAttachmentContent`. There `fetchData` reads the platform;
here data comes from inside the record, or from below one folder that the user named. Never through
`..`, an absolute path, a link that leads out, or the network.
"""

from __future__ import annotations

import base64
import binascii
import os
import re
from collections.abc import Callable
from pathlib import Path

from msgspec import UNSET

from schemas.reasons import Repair
from schemas.records import Attachment
from schemas.turns import FilePart
from transforms.js_text import without_lone_surrogates

TEXT_MEDIA_PREFIXES = (
    "text/",
    "application/json",
    "application/xml",
    "application/javascript",
    "application/typescript",
    "application/yaml",
    "application/x-yaml",
    "application/toml",
)
DEFAULT_IMAGE_TYPE = "image/png"
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_BLANKS = re.compile(r"[ \t\r\n]+")

# Reads the data that an attachment's url names, or raises AttachmentRefused.
FileReader = Callable[[str], bytes]


class AttachmentRefused(Exception):
    """The data could not be had; carries the reason of the repair."""

    def __init__(self, reason: Repair, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason


def file_part(attachment: Attachment, read_file: FileReader | None) -> FilePart | None:
    """The attachment with its data, or None where it is of no kind that a model sees.

    Raises AttachmentRefused where it is of such a kind, but its data cannot be had.
    """
    kind = attachment.type
    media_type = attachment.mime_type
    if kind == "image":
        media_type = DEFAULT_IMAGE_TYPE if media_type is None else media_type
    elif not (kind == "file" and media_type and media_type.startswith(TEXT_MEDIA_PREFIXES)):
        return None
    name = attachment.name
    return FilePart(
        kind="image" if kind == "image" else "text-file",
        media_type=media_type,
        data=_base64_data(attachment, read_file),
        name=None if name is UNSET else name,
        has_name=name is not UNSET,
    )


def is_unsupported(attachment: Attachment) -> bool:
    """Whether the serving side reports it as unsupported: video and audio, nothing else."""
    return attachment.type in ("video", "audio")


def text_of(part: FilePart) -> str:
    """A text file's text: UTF-8, each broken sequence U+FFFD, a byte-order mark kept."""
    return base64.b64decode(part.data).decode("utf-8", "replace")


def described(attachment: Attachment) -> str:
    """An attachment in a few words, for a repair."""
    name = attachment.name if isinstance(attachment.name, str) else None
    words = [attachment.type or "untyped", attachment.mime_type, name and repr(name[:80])]
    return " ".join(word for word in words if word)


def _base64_data(attachment: Attachment, read_file: FileReader | None) -> str:
    if attachment.data is not None:
        try:
            packed = _BLANKS.sub("", attachment.data)
            raw = base64.b64decode(packed + "=" * (-len(packed) % 4), validate=True)
        except (binascii.Error, ValueError) as error:
            raise AttachmentRefused(Repair.ATTACHMENT_UNREADABLE, f"data is not base64 ({error})") from None
    elif attachment.url is None or read_file is None:
        raise AttachmentRefused(Repair.ATTACHMENT_WITHOUT_DATA, "no data in the record")
    else:
        raw = read_file(attachment.url)
    return base64.b64encode(raw).decode("ascii")


class RootedReader:
    """Reads files below one local folder, and refuses every way out of it."""

    def __init__(self, root: str, limit: int = 64 << 20) -> None:
        """`limit` is the largest file in bytes. Raises ValueError where `root` is no folder."""
        self._root = os.path.realpath(root)
        self._limit = limit
        if not os.path.isdir(self._root):
            raise ValueError(f"--attachment_root {root!r} is not a folder")

    def __call__(self, url: str) -> bytes:
        if _SCHEME.match(url) or url.startswith(("//", "\\\\")):
            raise AttachmentRefused(Repair.ATTACHMENT_WITHOUT_DATA, "the url is not a file")
        relative = url.replace("\\", "/")
        if relative.startswith("/") or ".." in relative.split("/") or "\0" in relative:
            raise AttachmentRefused(
                Repair.ATTACHMENT_OUTSIDE_ROOT, f"the path {url[:200]!r} leads out of the root"
            )
        return self._read(relative)

    def _read(self, relative: str) -> bytes:
        shown = repr(without_lone_surrogates(relative)[:200])
        try:
            path = os.path.realpath(os.path.join(self._root, relative), strict=True)
            if os.path.commonpath([path, self._root]) != self._root:
                raise AttachmentRefused(
                    Repair.ATTACHMENT_OUTSIDE_ROOT, f"the path {shown} links out of the root"
                )
            if not os.path.isfile(path):
                raise AttachmentRefused(Repair.ATTACHMENT_UNREADABLE, f"{shown} is not a file")
            if os.path.getsize(path) > self._limit:
                raise AttachmentRefused(
                    Repair.ATTACHMENT_UNREADABLE, f"{shown} is larger than {self._limit} bytes"
                )
            return Path(path).read_bytes()
        except (OSError, ValueError) as error:
            problem = error.strerror if isinstance(error, OSError) else str(error)
            raise AttachmentRefused(
                Repair.ATTACHMENT_UNREADABLE, f"{shown}: {problem or 'cannot be read'}"
            ) from None
