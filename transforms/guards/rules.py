"""Which guards a run applies, and with what."""

from __future__ import annotations

import enum

import msgspec

from transforms.providers import ANY_PROVIDER, RULES, Provider, Rules


class Guards(enum.StrEnum):
    STRICT = "strict"
    UPSTREAM = "upstream"


class GuardOptions(msgspec.Struct, frozen=True):
    """The options of the guards. `allowed_tools` names the tools whose text calls may be promoted,
    `provider` the one whose own rules hold too (strict guards only).
    """

    guards: Guards = Guards.STRICT
    allowed_tools: frozenset[str] = frozenset()
    keep_pending_call: bool = False
    provider: Provider | None = None

    @property
    def rules(self) -> Rules:
        """The rules to hold a history to."""
        return ANY_PROVIDER if self.provider is None else RULES[self.provider]
