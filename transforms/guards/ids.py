"""The last step of the strict guards: every call gets its id, and its result the same one.

An id stays where the provider takes it and no earlier call has it. Else a fresh one is made of it,
the same one each time, within the provider's alphabet and length: no two calls ever share one.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator

from schemas.reasons import Repair
from schemas.turns import ToolCall, Turn
from transforms.guards.history import GuardedHistory, NumberedCall
from transforms.providers import IdRule

# Room for an underscore and a number at the end of an id that must not be too long.
_SUFFIX_ROOM = 9


def give_ids(history: GuardedHistory, rule: IdRule) -> None:
    """Replaces the numbers of calls and results by ids, with a repair for each that changed."""
    own = {history.calls[call.id].clean_id for _turn, call in _calls(history)}
    kept = {one for one in own if rule.is_valid(one)}
    taken = set(kept)
    used: set[str] = set()
    given: dict[int, str] = {}
    numbers: dict[str, int] = {}
    for turn, call in _calls(history):
        numbered = history.calls[call.id]
        reused = numbered.clean_id in used
        final = numbered.clean_id
        if reused or final not in kept:
            final = _fresh(final, rule, taken, numbers)
            taken.add(final)
        used.add(final)
        given[numbered.number] = final
        _note(history, turn, call, numbered, final, reused=reused)
        if call.mended is not None:
            history.repairs.append(call.mended)
        call.id = final
    for turn in history.turns:
        if turn.role == "tool":
            _settle_result(history, turn, given)


def _calls(history: GuardedHistory) -> Iterator[tuple[Turn, ToolCall]]:
    for turn in history.turns:
        for call in turn.calls:
            yield turn, call


def _note(
    history: GuardedHistory,
    turn: Turn,
    call: ToolCall,
    numbered: NumberedCall,
    final: str,
    *,
    reused: bool,
) -> None:
    """One repair for a call whose id is not what it was, whatever it went through."""
    change = f"{numbered.written_id!r} -> {final!r}"
    if numbered.took_id:
        history.note(turn, Repair.CALL_WITHOUT_ID, f"the call of {call.name} took {final!r}")
    elif reused:
        history.note(turn, Repair.ID_RENAMED, change)
    elif final != numbered.clean_id:
        history.note(turn, Repair.ID_MAPPED, change)
    elif final != numbered.written_id:
        history.note(turn, Repair.ID_NORMALIZED, change)


def _settle_result(history: GuardedHistory, turn: Turn, given: dict[int, str]) -> None:
    numbered = history.calls[turn.result_of]
    written = history.written_results[turn.source]
    final = given[numbered.number]
    turn.result_of = final
    # Where the call's id changed too, its repair speaks for both; a call that took this one's did not.
    call_is_as_it_was = numbered.written_id == final
    took_it = numbered.took_id and numbered.clean_id == final
    if final != written and (call_is_as_it_was or took_it):
        history.note(turn, Repair.ID_NORMALIZED, f"{written!r} -> {final!r}")


def _fresh(old: str, rule: IdRule, taken: set[str], numbers: dict[str, int]) -> str:
    """An id that the rule allows and nobody has, made of the old one; `numbers` counts on."""
    if rule.length is not None:
        base = old
    else:
        base = old if rule.characters is None else re.sub(f"[^{rule.characters}]", "_", old)
        base = base if rule.longest is None else base[: rule.longest - _SUFFIX_ROOM]
    while True:
        number = numbers[base] = numbers.get(base, 1) + 1
        fresh = f"{base}_{number}" if rule.length is None else _digest(base, number, rule.length)
        if fresh not in taken:
            return fresh


def _digest(old: str, number: int, length: int) -> str:
    text = f"{old}:{number}".encode("utf-8", "surrogatepass")
    return hashlib.sha256(text).hexdigest()[:length]
