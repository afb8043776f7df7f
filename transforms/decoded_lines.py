"""A block of lines straight into the columns of the shuffle.

The typed decoder gives every line's values; what a Chat SDK message needs of them is the same for
nearly all messages, so it is taken column by column. Whatever is not plainly such a message (other
vocabularies, odd dates, lines that do not decode) goes record by record through `decode`, which is
the one definition of right: a property test holds this module equal to it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import UNSET

from schemas.arrow import RECORDS
from schemas.records import Kind, Place, Record, Rejected, WireAuthor, WireMetadata, WireRecord
from transforms.dates import FIRST_MS
from transforms.decode import (
    Source,
    oversized_line,
    record_of_line,
)
from transforms.depth import DEPTH_LIMIT, is_too_deep
from transforms.js_text import is_truthy
from transforms.lines import Lines
from transforms.record_tables import packed_extras, records_table

_DECODER = msgspec.json.Decoder(WireRecord)
_NO_METADATA = WireMetadata()
_PLAIN_DATE = r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$"


class DecodedBlock(NamedTuple):
    """The records of a block as a table of `RECORDS`, and its rejects."""

    table: pa.Table
    rejects: list[Rejected]


def decoded_lines(lines: Lines, file: int, source: Source) -> DecodedBlock:
    """The records and rejects of the lines of one file."""
    rejects = [oversized_line(start, size, Place(file, offset)) for offset, start, size in lines.oversized]
    wires = _wires(lines.data)
    others: list[int] = []
    if source == "ag-ui":
        plain, others = [], list(range(len(wires)))
    else:
        chat_only = source == "chat-sdk"
        plain = [at for at, wire in enumerate(wires) if _is_plain_chat(wire, chat_only)]
        if len(plain) < len(wires):
            others = sorted(set(range(len(wires))) - set(plain))
    table = _chat_table(
        [wires[at] for at in plain] if others else wires,
        [lines.offsets[at] for at in plain] if others else lines.offsets,
        file,
    )
    odd = _odd(table, [wires[at] for at in plain] if others else wires)
    if odd:
        others += [plain[at] for at in odd]
        kept = set(range(len(plain))) - set(odd)
        table = table.take(pa.array(sorted(kept), pa.int64()))
    records: list[Record] = []
    for at in others:
        result = record_of_line(lines.data[at], Place(file, lines.offsets[at]), source)
        if isinstance(result, Record):
            records.append(result)
        else:
            rejects.append(result)
    if records:
        table = pa.concat_tables([table, records_table(records)])
    return DecodedBlock(table, rejects)


def _wires(data: list[bytes]) -> list[Any]:
    """Each line decoded; None where it does not decode, or may nest too deep."""
    try:
        wires: list[Any] = list(map(_DECODER.decode, data))
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        wires = [_wire_or_none(line) for line in data]
    if max(map(len, data), default=0) > 2 * DEPTH_LIMIT:
        for at, line in enumerate(data):
            if is_too_deep(line):
                wires[at] = None
    return wires


def _wire_or_none(line: bytes) -> WireRecord | None:
    try:
        return _DECODER.decode(line)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        return None


def _is_plain_chat(wire: WireRecord | None, chat_only: bool) -> bool:
    return (
        wire is not None
        and (chat_only or wire.type_tag == "chat:Message")
        and wire.author is not None
        and wire.text is not None
        and bool(wire.thread_id)
        and (wire.id is None or type(wire.id) is str)
    )


def _chat_table(wires: list[Any], offsets: list[int], file: int) -> pa.Table:
    """Columns of plain Chat SDK messages; a date that is not plain is null here, and odd."""
    count = len(wires)
    metadata = [wire.metadata or _NO_METADATA for wire in wires]
    authors: list[Any] = [wire.author for wire in wires]
    columns = {
        "thread_id": pa.array([wire.thread_id for wire in wires], pa.string()),
        "kind": pa.repeat(pa.scalar(int(Kind.CHAT), pa.int8()), count),
        "file": pa.repeat(pa.scalar(file, pa.int32()), count),
        "at": pa.array(offsets, pa.int64()),
        "id": pa.array([wire.id or None for wire in wires], pa.string()),
        "sent_ms": _plain_dates([one.date_sent for one in metadata]),
        "edited_ms": _plain_dates([one.edited_at for one in metadata]),
        "messages": pa.repeat(pa.scalar(1, pa.int32()), count),
        "is_me": pa.array([_is_me(author) for author in authors], pa.bool_()),
        "user_name": pa.array([_user_name(author) for author in authors], pa.string()),
        "text": pa.array([wire.text for wire in wires], pa.string()),
        "body": pa.array([_extras(wire) for wire in wires], pa.binary()),
    }
    return pa.Table.from_arrays(list(columns.values()), schema=RECORDS)


def _is_me(author: WireAuthor) -> bool:
    value = author.is_me
    return value if type(value) is bool else is_truthy(value)


def _user_name(author: WireAuthor) -> str | None:
    name = author.user_name
    if type(name) is str:
        return name
    return None if name is UNSET else "null"


def _extras(wire: WireRecord) -> bytes | None:
    if wire.attachments or wire.links:
        return packed_extras(wire.attachments or [], wire.links or [])
    return None


def _plain_dates(values: list[Any]) -> pa.Array:
    """Epoch milliseconds of the texts in the form that `toISOString` writes; null for all others."""
    texts = pa.array([value if type(value) is str else None for value in values], pa.string())
    if texts.null_count == len(texts):
        return pa.nulls(len(texts), pa.int64())
    plain = pc.match_substring_regex(texts, _PLAIN_DATE)
    chosen = pc.if_else(plain, texts, pa.scalar(None, pa.string()))
    try:
        ms = chosen.cast(pa.timestamp("ms", "UTC")).cast(pa.int64())
    except pa.ArrowInvalid:
        # Some date does not exist (30 February, 24:00): each goes its own way.
        return pa.nulls(len(texts), pa.int64())
    return pc.if_else(pc.greater_equal(ms, FIRST_MS), ms, pa.scalar(None, pa.int64()))


def _odd(table: pa.Table, wires: list[Any]) -> list[int]:
    """The positions of the messages that have a date which is not plain."""
    metadata = [wire.metadata or _NO_METADATA for wire in wires]
    odd: set[int] = set()
    for column, values in (
        (table["sent_ms"], [one.date_sent for one in metadata]),
        (table["edited_ms"], [one.edited_at for one in metadata]),
    ):
        if column.null_count > values.count(None):
            unread = column.is_null().to_pylist()
            odd.update(at for at, value in enumerate(values) if value is not None and unread[at])
    return sorted(odd)
