"""The strict guards: a history in which every call is answered once, right behind it. Demote, never
invent; every change is a repair. Linear in the length of the thread.

The steps, each a function, in this order:
 1. hear each message; leave out display roles, unknown roles and what is no message
 2. promote text calls whose exactly N unclaimed results follow at once
 3. give a call without an id the id of the one unclaimed result right behind it
 4. match results to calls by id; where an id is used again, run by run
 5. drop calls without a result, results without a call, and what is blank then
 6. place each result right behind its call, in the order of the calls
 7. the provider's own rules                      (provider.py)
 8. give every call an id that it alone has       (ids.py)
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import Any, NamedTuple

from schemas.reasons import Repair
from schemas.records import AguiMessage
from schemas.turns import Conversion, ToolCall, Turn
from transforms.agui_turns import answered_id, heard, id_of, plain_turn
from transforms.guards.history import GuardedHistory, NumberedCall
from transforms.guards.ids import give_ids
from transforms.guards.provider import fit_provider
from transforms.guards.rules import GuardOptions
from transforms.js_text import WHITE_SPACE, is_blank_anywhere
from transforms.text_calls import text_calls
from transforms.tool_calls import call_entries


def strict_history(messages: Sequence[AguiMessage], options: GuardOptions) -> Conversion:
    """The turns of a history that every provider accepts, the repairs, and what was left out.

    With a provider named in the options, its own rules hold as well.
    """
    history = GuardedHistory()
    uses_tools = _hear(history, messages, options.allowed_tools)
    if uses_tools:
        _number_calls(history)
        _match_results(history)
        _drop_unanswered(history, keep_pending=options.keep_pending_call)
    _drop_blank(history)
    if uses_tools:
        _place_results(history)
    fit_provider(history, options.rules)
    if uses_tools:
        give_ids(history, options.rules.ids)
    return Conversion(history.turns, history.repairs, history.left_out)


def strict_turns(conversion: Conversion, options: GuardOptions) -> Conversion:
    """The same guards for turns without calls, such as a Chat SDK thread's."""
    history = GuardedHistory(turns=conversion.turns, repairs=conversion.repairs, left_out=conversion.left_out)
    _drop_blank(history)
    fit_provider(history, options.rules)
    return Conversion(history.turns, history.repairs, history.left_out)


def _hear(history: GuardedHistory, messages: Sequence[AguiMessage], allowed: Set[str]) -> bool:
    """Steps 1 and 2: messages to turns; text calls that their results vouch for become calls.

    Says whether there are calls or results among them.
    """
    promotable: list[tuple[int, Turn]] = []
    uses_tools = False
    for at, message in enumerate(messages):
        turn = plain_turn(message, at)
        if turn is None:
            turn = _heard_turn(history, at, message)
            if turn is None:
                continue
        if turn.role == "tool":
            uses_tools = True
            written = answered_id(message)
            turn.result_of = _clean_id(written)
            turn.failed = bool(message.error)
            history.written_results[at] = written
        elif turn.calls:
            uses_tools = True
        elif allowed and turn.role == "assistant" and not call_entries(message.tool_calls):
            promotable.append((len(history.turns), turn))
        history.turns.append(turn)
    _promote(history, promotable, allowed)
    return uses_tools


def _heard_turn(history: GuardedHistory, at: int, message: AguiMessage) -> Turn | None:
    """The turn of a message that is not plainly text; None where it has no part in a history."""
    said = heard(message)
    turn = Turn(said.role or "user", said.text, at, id_of(message), message.sent_ms, calls=said.calls)
    for note in said.notes:
        history.repairs.append(note)
        history.lost[at] = note.reason
    if said.role is None:
        assert said.left_out is not None
        history.leave_out(turn, said.left_out, f"role {message.role!r}")
        return None
    return turn


def _clean_id(value: Any) -> str:
    """An id as text without surrounding blanks; empty where there is none."""
    if isinstance(value, str):
        return value.strip(WHITE_SPACE)
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return ""


def _promote(history: GuardedHistory, promotable: list[tuple[int, Turn]], allowed: Set[str]) -> None:
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


def _number_calls(history: GuardedHistory) -> None:
    """Step 3: calls that have a name and an id, or are given one, are numbered; others go."""
    lacking = any(not _clean_id(call.id) for turn in history.turns for call in turn.calls)
    claims = _claims(history.turns) if lacking else {}
    for at, turn in enumerate(history.turns):
        if not turn.calls:
            continue
        named: list[ToolCall] = []
        for call in turn.calls:
            if isinstance(call.name, str) and not is_blank_anywhere(call.name):
                named.append(call)
            else:
                history.lose(turn, Repair.MALFORMED_CALL, f"call {call.id!r} names no tool")
        without_id = sum(1 for call in named if not _clean_id(call.id))
        adopted = _adopted_id(history.turns, at, claims) if without_id == 1 else ""
        numbered: list[ToolCall] = []
        for call in named:
            clean = _clean_id(call.id)
            if not clean and not adopted:
                detail = f"the call of {call.name} has no id, and no result to take one from"
                history.lose(turn, Repair.CALL_WITHOUT_ID, detail)
                continue
            number = len(history.calls)
            history.calls[number] = NumberedCall(number, call.id, clean or adopted, not clean)
            numbered.append(ToolCall(number, call.name, call.args, call.mended))
        turn.calls = numbered


