"""A block of lines straight into the columns of the shuffle.

Plain Chat SDK messages are read as columns at once (`json_columns`). Of the other lines the typed decoder
gives the values, and what the shuffle needs of them is taken column by column. Whatever is not plainly a
message (whole histories, odd dates, malformed calls, lines that do not decode) goes record by record
through `decode`, which is the one definition of right: a property test holds this module equal to it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
from msgspec import UNSET

from schemas.arrow import RECORDS
from schemas.records import Kind, Place, Record, Rejected, WireAuthor, WireMetadata, WireRecord
from transforms.decode import (
    Source,
    agui_message,
    oversized_line,
    record_of_line,
)
from transforms.depth import DEPTH_LIMIT, is_too_deep
from transforms.js_text import is_truthy
from transforms.json_columns import plain_dates, plain_messages
from transforms.lines import Lines
from transforms.record_tables import packed_agui, packed_extras, records_table
from transforms.tool_calls import is_well_formed_call

_DECODER = msgspec.json.Decoder(WireRecord)
_NO_METADATA = WireMetadata()
_SHORT_LINE = 2048
_FIRST_LINES = 8


class DecodedBlock(NamedTuple):
    """The records of a block as a table of `RECORDS`, and its rejects."""

    table: pa.Table
    rejects: list[Rejected]


def decoded_lines(lines: Lines, file: int, source: Source) -> DecodedBlock:
    """The records and rejects of the lines of one file."""
    rejects = [oversized_line(start, size, Place(file, offset)) for offset, start, size in lines.oversized]
    tables: list[pa.Table] = []
    if _may_be_plain(lines, source):
        read = plain_messages(lines, file, chat_only=source == "chat-sdk")
        tables.append(read.table)
        lines = lines.at(np.flatnonzero(~read.is_plain))
    data, offsets = lines.data, lines.offsets.tolist()
    typed_tables, others = _typed(data, offsets, file, source)
    records: list[Record] = []
    for at in others:
        result = record_of_line(data[at], Place(file, offsets[at]), source)
        if isinstance(result, Record):
            records.append(result)
        else:
            rejects.append(result)
    return DecodedBlock(pa.concat_tables([*tables, *typed_tables, records_table(records)]), rejects)


def _may_be_plain(lines: Lines, source: Source) -> bool:
    """Whether Arrow's reader is worth a try: a Chat SDK message is among the first, and none is too deep."""
    if source == "ag-ui" or not len(lines):
        return False
    first = map(_wire_or_none, lines.at(np.arange(min(_FIRST_LINES, len(lines)))).data)
    if not any(wire is not None and _is_plain_chat(wire, source == "chat-sdk") for wire in first):
        return False
    long = np.flatnonzero(lines.ends - lines.starts > 2 * DEPTH_LIMIT)
    return not any(map(is_too_deep, lines.at(long).data))


def _typed(
    data: list[bytes], offsets: list[int], file: int, source: Source
) -> tuple[list[pa.Table], list[int]]:
    """The lines that the typed decoder reads and that need no second look, and the others' positions."""
    wires = _wires(data)
    plain = _Plain([], [])
    others: list[int] = []
    for at, wire in enumerate(wires):
        if wire is None:
            others.append(at)
        elif source != "ag-ui" and _is_plain_chat(wire, source == "chat-sdk"):
            plain.chat.append(at)
        elif source != "chat-sdk" and _is_plain_agui(wire, source == "ag-ui"):
            plain.agui.append(at)
        else:
            others.append(at)
    tables: list[pa.Table] = []
    for chosen, make in ((plain.chat, _chat_columns), (plain.agui, _agui_columns)):
        if chosen:
            table, odd = _table(wires, data, offsets, chosen, file, make)
            tables.append(table)
            others += odd
    return tables, others


class _Plain(NamedTuple):
    """The positions of the lines that can go column by column, by vocabulary."""

    chat: list[int]
    agui: list[int]


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


def _is_plain_chat(wire: WireRecord, chat_only: bool) -> bool:
    return (
        (chat_only or wire.type_tag == "chat:Message")
        and wire.author is not None
        and wire.text is not None
        and bool(wire.thread_id)
        and (wire.id is None or type(wire.id) is str)
    )


