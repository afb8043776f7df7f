"""A thread in, a row out: the conversions and guards in the order in which they apply.

Pure: what it gives depends on the thread and the options alone, and on the hooks that it is given.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from schemas.formats import Dataset, Format
from schemas.reasons import Reject, Repair
from schemas.records import Attachment, ChatMessage
from schemas.turns import Conversion, LeftOut, RepairNote, Turn
from transforms.attachments import FileReader
from transforms.chat_turns import chat_turn, is_empty
from transforms.formats import RENDERERS, Renderer
from transforms.guards import guarded_chat, guarded_history
from transforms.guards.rules import GuardOptions, Guards
from transforms.hooks import (
    HookFailed,
    attachment_dict,
    hook_failed,
    source_of,
    transformed,
    turn_of_message,
)
from transforms.js_text import is_blank_anywhere
from transforms.threads import Thread

# These formats are exactly what the serving side makes of a Chat SDK message: a hook sees that
# message and has the last word. Everywhere else it sees toAiMessages' message, and its result is
# written the format's way.
_OWN_MESSAGE = (Format.AI_SDK, Format.TANSTACK)


BLANK_DETAIL = "neither text nor attachment"


class Hooks(msgspec.Struct, frozen=True):
    """What a conversion may call: the attachment folder's reader and the user's functions."""

    read_file: FileReader | None = None
    transform_message: Callable[..., Any] | None = None
    on_unsupported: Callable[..., Any] | None = None


class Target(msgspec.Struct, frozen=True):
    """One dataset of a run: its format, and what its conversion needs to know."""

    dataset: Dataset
    format: Format
    guards: GuardOptions
    include_names: bool = False

    @property
    def has_guards(self) -> bool:
        """Whether Chat SDK threads pass the strict guards: as histories, not as training rows."""
        return self.dataset is Dataset.REPLAY and self.guards.guards is Guards.STRICT

    def is_emptied(self, text: str) -> bool:
        """Whether the guards take the text of a message for none."""
        return self.has_guards and is_blank_anywhere(text)

    @property
    def needs_whole_thread(self) -> bool:
        """Whether a Chat SDK message's conversion depends on its neighbours, too."""
        return self.has_guards and self.guards.provider is not None


class Row(msgspec.Struct):
    """One thread in a dataset. `messages`, `message_ids` and `sent_ms` are aligned."""

    thread_id: str
    messages: list[dict[str, Any]]
    message_ids: list[str | None]
    sent_ms: list[int | None]
    tools: list[Any] | None
    repairs: list[RepairNote]


class Failure(msgspec.Struct, frozen=True):
    """A message (by position) that could not be converted."""

    source: int
    reason: Reject
    detail: str


class Outcome(msgspec.Struct):
    """What became of a thread: its row or None, and the messages that are not in it, with reasons."""

    row: Row | None
    left_out: list[LeftOut]
    failures: list[Failure]


def converted(thread: Thread, target: Target, hooks: Hooks) -> Outcome:
    """The thread's row for one dataset. No user and no assistant turn left: no row."""
    failures: list[Failure] = []
    if thread.is_chat:
        conversion, own_messages = _chat_conversion(thread, target, hooks, failures)
        if target.dataset is Dataset.REPLAY:
            conversion = guarded_chat(conversion, target.guards)
    else:
        own_messages = {}
        conversion = guarded_history(thread.agui_messages(), target.guards)
    row = _row(thread, conversion, own_messages, RENDERERS[target.format])
    if row is not None and not _speaks(conversion, target.guards):
        row = None
    return Outcome(row, conversion.left_out, failures)


def _chat_conversion(
    thread: Thread, target: Target, hooks: Hooks, failures: list[Failure]
) -> tuple[Conversion, dict[int, dict[str, Any]]]:
    """Section A: the thread's turns, and the messages that a hook has already written, by position."""
    result = Conversion([], [], [])
    own_messages: dict[int, dict[str, Any]] = {}
    report = _reporter(hooks.on_unsupported, thread.thread_id)
    for at, message in enumerate(thread.chat_messages()):
        try:
            turn, notes = chat_turn(
                message,
                at,
                include_names=target.include_names,
                read_file=hooks.read_file,
                on_unsupported=report,
            )
            empty = is_empty(turn)
            if not empty and hooks.transform_message is not None:
                source = source_of(message, thread.thread_id)
                turn_or_none = _hooked(turn, source, target, hooks, own_messages)
                if turn_or_none is None:
                    _leave_out(result, turn, Repair.SKIPPED_BY_HOOK, "the hook gave None")
                    continue
                turn = turn_or_none
        except HookFailed as failed:
            failures.append(Failure(at, Reject.HOOK_FAILED, str(failed)))
            continue
        result.repairs += notes
        if empty:
            _leave_out(result, turn, Repair.BLANK_MESSAGE, BLANK_DETAIL)
        else:
            result.turns.append(turn)
    return result, own_messages


def _hooked(
    turn: Turn,
    source: dict[str, Any],
    target: Target,
    hooks: Hooks,
    own_messages: dict[int, dict[str, Any]],
) -> Turn | None:
    """The turn after the user's hook; where the hook's message is the last word, it is kept too."""
    assert hooks.transform_message is not None
    own = target.format in _OWN_MESSAGE
    shown = RENDERERS[target.format if own else Format.AI_SDK](turn, [])
    assert shown is not None
    message = transformed(hooks.transform_message, shown, source)
    if message is None:
        return None
    if not own:
        return turn_of_message(message, turn)
    own_messages[turn.source] = message
    return turn


def _reporter(
    hook: Callable[..., Any] | None, thread_id: str
) -> Callable[[Attachment, ChatMessage], None] | None:
    if hook is None:
        return None

    def report(attachment: Attachment, message: ChatMessage) -> None:
        try:
            hook(attachment_dict(attachment), source_of(message, thread_id))
        except Exception as error:  # the hook is the user's, as above
            raise hook_failed(error) from None

    return report


def _leave_out(conversion: Conversion, turn: Turn, reason: Repair, detail: str) -> None:
    conversion.repairs.append(RepairNote(turn.message_id, reason, detail))
    conversion.left_out.append(LeftOut(turn.source, reason))


def _row(
    thread: Thread,
    conversion: Conversion,
    own_messages: dict[int, dict[str, Any]],
    render: Renderer,
) -> Row | None:
    row = Row(thread.thread_id, [], [], [], thread.tools, conversion.repairs)
    for turn in conversion.turns:
        message = own_messages.get(turn.source) if own_messages else None
        if message is None:
            message = render(turn, row.repairs)
        if message is None:
            for source in (turn.source, *turn.joined):
                conversion.left_out.append(LeftOut(source, Repair.NO_PLACE_IN_FORMAT))
            continue
        row.messages.append(message)
        row.message_ids.append(None if turn.joined else turn.message_id)
        row.sent_ms.append(None if turn.joined else turn.sent_ms)
    return row if row.messages else None


def _speaks(conversion: Conversion, guards: GuardOptions) -> bool:
    """Whether a user or an assistant is left; upstream sends a history without either, too."""
    if guards.guards is Guards.UPSTREAM:
        return True
    return any(turn.role in ("user", "assistant") for turn in conversion.turns)
