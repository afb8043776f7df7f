"""Records as typed values: what is read of a message, and nothing else.

The `Wire…` structs name the fields that are decoded; everything else in a record (`raw`,
`formatted`, reactions, …) is skipped by the decoder. The other types are what the job carries.

None of these can be part of a reference cycle, so the garbage collector need not look at them
(`gc=False`): with hundreds of thousands alive it would look at little else.

Sources: Chat SDK 4.41 SerializedMessage, AG-UI 1.0 message and run input.
"""

from __future__ import annotations

import enum
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from schemas.reasons import Reject


class Kind(enum.IntEnum):
    """The vocabulary of a record."""

    CHAT = 0
    AGUI = 1
    HISTORY = 2


class Link(msgspec.Struct, gc=False, rename="camel", omit_defaults=True):
    """A link preview. A link that embeds a message carries `fetchMessage` at run time only."""

    url: str
    title: str | None = None
    description: str | None = None
    site_name: str | None = None
    fetch_message: Any = None


class Attachment(msgspec.Struct, gc=False, rename="camel", omit_defaults=True):
    """An attachment; `data` is base64. Null and absent differ for `name` and `mimeType` alone."""

    type: str | None = None
    url: str | None = None
    name: str | UnsetType | None = UNSET
    mime_type: str | None = None
    data: str | None = None


class WireAuthor(msgspec.Struct, rename="camel", gc=False):
    is_me: Any = None
    user_name: str | UnsetType | None = UNSET


class WireMetadata(msgspec.Struct, rename="camel", gc=False):
    date_sent: Any = None
    edited_at: Any = None


class WireRecord(msgspec.Struct, rename="camel", gc=False):
    """The union of both vocabularies: one decode tells them apart and reads them."""

    type_tag: Any = msgspec.field(default=None, name="_type")
    thread_id: str | None = None
    id: Any = None
    # Chat SDK
    text: str | None = None
    author: WireAuthor | None = None
    metadata: WireMetadata | None = None
    attachments: list[Attachment] | None = None
    links: list[Link] | None = None
    # AG-UI
    role: Any = UNSET
    content: Any = UNSET
    tool_calls: Any = UNSET
    tool_call_id: Any = UNSET
    name: Any = UNSET
    error: Any = UNSET
    date_sent: Any = None
    messages: list[msgspec.Raw] | None = None
    tools: Any = None


class ChatMessage(msgspec.Struct, gc=False):
    """A Chat SDK message. `user_name` is None where the record has none, "null" where it is null."""

    id: str | None
    text: str
    is_me: bool
    user_name: str | None = None
    sent_ms: int | None = None
    attachments: list[Attachment] = []
    links: list[Link] = []


class AguiBody(msgspec.Struct, gc=False, rename="camel", omit_defaults=True):
    """What is read of an AG-UI message: values of any type, because the guards must see what was sent."""

    role: Any = None
    id: Any = None
    content: Any = None
    tool_calls: Any = None
    tool_call_id: Any = None
    name: Any = None
    error: Any = None


class AguiMessage(AguiBody, gc=False, rename="camel", omit_defaults=True):
    """An AG-UI message with what the job knows of it."""

    sent_ms: int | None = None
    malformed: bool = False


class History(msgspec.Struct, gc=False):
    """A whole history in one record: its messages in order, and the tools that the run offered."""

    messages: list[AguiMessage]
    tools: list[Any] | None = None


class Place(msgspec.Struct, gc=False, frozen=True, order=True):
    """Where a record stands: number of its file in archive order, then byte offset or row."""

    file: int
    at: int


class Record(msgspec.Struct, gc=False):
    """A decoded record: what grouping needs, and the body that conversion needs.

    `sent_ms` and `edited_ms` are epoch milliseconds; `messages` counts the messages it holds.
    """

    thread_id: str
    kind: Kind
    place: Place
    body: ChatMessage | AguiMessage | History
    id: str | None = None
    sent_ms: int | None = None
    edited_ms: int | None = None
    messages: int = 1


class Rejected(msgspec.Struct):
    """A record that could not be used. `dataset` is None where it concerns every dataset of the run."""

    place: Place
    reason: Reject
    detail: str
    thread_id: str | None = None
    raw: bytes | None = None
    dataset: str | None = None
    messages: int = 1
