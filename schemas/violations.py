"""The closed list of what a history can break, as the checker names it."""

from __future__ import annotations

import enum

import msgspec


class Violation(enum.StrEnum):
    EMPTY_HISTORY = "empty_history"
    UNREADABLE_MESSAGE = "unreadable_message"
    CALL_WITHOUT_RESULT = "call_without_result"
    RESULT_WITHOUT_CALL = "result_without_call"
    RESULT_AWAY_FROM_CALL = "result_away_from_call"
    SECOND_RESULT = "second_result"
    CALL_ID_REUSED = "call_id_reused"
    CALL_ID_REFUSED = "call_id_refused"
    RESULT_WITHOUT_NAME = "result_without_name"
    SYSTEM_NOT_LEADING = "system_not_leading"
    BLANK_TEXT = "blank_text"
    FIRST_NOT_USER = "first_not_user"
    CALL_BEFORE_USER = "call_before_user"
    SAME_ROLE_TWICE = "same_role_twice"
    USER_BEHIND_RESULT = "user_behind_result"
    ARGUMENTS_NOT_OBJECT = "arguments_not_object"
    ENDS_WITH_ASSISTANT = "ends_with_assistant"
    TRAILING_SPACE = "trailing_space"


class Broken(msgspec.Struct, frozen=True):
    """One rule that a history breaks: where (position of the message) and what was seen."""

    violation: Violation
    at: int
    detail: str
