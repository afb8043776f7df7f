"""Step 7 of the strict guards: the rules of the provider that the history is replayed to.

Each rule of the table is one step here, on a history whose calls are answered right behind them.
"""

from __future__ import annotations

from schemas.reasons import Repair
from schemas.turns import Turn
from transforms.guards.history import GuardedHistory
from transforms.providers import First, Rules


def fit_provider(history: GuardedHistory, rules: Rules) -> None:
    """Repairs what this provider alone would reject. The order matters: joining comes last."""
    if rules.system_leads:
        _lead_with_system(history)
    if not rules.user_behind_result:
        _drop_results_before_users(history)
    if rules.first is First.USER:
        _drop_before_first_user(history)
    elif rules.first is First.NO_CALL:
        _drop_calls_before_first_user(history)
    if rules.guards_join:
        _join_same_roles(history)


def _lead_with_system(history: GuardedHistory) -> None:
    """All system turns become one, in order, before everything else."""
    systems = [turn for turn in history.turns if turn.role == "system"]
    if not systems:
        return
    others = [turn for turn in history.turns if turn.role != "system"]
    first = systems[0]
    if history.turns[0] is not first:
        history.note(first, Repair.SYSTEM_MOVED, "up to the start")
    for turn in systems[1:]:
        _join(history, first, turn)
    history.turns = [first, *others]


def _drop_results_before_users(history: GuardedHistory) -> None:
    """Where no assistant answered a result before a user spoke, call and result go."""
    turns = history.turns
    kept: list[Turn] = []
    for at, turn in enumerate(turns):
        behind = at + 1
        while behind < len(turns) and turns[behind].role == "tool":
            behind += 1
        is_caller = turn.role == "assistant" and bool(turn.calls)
        if is_caller and behind < len(turns) and turns[behind].role == "user":
            _drop_calls(history, turn, Repair.USER_BEHIND_RESULT, "a user speaks before an answer")
            if turn.text:
                kept.append(turn)
            else:
                history.drop_blank(turn)
        else:
            kept.append(turn)
    history.turns = kept
    _drop_results_without_calls(history, Repair.USER_BEHIND_RESULT)


def _drop_before_first_user(history: GuardedHistory) -> None:
    """Leading turns of the assistant go, with the results of their calls; system turns stay."""
    start = _first_user(history)
    leading = history.turns[:start]
    kept = [turn for turn in leading if turn.role == "system"]
    for turn in leading:
        if turn.role != "system":
            history.leave_out(turn, Repair.BEFORE_FIRST_USER, "no user has spoken yet")
    history.turns = kept + history.turns[start:]


def _drop_calls_before_first_user(history: GuardedHistory) -> None:
    """Calls before a user has spoken go with their results; the texts stay."""
    start = _first_user(history)
    kept: list[Turn] = []
    for turn in history.turns[:start]:
        if turn.calls:
            _drop_calls(history, turn, Repair.BEFORE_FIRST_USER, "no user has spoken yet")
            if not turn.text:
                history.drop_blank(turn)
                continue
        kept.append(turn)
    history.turns = kept + history.turns[start:]
    _drop_results_without_calls(history, Repair.BEFORE_FIRST_USER)


def _first_user(history: GuardedHistory) -> int:
    turns = history.turns
    return next((at for at, turn in enumerate(turns) if turn.role == "user"), len(turns))


def _drop_calls(history: GuardedHistory, turn: Turn, reason: Repair, why: str) -> None:
    for call in turn.calls:
        history.lose(turn, reason, f"call of {history.shown(call)}: {why}")
    turn.calls = ()


def _drop_results_without_calls(history: GuardedHistory, reason: Repair) -> None:
    numbers = {call.id for turn in history.turns for call in turn.calls}
    kept: list[Turn] = []
    for turn in history.turns:
        if turn.role == "tool" and turn.result_of not in numbers:
            history.leave_out(turn, reason, "its call went")
        else:
            kept.append(turn)
    history.turns = kept


def _join_same_roles(history: GuardedHistory) -> None:
    """Texts of one role in a row become one turn; a call turn takes the assistant text before it."""
    joined: list[Turn] = []
    for turn in history.turns:
        last = joined[-1] if joined else None
        same = last is not None and last.role == turn.role and turn.role in ("user", "assistant")
        if same and last is not None and not last.calls:
            _join(history, last, turn)
        else:
            joined.append(turn)
    history.turns = joined


def _join(history: GuardedHistory, first: Turn, second: Turn) -> None:
    """Makes the second turn part of the first: texts with a blank line between, files, calls."""
    history.note(second, Repair.TURNS_JOINED, f"to the {first.role} turn before it")
    first.text = "\n\n".join(text for text in (first.text, second.text) if text)
    first.files = [*first.files, *second.files]
    first.calls = [*first.calls, *second.calls]
    first.joined = [*first.joined, second.source, *second.joined]
