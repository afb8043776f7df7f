"""A thread between two steps of the strict guards.

While the guards work, a call's id is a number of its own, and a result's `result_of` the number of
the call that it answers: ids as they stood may be absent, padded or used twice. The last step gives
every call its id.
"""

from __future__ import annotations

import msgspec

from schemas.reasons import Repair
from schemas.turns import LeftOut, RepairNote, ToolCall, Turn

EMPTIED_DETAIL = "nothing is left of it"


class NumberedCall(msgspec.Struct, gc=False):
    """A call: the id as it stood in the archive, and whether it took the id of its result."""

    number: int
    written_id: object
    clean_id: str
    took_id: bool = False


class GuardedHistory(msgspec.Struct):
    """Turns, the numbered calls in them, and what was changed and left out so far.

    `lost` says of a turn (by its source) why something in it went: where nothing is left of it then,
    that repair tells of the turn as well.
    """

    turns: list[Turn] = []
    calls: dict[int, NumberedCall] = {}
    written_results: dict[int, object] = {}
    lost: dict[int, Repair] = {}
    repairs: list[RepairNote] = []
    left_out: list[LeftOut] = []

    def note(self, turn: Turn, reason: Repair, detail: str) -> None:
        self.repairs.append(RepairNote(turn.message_id, reason, detail))

    def lose(self, turn: Turn, reason: Repair, detail: str) -> None:
        """Notes that something in the turn went."""
        self.note(turn, reason, detail)
        self.lost[turn.source] = reason

    def drop_blank(self, turn: Turn) -> None:
        """Notes that nothing is left of the turn, unless a repair has told why already."""
        reason = self.lost.get(turn.source)
        if reason is None:
            self.leave_out(turn, Repair.BLANK_MESSAGE, EMPTIED_DETAIL)
        else:
            self.left_out.append(LeftOut(turn.source, reason))

    def leave_out(self, turn: Turn, reason: Repair, detail: str) -> None:
        """Notes that the turn goes; the caller takes it off `turns`."""
        self.note(turn, reason, detail)
        self.left_out.append(LeftOut(turn.source, reason))

    def shown(self, call: ToolCall) -> str:
        """A call in a few words."""
        return f"{call.name} ({self.calls[call.id].clean_id!r})"