def _is_plain_agui(wire: WireRecord, agui_only: bool) -> bool:
    return (
        wire.messages is None
        and (agui_only or (wire.type_tag != "chat:Message" and wire.role is not UNSET))
        and bool(wire.thread_id)
        and (wire.id is None or type(wire.id) is str)
        # Calls may be malformed, and then the message may be nothing: `decode` looks at them.
        and (wire.tool_calls is UNSET or wire.role != "assistant" or _are_calls(wire.tool_calls))
    )


def _are_calls(calls: Any) -> bool:
    return isinstance(calls, list) and bool(calls) and all(map(is_well_formed_call, calls))


# The values of each message that its own vocabulary fills: dates, and the last columns of RECORDS.
_Columns = Callable[[list[Any], list[bytes]], tuple[list[Any], list[Any], list[pa.Array]]]


def _table(
    wires: list[Any], data: list[bytes], offsets: list[int], chosen: list[int], file: int, make: _Columns
) -> tuple[pa.Table, list[int]]:
    """The chosen records as a table, and the positions of those left out for a date that is not plain."""
    if len(chosen) < len(wires):
        wires, data = [wires[at] for at in chosen], [data[at] for at in chosen]
        offsets = [offsets[at] for at in chosen]
    count = len(wires)
    sent, edited, columns = make(wires, data)
    sent_ms, edited_ms = plain_dates(_texts(sent)), plain_dates(_texts(edited))
    kind = Kind.CHAT if make is _chat_columns else Kind.AGUI
    arrays = [
        pa.array([wire.thread_id for wire in wires], pa.string()),
        pa.repeat(pa.scalar(int(kind), pa.int8()), count),
        pa.repeat(pa.scalar(file, pa.int32()), count),
        pa.array(offsets, pa.int64()),
        pa.array([wire.id or None for wire in wires], pa.string()),
        sent_ms,
        edited_ms,
        pa.repeat(pa.scalar(1, pa.int32()), count),
        *columns,
    ]
    table = pa.Table.from_arrays(arrays, schema=RECORDS)
    odd = _odd(sent_ms, sent) | _odd(edited_ms, edited)
    if odd:
        table = table.take(pa.array(sorted(set(range(count)) - odd), pa.int64()))
    return table, [chosen[at] for at in sorted(odd)]


def _chat_columns(wires: list[Any], _data: list[bytes]) -> tuple[list[Any], list[Any], list[pa.Array]]:
    metadata = [wire.metadata or _NO_METADATA for wire in wires]
    authors: list[Any] = [wire.author for wire in wires]
    columns = [
        pa.array([_is_me(author) for author in authors], pa.bool_()),
        pa.array([_user_name(author) for author in authors], pa.string()),
        pa.array([wire.text for wire in wires], pa.string()),
        pa.array([_extras(wire) for wire in wires], pa.binary()),
    ]
    return [one.date_sent for one in metadata], [one.edited_at for one in metadata], columns


def _agui_columns(wires: list[Any], data: list[bytes]) -> tuple[list[Any], list[Any], list[pa.Array]]:
    count = len(wires)
    columns = [
        pa.nulls(count, pa.bool_()),
        pa.nulls(count, pa.string()),
        pa.nulls(count, pa.string()),
        pa.array(map(_agui_body, wires, data), pa.binary()),
    ]
    return [wire.date_sent for wire in wires], [None] * count, columns


def _agui_body(wire: WireRecord, line: bytes) -> bytes:
    """The line as it stands: what reads it takes what it needs. Without the rest where that may be long."""
    return line if len(line) <= _SHORT_LINE else packed_agui(agui_message(wire, None))


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


def _texts(values: list[Any]) -> pa.Array:
    return pa.array([value if type(value) is str else None for value in values], pa.string())


def _odd(column: pa.Array, values: list[Any]) -> set[int]:
    """The positions of the values that are there, and were not read."""
    if column.null_count <= values.count(None):
        return set()
    unread = column.is_null().to_pylist()
    return {at for at, value in enumerate(values) if value is not None and unread[at]}
