"""Which guards a run applies, and with what."""

from __future__ import annotations

import enum

import msgspec


class Guards(enum.StrEnum):
    STRICT = "strict"
    UPSTREAM = "upstream"


class GuardOptions(msgspec.Struct, frozen=True):
    """The options of the guards; `allowed_tools` names the tools whose text calls may be promoted."""

    guards: Guards = Guards.STRICT
    allowed_tools: frozenset[str] = frozenset()
    keep_pending_call: bool = False
