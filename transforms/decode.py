"""One line (or row) of an archive to one typed record, or to a reject that says why not.

Two ways through a line: the typed decoder, which skips what the job does not need and refuses what
is not UTF-8; and, for the few lines that spell half a surrogate pair, a slower one that mends it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Literal

import msgspec
from msgspec import UNSET

from schemas.reasons import Reject
from schemas.records import (
    AguiMessage,
    ChatMessage,
    History,
    Kind,
    Place,
    Record,
    Rejected,
    WireRecord,
)
from transforms.dates import BadDate, epoch_ms
from transforms.depth import DEPTH_LIMIT, is_too_deep
from transforms.js_text import is_blank, is_truthy, scrubbed
from transforms.tool_calls import is_well_formed_call

Source = Literal["auto", "chat-sdk", "ag-ui"]

# A longer line is no message; its reject keeps the first RAW_LIMIT bytes.
RECORD_LIMIT = 32 << 20
RAW_LIMIT = 64 << 10

_DECODER = msgspec.json.Decoder(WireRecord)
_ESCAPED_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
_NO_THREAD = "the record has no threadId"


class _Refused(Exception):
    def __init__(self, reason: Reject, detail: str, thread_id: str | None = None) -> None:
        super().__init__(detail)
        self.reason = reason
        self.detail = detail
        self.thread_id = thread_id


def record_of_line(line: bytes, place: Place, source: Source) -> Record | Rejected:
    """The record that a line of JSON holds. Never raises: what is wrong comes back as a reject."""
    try:
        if is_too_deep(line):
            raise _Refused(Reject.NESTED_TOO_DEEP, f"nested deeper than {DEPTH_LIMIT}")
        return _record(_wire_of_line(line), place, source)
    except _Refused as refused:
        return Rejected(place, refused.reason, refused.detail, refused.thread_id, raw=line[:RAW_LIMIT])


def record_of_row(row: Mapping[str, Any], place: Place, source: Source) -> Record | Rejected:
    """The record that a row of an Avro or Parquet file holds. Never raises, as above."""
    try:
        return _record(_wire_of_row(row), place, source)
    except _Refused as refused:
        raw = msgspec.json.encode(row, enc_hook=str)[:RAW_LIMIT]
        return Rejected(place, refused.reason, refused.detail, refused.thread_id, raw=raw)


def oversized_line(start: bytes, size: int, place: Place) -> Rejected:
    """The reject of a line that is too long to be a record; `start` is how it begins."""
    detail = f"the line has {size} bytes, more than {RECORD_LIMIT}"
    return Rejected(place, Reject.TOO_LARGE, detail, raw=start[:RAW_LIMIT])


def _wire_of_line(line: bytes) -> WireRecord:
    try:
        return _DECODER.decode(line)
    except msgspec.ValidationError as error:
        raise _wrong_type(error, line) from None
    except RecursionError:
        raise _Refused(Reject.NESTED_TOO_DEEP, "nested too deep to be read") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        if _ESCAPED_SURROGATE.search(line):
            return _wire_of_mended_line(line)
        raise _not_json(error, line) from None


def _wire_of_mended_line(line: bytes) -> WireRecord:
    try:
        value = json.loads(line.decode("utf-8"), parse_constant=_no_constant, parse_int=_integer)
        return msgspec.convert(_stringified(scrubbed(value)), WireRecord)
    except msgspec.ValidationError as error:
        raise _wrong_type(error, line) from None
    except RecursionError:
        raise _Refused(Reject.NESTED_TOO_DEEP, "nested too deep to be read") from None
    except ValueError as error:
        raise _not_json(error, line) from None


def _stringified(value: Any) -> Any:
    """A whole history's messages as raw JSON, the form in which the typed decoder leaves them."""
    if isinstance(value, dict) and isinstance(value.get("messages"), list):
        raw = [msgspec.Raw(msgspec.json.encode(item)) for item in value["messages"]]
        return {**value, "messages": raw}
    return value


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _integer(digits: str) -> int | float:
    return int(digits) if len(digits) < 300 else float("inf")


def _wrong_type(error: Exception, line: bytes) -> _Refused:
    text = str(error)
    if text.startswith("Expected `object`, got") and " - at " not in text:
        return _Refused(Reject.NOT_AN_OBJECT, text)
    if text.endswith(("dateSent`", "editedAt`")):
        return _Refused(Reject.BAD_DATE, text, _thread_id_in(line))
    reason = Reject.MISSING_FIELD if "missing required field" in text else Reject.WRONG_TYPE
    return _Refused(reason, text, _thread_id_in(line))


def _not_json(error: Exception, line: bytes) -> _Refused:
    try:
        line.decode("utf-8")
    except UnicodeDecodeError as broken:
        return _Refused(Reject.NOT_UTF8, f"{broken.reason} (byte {broken.start} of the record)")
    return _Refused(Reject.NOT_JSON, str(error))


class _ThreadOnly(msgspec.Struct, rename="camel"):
    thread_id: Any = None


def _thread_id_in(line: bytes) -> str | None:
    try:
        thread_id = msgspec.json.decode(line, type=_ThreadOnly).thread_id
    except (msgspec.MsgspecError, RecursionError):
        return None
    return thread_id if isinstance(thread_id, str) else None


def _wire_of_row(row: Mapping[str, Any]) -> WireRecord:
    try:
        value = _stringified(_without_nulls(scrubbed(dict(row))))
        return msgspec.convert(value, WireRecord)
    except msgspec.ValidationError as error:
        thread_id = row.get("threadId")
        known = thread_id if isinstance(thread_id, str) else None
        reason = Reject.MISSING_FIELD if "missing required" in str(error) else Reject.WRONG_TYPE
        raise _Refused(reason, str(error), known) from None
    except (RecursionError, TypeError, ValueError) as error:
        raise _Refused(Reject.WRONG_TYPE, str(error)) from None


