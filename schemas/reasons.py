"""The closed list of reasons. Every verdict on a record, a message or an attachment carries one of them.

A record ends in exactly one place: kept in a row, superseded by a later version, left out with a
`Repair`, or rejected with a `Reject`. A `Repair` also says what was changed in a thread that was kept.
"""

from __future__ import annotations

import enum


class Reject(enum.StrEnum):
    """Why a record, or a thread, could not be used. Rejects keep their place and raw bytes."""

    NOT_JSON = "not_json"
    NOT_UTF8 = "not_utf8"
    NESTED_TOO_DEEP = "nested_too_deep"
    TOO_LARGE = "too_large"
    NOT_AN_OBJECT = "not_an_object"
    UNKNOWN_KIND = "unknown_kind"
    NO_THREAD_ID = "no_thread_id"
    WRONG_TYPE = "wrong_type"
    MISSING_FIELD = "missing_field"
    BAD_DATE = "bad_date"
    MALFORMED_CALLS = "malformed_calls"
    BROKEN_FILE = "broken_file"
    MISSING_COLUMNS = "missing_columns"
    MIXED_KINDS = "mixed_kinds"
    HOOK_FAILED = "hook_failed"
    NO_TURN_LEFT = "no_turn_left"


class Repair(enum.StrEnum):
    """What a conversion or a guard changed in a thread, or left out of it."""

    # Left out: the message is in no row of this dataset.
    BLANK_MESSAGE = "blank_message"
    DISPLAY_ROLE = "display_role"
    UNKNOWN_ROLE = "unknown_role"
    MALFORMED_MESSAGE = "malformed_message"
    SKIPPED_BY_HOOK = "skipped_by_hook"
    ORPHAN_RESULT = "orphan_result"
    DUPLICATE_RESULT = "duplicate_result"
    UNANSWERED_CALL = "unanswered_call"
    NO_PLACE_IN_FORMAT = "no_place_in_format"
    BEFORE_FIRST_USER = "before_first_user"
    USER_BEHIND_RESULT = "user_behind_result"

    # Changed: the message is there, but not as it was.
    MALFORMED_CALL = "malformed_call"
    CALL_WITHOUT_ID = "call_without_id"
    ARGUMENTS_RECOVERED = "arguments_recovered"
    ARGUMENTS_UNREADABLE = "arguments_unreadable"
    CALL_PROMOTED = "call_promoted"
    ID_NORMALIZED = "id_normalized"
    ID_RENAMED = "id_renamed"
    ID_MAPPED = "id_mapped"
    RESULT_MOVED = "result_moved"
    BLANK_TEXT = "blank_text"
    SYSTEM_MOVED = "system_moved"
    TURNS_JOINED = "turns_joined"
    CONTENT_PARTS_DROPPED = "content_parts_dropped"
    ATTACHMENT_UNSUPPORTED = "attachment_unsupported"
    ATTACHMENT_WITHOUT_DATA = "attachment_without_data"
    ATTACHMENT_UNREADABLE = "attachment_unreadable"
    ATTACHMENT_OUTSIDE_ROOT = "attachment_outside_root"
