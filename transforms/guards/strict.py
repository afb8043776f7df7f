"""The strict guards: a history in which every call is answered once, right behind it. Demote, never
invent; every change is a repair. Linear in the length of the thread.

The steps, each a function below, in this order:
 1. hear each message; leave out display roles, unknown roles and what is no message
 2. promote text calls whose exactly N unclaimed results follow at once
 3. give a call without an id the id of the one unclaimed result right behind it
 4. match results to calls by id; where an id is used again, run by run
 5. drop calls without a result, results without a call, and what is blank then
 6. rename the later of two calls with one id, together with its result
 7. place each result right behind its call, in the order of the calls
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import Any

import msgspec

from schemas.reasons import Repair
from schemas.records import AguiMessage
from schemas.turns import Conversion, LeftOut, RepairNote, ToolCall, Turn
from transforms.agui_turns import answered_id, heard, id_of
from transforms.js_text import WHITE_SPACE, is_blank
from transforms.text_calls import text_calls
from transforms.tool_calls import call_entries


class _Call(msgspec.Struct, eq=False):
    """A call on its way: the turn it stands in, its place there, and the result that answers it."""

    turn: Turn
    call: ToolCall
    id: str
    answer: Turn | None = None


class _History(msgspec.Struct):
    """The thread between two steps."""

    turns: list[Turn] = []
    repairs: list[RepairNote] = []
    left_out: list[LeftOut] = []

    def note(self, turn: Turn, reason: Repair, detail: str) -> None:
        self.repairs.append(RepairNote(turn.message_id, reason, detail))

    def leave_out(self, turn: Turn, reason: Repair, detail: str) -> None:
        self.note(turn, reason, detail)
        self.left_out.append(LeftOut(turn.source, reason))


def strict_history(
    messages: Sequence[AguiMessage], allowed: Set[str], *, keep_pending_call: bool = False
) -> Conversion:
    """The turns of a history that every provider accepts, the repairs, and what was left out.

    `allowed` names the tools whose text calls may be promoted. `keep_pending_call` keeps the
    unanswered calls of the last message.
    """
    history = _History()
    _hear(history, messages, allowed)
    calls = _calls_with_ids(history)
    _match_results(history, calls)
    answered = _without_unanswered(history, calls, keep_pending_call)
    _rename_reused_ids(history, answered)
    _drop_blank(history)
    placed = _placed(history, answered)
    return Conversion(placed, history.repairs, history.left_out)


def _hear(history: _History, messages: Sequence[AguiMessage], allowed: Set[str]) -> None:
    """Step 1 and 2: messages to turns; text calls that their results vouch for become calls."""
    promotable: list[tuple[int, Turn]] = []
    for at, message in enumerate(messages):
        said = heard(message)
        turn = Turn(said.role or "user", said.text, at, id_of(message), message.sent_ms)
        history.repairs += said.notes
        if said.role is None:
            assert said.left_out is not None
            history.leave_out(turn, said.left_out, f"role {message.role!r}")
            continue
        turn.calls = said.calls
        if said.role == "tool":
            turn.result_of = _result_id(history, turn, message)
            turn.failed = bool(message.error)
        elif said.role == "assistant" and allowed and not call_entries(message.tool_calls):
            promotable.append((len(history.turns), turn))
        history.turns.append(turn)
    _promote(history, promotable, allowed)


def _result_id(history: _History, turn: Turn, message: AguiMessage) -> str:
    answered = answered_id(message)
    clean = _clean_id(answered)
    if clean and clean != answered:
        history.note(turn, Repair.ID_NORMALIZED, f"{answered!r} -> {clean!r}")
    return clean


def _clean_id(value: Any) -> str:
    """An id as text without surrounding blanks; empty where there is none."""
    if isinstance(value, str):
        return value.strip(WHITE_SPACE)
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return ""


def _promote(history: _History, promotable: list[tuple[int, Turn]], allowed: Set[str]) -> None:
    if not promotable:
        return
    claims = _claims(history.turns)
    for at, turn in promotable:
        following = _results_behind(history.turns, at)
        if not following:
            continue
        unclaimed = [result for result in following if not _claimed(claims, result, at)]
        ids = {result.result_of for result in unclaimed}
        calls = text_calls(turn.text, allowed)
        if not calls or len(calls) != len(unclaimed) or len(ids) != len(calls) or "" in ids:
            continue
        history.note(turn, Repair.CALL_PROMOTED, turn.text)
        turn.text = ""
        turn.calls = [
            ToolCall(result.result_of, call.name, call.args)
            for call, result in zip(calls, unclaimed, strict=True)
        ]


def _claims(turns: list[Turn]) -> dict[str, int]:
    """The position of the first turn with a native call of that id."""
    claims: dict[str, int] = {}
    for at, turn in enumerate(turns):
        for call in turn.calls:
            claims.setdefault(_clean_id(call.id), at)
    return claims


def _claimed(claims: dict[str, int], result: Turn, before: int) -> bool:
    return claims.get(result.result_of, before + 1) <= before


def _results_behind(turns: list[Turn], at: int) -> list[Turn]:
    """The results that follow a turn at once."""
    end = at + 1
    while end < len(turns) and turns[end].role == "tool":
        end += 1
    return turns[at + 1 : end]


def _calls_with_ids(history: _History) -> list[_Call]:
    """Step 3: every call that has a name and an id, or is given one, in order."""
    claims = _claims(history.turns)
    calls: list[_Call] = []
    for at, turn in enumerate(history.turns):
        if not turn.calls:
            continue
        nameless = [call for call in turn.calls if not _has_name(call)]
        named = [call for call in turn.calls if _has_name(call)]
        without_id = [call for call in named if not _clean_id(call.id)]
        for call in nameless:
            history.note(turn, Repair.MALFORMED_CALL, f"call {call.id!r} names no tool")
        adopted = _adopted_id(history.turns, at, claims) if len(without_id) == 1 else ""
        for call in named:
            clean = _clean_id(call.id)
            if not clean:
                shown = f"the call of {call.name} has no id"
                if not adopted:
                    history.note(turn, Repair.CALL_WITHOUT_ID, f"{shown}: dropped")
                    continue
                history.note(turn, Repair.CALL_WITHOUT_ID, f"{shown}: took {adopted!r}")
                clean = adopted
            elif clean != call.id:
                history.note(turn, Repair.ID_NORMALIZED, f"{call.id!r} -> {clean!r}")
            calls.append(_Call(turn, ToolCall(clean, call.name, call.args), clean))
        turn.calls = []
    return calls


def _has_name(call: ToolCall) -> bool:
    return isinstance(call.name, str) and not is_blank(call.name)


def _adopted_id(turns: list[Turn], at: int, claims: dict[str, int]) -> str:
    """The id of the one result right behind that no call claims, or nothing."""
    unclaimed = [result for result in _results_behind(turns, at) if not _claimed(claims, result, at)]
    return unclaimed[0].result_of if len(unclaimed) == 1 else ""


def _match_results(history: _History, calls: list[_Call]) -> None:
    """Step 4: each call gets its answer; results that answer none are left out.

    An id may be used again: its calls and results, in order, form runs of calls, each with the
    run of results up to the next call. In a run the results belong to the last calls, in order; a
    call whose result never came does not take its successor's. Further results are duplicates.
    """
    runs: dict[str, list[tuple[list[_Call], list[Turn]]]] = {}
    pending = iter(calls)
    following = next(pending, None)
    for turn in history.turns:
        while following is not None and following.turn is turn:
            of_id = runs.setdefault(following.id, [])
            if not of_id or of_id[-1][1]:
                of_id.append(([], []))
            of_id[-1][0].append(following)
            following = next(pending, None)
        if turn.role == "tool" and turn.result_of in runs:
            runs[turn.result_of][-1][1].append(turn)
    answers: set[int] = set()
    for of_id in runs.values():
        for run_calls, results in of_id:
            heirs = run_calls[-len(results) :] if results else []
            for call, result in zip(heirs, results, strict=False):
                call.answer = result
                result.tool_name = call.call.name
                answers.add(result.source)
    kept: list[Turn] = []
    for turn in history.turns:
        if turn.role != "tool" or turn.source in answers:
            kept.append(turn)
        elif turn.result_of in runs:
            history.leave_out(turn, Repair.DUPLICATE_RESULT, f"{turn.result_of!r} is answered already")
        else:
            history.leave_out(turn, Repair.ORPHAN_RESULT, f"no call {turn.result_of!r} stands before it")
    history.turns = kept


def _without_unanswered(history: _History, calls: list[_Call], keep_pending_call: bool) -> list[_Call]:
    """Step 5: calls with an answer (and, by option, the last message's without) go on."""
    calling = {call.turn.source for call in calls}
    last = next(
        (
            turn
            for turn in reversed(history.turns)
            if turn.role != "tool" and (turn.source in calling or not is_blank(turn.text))
        ),
        None,
    )
    answered: list[_Call] = []
    for call in calls:
        if call.answer is not None or (keep_pending_call and call.turn is last):
            answered.append(call)
            call.turn.calls.append(call.call)
        else:
            history.note(call.turn, Repair.UNANSWERED_CALL, f"{call.call.name} ({call.id!r}) has no result")
    return answered


def _rename_reused_ids(history: _History, calls: list[_Call]) -> None:
    """Step 6: no two calls share an id; the later one and its result get a fresh one."""
    taken = {call.id for call in calls}
    used: set[str] = set()
    counts: dict[str, int] = {}
    for call in calls:
        if call.id not in used:
            used.add(call.id)
        else:
            number = counts.get(call.id, 1) + 1
            while f"{call.id}_{number}" in taken:
                number += 1
            counts[call.id] = number
            fresh = f"{call.id}_{number}"
            taken.add(fresh)
            used.add(fresh)
            history.note(call.turn, Repair.ID_RENAMED, f"{call.id!r} -> {fresh!r}")
            call.id = call.call.id = fresh
        if call.answer is not None:
            call.answer.result_of = call.id


def _drop_blank(history: _History) -> None:
    kept: list[Turn] = []
    for turn in history.turns:
        if turn.role == "tool" or not is_blank(turn.text):
            kept.append(turn)
        elif turn.calls:
            if turn.text:
                history.note(turn, Repair.BLANK_TEXT, f"{turn.text!r} beside a call")
                turn.text = ""
            kept.append(turn)
        else:
            history.leave_out(turn, Repair.BLANK_MESSAGE, "nothing is left of it")
    history.turns = kept


def _placed(history: _History, calls: list[_Call]) -> list[Turn]:
    """Step 7: the turns in order, each result behind its call; one repair for each that moved up."""
    answers: dict[int, list[Turn]] = {}
    for call in calls:
        if call.answer is not None:
            answers.setdefault(call.turn.source, []).append(call.answer)
    placed: list[Turn] = []
    for turn in history.turns:
        if turn.role != "tool":
            placed.append(turn)
            placed += answers.get(turn.source, [])
    first_behind = len(placed) and max(turn.source for turn in placed) + 1
    moved: list[Turn] = []
    for turn in reversed(placed):
        if turn.role == "tool" and first_behind < turn.source:
            moved.append(turn)
        first_behind = min(first_behind, turn.source)
    for turn in reversed(moved):
        history.note(turn, Repair.RESULT_MOVED, f"up behind its call {turn.result_of!r}")
    return placed
