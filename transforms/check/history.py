"""Which of a provider's rules a history breaks: one function a rule, each on the messages as heard."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

from schemas.violations import Broken, Violation
from transforms.check.said import Said, Unheard, said
from transforms.js_text import is_blank_anywhere
from transforms.providers import First, Rules, SameRole


def broken_rules(messages: Sequence[Any], rules: Rules, *, as_request: bool = False) -> list[Broken]:
    """All rules that the history breaks; `as_request` adds those of a request made of it."""
    heard: list[Said] = []
    broken: list[Broken] = []
    for at, message in enumerate(messages):
        try:
            heard.append(said(message))
        except Unheard as error:
            broken.append(Broken(Violation.UNREADABLE_MESSAGE, at, str(error)))
    if broken:
        return broken
    if not any(one.role in ("user", "assistant") for one in heard):
        broken.append(Broken(Violation.EMPTY_HISTORY, 0, "no user and no assistant message"))
    broken += _pairs(heard, rules)
    broken += _ids(heard, rules)
    broken += _texts(heard, rules)
    broken += _order(heard, rules)
    if as_request:
        broken += _request(heard, rules)
    return sorted(broken, key=lambda one: one.at)


def _pairs(heard: list[Said], rules: Rules) -> Iterator[Broken]:
    """Every call answered once, right behind it where the provider wants that."""
    owner: dict[Any, int] = {}
    answered: dict[Any, int] = {}
    block: set[Any] = set()
    for at, one in enumerate(heard):
        if one.role != "tool":
            block = {_key(call.id) for call in one.calls}
            for call in one.calls:
                # A call whose id comes again needs a result of its own.
                if _key(call.id) in owner and _key(call.id) not in answered:
                    yield _unanswered(owner[_key(call.id)], call.id)
                owner[_key(call.id)] = at
                answered.pop(_key(call.id), None)
            continue
        key = _key(one.answers)
        if key not in owner:
            yield Broken(Violation.RESULT_WITHOUT_CALL, at, f"answers {one.answers!r}")
        elif key in answered:
            yield Broken(Violation.SECOND_RESULT, at, f"{one.answers!r} has a result at {answered[key]}")
        else:
            answered[key] = at
            if rules.results_behind_call and key not in block:
                yield Broken(
                    Violation.RESULT_AWAY_FROM_CALL, at, f"its call {one.answers!r} stands at {owner[key]}"
                )
        if rules.result_needs_name and not one.name:
            yield Broken(Violation.RESULT_WITHOUT_NAME, at, f"result of {one.answers!r}")
    for key, at in owner.items():
        if key not in answered:
            yield _unanswered(at, key[1])


def _unanswered(at: int, call_id: Any) -> Broken:
    return Broken(Violation.CALL_WITHOUT_RESULT, at, f"call {call_id!r}")


def _key(call_id: Any) -> tuple[str, Any]:
    """Ids compare by type and value; what cannot be a key is only like itself."""
    hashable = call_id if isinstance(call_id, (str, int, float, type(None))) else repr(call_id)
    return type(call_id).__name__, hashable


def _ids(heard: list[Said], rules: Rules) -> Iterator[Broken]:
    seen: set[Any] = set()
    for at, one in enumerate(heard):
        for call in one.calls:
            if not isinstance(call.id, str) or not rules.ids.is_valid(call.id):
                yield Broken(Violation.CALL_ID_REFUSED, at, f"call id {call.id!r}")
            if not rules.ids_again and _key(call.id) in seen:
                yield Broken(Violation.CALL_ID_REUSED, at, f"call id {call.id!r}")
            seen.add(_key(call.id))
            if not call.has_object:
                yield Broken(Violation.ARGUMENTS_NOT_OBJECT, at, f"call {call.id!r}")


def _texts(heard: list[Said], rules: Rules) -> Iterator[Broken]:
    if rules.blank_text:
        return
    for at, one in enumerate(heard):
        if one.role == "tool":
            continue
        blank = any(is_blank_anywhere(text) for text in one.texts)
        nothing = not one.texts and not one.other_parts and not one.calls
        if blank or nothing:
            yield Broken(Violation.BLANK_TEXT, at, f"a {one.role} message")


def _order(heard: list[Said], rules: Rules) -> Iterator[Broken]:
    if rules.system_leads:
        for at, one in enumerate(heard):
            if one.role == "system" and at > 0:
                yield Broken(Violation.SYSTEM_NOT_LEADING, at, "a system message behind others")
    spoken = [(at, one) for at, one in enumerate(heard) if one.role != "system"]
    if rules.first is First.USER and spoken and spoken[0][1].role != "user":
        yield Broken(Violation.FIRST_NOT_USER, spoken[0][0], f"a {spoken[0][1].role} message")
    if rules.first is First.NO_CALL:
        yield from _calls_before_users(spoken)
    for (_at, before), (at, one) in pairwise(spoken):
        same = before.role == one.role and one.role in ("user", "assistant")
        if same and rules.same_role is SameRole.REJECTED:
            yield Broken(Violation.SAME_ROLE_TWICE, at, f"{one.role} behind {one.role}")
        if not rules.user_behind_result and before.role == "tool" and one.role == "user":
            yield Broken(Violation.USER_BEHIND_RESULT, at, "no assistant has answered the result")


def _calls_before_users(spoken: list[tuple[int, Said]]) -> Iterator[Broken]:
    """A call turn follows a user or a result turn; assistant turns in a row are one turn."""
    for at, one in spoken:
        if one.role in ("user", "tool"):
            return
        if one.calls:
            yield Broken(Violation.CALL_BEFORE_USER, at, "a call before any user has spoken")


def _request(heard: list[Said], rules: Rules) -> Iterator[Broken]:
    if not heard or heard[-1].role != "assistant":
        return
    last = len(heard) - 1
    if not rules.final_assistant:
        yield Broken(Violation.ENDS_WITH_ASSISTANT, last, "a request must end with a user or a result")
    texts = heard[-1].texts
    if not rules.final_trailing_space and texts and texts[-1] != texts[-1].rstrip():
        yield Broken(Violation.TRAILING_SPACE, last, "white space at the end of the last text")
