"""A thread's turns: the one shape between the two source vocabularies and the six formats."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import msgspec

from schemas.reasons import Repair

Role = Literal["user", "assistant", "system", "tool"]


class RepairNote(msgspec.Struct, gc=False, frozen=True):
    """One change: the message it concerns, why, and enough detail to undo it in one's head."""

    message_id: str | None
    reason: Repair
    detail: str


class ToolCall(msgspec.Struct, gc=False):
    """One call of an assistant turn. `args` is a JSON object (upstream guards may leave other JSON).

    `mended` is the repair of its arguments, if they had to be: it counts only if the call stays.
    """

    id: Any
    name: Any
    args: Any
    mended: RepairNote | None = None


class FilePart(msgspec.Struct, gc=False):
    """An attachment whose data was had: `data` is base64, as it stands in the datasets."""

    kind: Literal["image", "text-file"]
    media_type: str
    data: str
    name: str | None = None
    has_name: bool = False


class Turn(msgspec.Struct, gc=False):
    """One message of a thread on its way to a row.

    `source` is the position of the message in its thread (the ledger's key), `sent_ms` epoch
    milliseconds or None. `result_of` is the call id that a tool turn answers, `tool_name` the name
    of the tool that was called. `joined` holds the positions of further messages merged into it.
    """

    role: Role
    text: str
    source: int = -1
    message_id: str | None = None
    sent_ms: int | None = None
    files: Sequence[FilePart] = ()
    calls: Sequence[ToolCall] = ()
    result_of: Any = None
    tool_name: str | None = None
    failed: bool = False
    joined: Sequence[int] = ()


class LeftOut(msgspec.Struct, gc=False, frozen=True):
    """A message of the thread (by position) that is in no row, and the reason."""

    source: int
    reason: Repair


class Conversion(msgspec.Struct, gc=False):
    """What a thread-level conversion gives: the turns that stay, the repairs, the messages left out."""

    turns: list[Turn]
    repairs: list[RepairNote]
    left_out: list[LeftOut]
