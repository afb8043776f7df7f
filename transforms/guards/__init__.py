"""The replay guards: a thread's messages in, turns that form a history out."""

from __future__ import annotations

from collections.abc import Sequence

from schemas.reasons import Repair
from schemas.records import AguiMessage
from schemas.turns import Conversion, LeftOut, RepairNote, Turn
from transforms.guards.rules import GuardOptions, Guards
from transforms.guards.strict import strict_history
from transforms.guards.upstream import upstream_history
from transforms.js_text import is_blank


def guarded_history(messages: Sequence[AguiMessage], options: GuardOptions) -> Conversion:
    """The history of an AG-UI thread, by the guards that the options name."""
    if options.guards is Guards.UPSTREAM:
        return upstream_history(messages, options.allowed_tools)
    return strict_history(messages, options.allowed_tools, keep_pending_call=options.keep_pending_call)


def guarded_chat(conversion: Conversion, options: GuardOptions) -> Conversion:
    """A Chat SDK thread's turns as a history: no calls to guard, but a hook may leave a blank one."""
    if options.guards is Guards.UPSTREAM:
        return conversion
    kept: list[Turn] = []
    for turn in conversion.turns:
        if turn.files or not is_blank(turn.text):
            kept.append(turn)
        else:
            note = RepairNote(turn.message_id, Repair.BLANK_MESSAGE, "nothing is left of it")
            conversion.repairs.append(note)
            conversion.left_out.append(LeftOut(turn.source, Repair.BLANK_MESSAGE))
    return Conversion(kept, conversion.repairs, conversion.left_out)
