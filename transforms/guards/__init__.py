"""The replay guards: a thread's messages in, turns that form a history out."""

from __future__ import annotations

from collections.abc import Sequence

from schemas.records import AguiMessage
from schemas.turns import Conversion
from transforms.guards.rules import GuardOptions, Guards
from transforms.guards.strict import strict_history, strict_turns
from transforms.guards.upstream import upstream_history


def guarded_history(messages: Sequence[AguiMessage], options: GuardOptions) -> Conversion:
    """The history of an AG-UI thread, by the guards that the options name."""
    if options.guards is Guards.UPSTREAM:
        return upstream_history(messages, options.allowed_tools)
    return strict_history(messages, options)


def guarded_chat(conversion: Conversion, options: GuardOptions) -> Conversion:
    """A Chat SDK thread's turns as a history: there are no calls to guard."""
    return conversion if options.guards is Guards.UPSTREAM else strict_turns(conversion, options)