def _without_nulls(value: Any) -> Any:
    """A row as a JSON record would be: columns cannot be absent, so null says that they are."""
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_without_nulls(item) for item in value]
    return value


def _record(wire: WireRecord, place: Place, source: Source) -> Record:
    kind = _kind(wire, source)
    if not wire.thread_id:
        raise _Refused(Reject.NO_THREAD_ID, _NO_THREAD)
    try:
        if kind is Kind.CHAT:
            return _chat_record(wire, wire.thread_id, place)
        return _agui_record(wire, wire.thread_id, kind, place)
    except BadDate as error:
        raise _Refused(Reject.BAD_DATE, f"dateSent: {error}", wire.thread_id) from None


def _kind(wire: WireRecord, source: Source) -> Kind:
    is_history = wire.messages is not None
    if source == "chat-sdk":
        return Kind.CHAT
    if source == "ag-ui":
        return Kind.HISTORY if is_history else Kind.AGUI
    if wire.type_tag == "chat:Message":
        return Kind.CHAT
    if is_history:
        return Kind.HISTORY
    if wire.role is not UNSET or wire.content is not UNSET or wire.tool_calls is not UNSET:
        return Kind.AGUI
    if wire.author is not None or wire.text is not None:
        return Kind.CHAT
    raise _Refused(
        Reject.UNKNOWN_KIND,
        "neither a Chat SDK message (author, text) nor an AG-UI one (role, messages)",
        wire.thread_id,
    )


def _chat_record(wire: WireRecord, thread_id: str, place: Place) -> Record:
    author, metadata = wire.author, wire.metadata
    if author is None:
        raise _Refused(Reject.MISSING_FIELD, "the message has no author", thread_id)
    if wire.text is None:
        raise _Refused(Reject.MISSING_FIELD, "the message has no text", thread_id)
    message_id = _message_id(wire, thread_id)
    sent_ms = epoch_ms(metadata.date_sent) if metadata is not None else None
    name = author.user_name
    body = ChatMessage(
        id=message_id,
        text=wire.text,
        is_me=is_truthy(author.is_me),
        # As a JavaScript template spells them: absent is "undefined", null is "null".
        user_name=None if name is UNSET else "null" if name is None else name,
        sent_ms=sent_ms,
        attachments=wire.attachments or [],
        links=wire.links or [],
    )
    edited_ms = _edited_ms(metadata.edited_at) if metadata is not None else None
    return Record(thread_id, Kind.CHAT, place, body, message_id, sent_ms, edited_ms)


def _edited_ms(value: Any) -> int | None:
    """When it was edited; a value that is no date only loses its say over which version counts."""
    try:
        return epoch_ms(value)
    except BadDate:
        return None


def _agui_record(wire: WireRecord, thread_id: str, kind: Kind, place: Place) -> Record:
    sent_ms = epoch_ms(wire.date_sent)
    if kind is Kind.HISTORY:
        messages = [_history_message(raw) for raw in wire.messages or []]
        tools = _tools(wire.tools)
        history = History(messages, tools)
        return Record(thread_id, kind, place, history, None, sent_ms, None, len(messages))
    message = agui_message(wire, sent_ms)
    if message.role == "assistant" and _holds_only_malformed_calls(message):
        raise _Refused(Reject.MALFORMED_CALLS, "nothing in it but tool calls that are none", thread_id)
    message_id = message.id if isinstance(message.id, str) and message.id else None
    return Record(thread_id, kind, place, message, message_id, sent_ms)


def _tools(value: Any) -> list[Any] | None:
    """The tools of a run input; a file of rows may carry them as JSON text. Else there are none."""
    if isinstance(value, str):
        try:
            value = scrubbed(msgspec.json.decode(value))
        except (msgspec.MsgspecError, RecursionError):
            return None
    return value if isinstance(value, list) else None


def agui_message(wire: WireRecord, sent_ms: int | None) -> AguiMessage:
    """The AG-UI message that a decoded record holds."""

    def value(item: Any) -> Any:
        return None if item is UNSET else item

    return AguiMessage(
        role=value(wire.role),
        id=wire.id,
        content=value(wire.content),
        tool_calls=value(wire.tool_calls),
        tool_call_id=value(wire.tool_call_id),
        name=value(wire.name),
        error=value(wire.error),
        sent_ms=sent_ms,
    )


def _history_message(raw: msgspec.Raw) -> AguiMessage:
    """One message of a whole history; what is none keeps its place, marked as malformed."""
    try:
        wire = _wire_of_line(bytes(raw))
    except _Refused:
        return AguiMessage(malformed=True)
    try:
        sent_ms = epoch_ms(wire.date_sent)
    except BadDate:
        sent_ms = None
    return agui_message(wire, sent_ms)


def _holds_only_malformed_calls(message: AguiMessage) -> bool:
    calls = message.tool_calls
    if calls is None or (isinstance(calls, list) and not calls):
        return False
    if isinstance(calls, list) and any(is_well_formed_call(call) for call in calls):
        return False
    content = message.content
    return content is None or (isinstance(content, str) and is_blank(content))


def _message_id(wire: WireRecord, thread_id: str) -> str | None:
    if wire.id is None or wire.id == "":
        return None
    if not isinstance(wire.id, str):
        found = type(wire.id).__name__
        raise _Refused(Reject.WRONG_TYPE, f"Expected `str`, got `{found}` - at `$.id`", thread_id)
    return wire.id