def _adopted_id(turns: list[Turn], at: int, claims: dict[str, int]) -> str:
    """The id of the one result right behind that no call claims, or nothing."""
    unclaimed = [result for result in _results_behind(turns, at) if not _claimed(claims, result, at)]
    return str(unclaimed[0].result_of) if len(unclaimed) == 1 else ""


class _Answers(NamedTuple):
    """Which call each result answers, by the result's source; results that came too late for any."""

    calls: dict[int, ToolCall]
    late: set[int]


def _match_results(history: GuardedHistory) -> None:
    """Step 4: each result is told the number of its call; results that answer none are left out."""
    answers = _answers_to_single_ids(history) or _answers_by_runs(history)
    kept: list[Turn] = []
    for turn in history.turns:
        if turn.role != "tool":
            kept.append(turn)
        elif turn.source in answers.calls:
            answered = answers.calls[turn.source]
            turn.result_of, turn.tool_name = answered.id, answered.name
            kept.append(turn)
        elif turn.source in answers.late:
            detail = f"{turn.result_of!r} is answered already"
            history.leave_out(turn, Repair.DUPLICATE_RESULT, detail)
        else:
            detail = f"no call {turn.result_of!r} stands before it"
            history.leave_out(turn, Repair.ORPHAN_RESULT, detail)
    history.turns = kept


def _answers_to_single_ids(history: GuardedHistory) -> _Answers | None:
    """Where every call has an id of its own, the first result of an id answers; None elsewhere."""
    calls: dict[str, ToolCall] = {}
    answered: set[str] = set()
    answers = _Answers({}, set())
    for turn in history.turns:
        for call in turn.calls:
            clean = history.calls[call.id].clean_id
            if clean in calls:
                return None
            calls[clean] = call
        if turn.role == "tool" and turn.result_of in calls:
            if turn.result_of in answered:
                answers.late.add(turn.source)
            else:
                answered.add(turn.result_of)
                answers.calls[turn.source] = calls[turn.result_of]
    return answers


def _answers_by_runs(history: GuardedHistory) -> _Answers:
    """Where an id is used again, its calls and results, in order, form runs of calls, each with the
    run of results up to the next call. In a run the results belong to the last calls, in order; a
    call whose result never came does not take its successor's. Further results are late.
    """
    runs: dict[str, list[tuple[list[ToolCall], list[Turn]]]] = {}
    for turn in history.turns:
        for call in turn.calls:
            of_id = runs.setdefault(history.calls[call.id].clean_id, [])
            if not of_id or of_id[-1][1]:
                of_id.append(([], []))
            of_id[-1][0].append(call)
        if turn.role == "tool" and turn.result_of in runs:
            runs[turn.result_of][-1][1].append(turn)
    answers = _Answers({}, set())
    for of_id in runs.values():
        for calls, results in of_id:
            heirs = calls[-len(results) :] if results else []
            answers.calls.update((one.source, call) for one, call in zip(results, heirs, strict=False))
            answers.late.update(one.source for one in results[len(heirs) :])
    return answers


def _drop_unanswered(history: GuardedHistory, *, keep_pending: bool) -> None:
    """Step 5: calls with an answer go on, and, by option, those of the last turn without one."""
    answered = {turn.result_of for turn in history.turns if turn.role == "tool"}
    last = next(
        (
            turn
            for turn in reversed(history.turns)
            if turn.role != "tool" and (turn.calls or not is_blank_anywhere(turn.text))
        ),
        None,
    )
    for turn in history.turns:
        if not turn.calls or (keep_pending and turn is last):
            continue
        kept: list[ToolCall] = []
        for call in turn.calls:
            if call.id in answered:
                kept.append(call)
            else:
                history.lose(turn, Repair.UNANSWERED_CALL, f"{history.shown(call)} has no result")
        turn.calls = kept


def _drop_blank(history: GuardedHistory) -> None:
    kept: list[Turn] = []
    for turn in history.turns:
        # A letter or digit at the start spares a closer look at nearly every text.
        says = turn.text[:1].isalnum() or not is_blank_anywhere(turn.text)
        if says or turn.role == "tool" or turn.files:
            kept.append(turn)
        elif turn.calls:
            if turn.text:
                history.note(turn, Repair.BLANK_TEXT, f"{turn.text!r} beside a call")
                turn.text = ""
            kept.append(turn)
        else:
            history.drop_blank(turn)
    history.turns = kept


def _place_results(history: GuardedHistory) -> None:
    """Step 6: each result behind its call; one repair for each that moved up."""
    results = {turn.result_of: turn for turn in history.turns if turn.role == "tool"}
    placed: list[Turn] = []
    reached, in_order = -1, True
    for turn in history.turns:
        if turn.role == "tool":
            continue
        in_order = in_order and turn.source > reached
        reached = turn.source
        placed.append(turn)
        for call in turn.calls:
            result = results.get(call.id)
            if result is not None:
                in_order = in_order and result.source > reached
                reached = result.source
                placed.append(result)
    history.turns = placed
    if in_order:
        return
    moved: list[Turn] = []
    # From the end: a result moved up if something that stood before it now stands behind it.
    first_behind = max(turn.source for turn in placed) + 1
    for turn in reversed(placed):
        if turn.role == "tool" and first_behind < turn.source:
            moved.append(turn)
        first_behind = min(first_behind, turn.source)
    for turn in reversed(moved):
        clean_id = history.calls[turn.result_of].clean_id
        history.note(turn, Repair.RESULT_MOVED, f"up behind its call {clean_id!r}")
