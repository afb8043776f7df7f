"""Rows and rejects as Arrow tables, in the columns that design fixes for the files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pyarrow as pa

from schemas.arrow import REPAIR, ROLE_AND_CONTENT, TIMESTAMP, row_schema
from schemas.formats import Format
from schemas.turns import RepairNote
from transforms.convert import Row


def row_table(rows: Sequence[Row], fmt: Format) -> pa.Table:
    """The rows as a table of `row_schema(fmt)`, from flat columns and offsets."""
    offsets = offsets_of([len(row.messages) for row in rows])
    flat = [message for row in rows for message in row.messages]
    ids = pa.array([one for row in rows for one in row.message_ids], pa.string())
    dates = pa.array([ms for row in rows for ms in row.sent_ms], pa.int64()).cast(TIMESTAMP)
    columns = [
        pa.array([row.thread_id for row in rows], pa.string()),
        pa.ListArray.from_arrays(offsets, _messages(flat, fmt)),
        pa.ListArray.from_arrays(offsets, ids),
        pa.ListArray.from_arrays(offsets, dates),
        pa.array([len(row.messages) for row in rows], pa.int32()),
        _timestamps([_bound(min, row) for row in rows]),
        _timestamps([_bound(max, row) for row in rows]),
        pa.array([_json_or_none(row.tools) for row in rows], pa.string()),
        _repairs([row.repairs for row in rows]),
    ]
    return pa.Table.from_arrays(columns, schema=row_schema(fmt))


def _messages(flat: list[dict[str, Any]], fmt: Format) -> pa.Array:
    if fmt is Format.MESSAGES:
        roles = pa.array([message["role"] for message in flat], pa.string())
        contents = pa.array([message["content"] for message in flat], pa.string())
        return pa.StructArray.from_arrays([roles, contents], fields=list(ROLE_AND_CONTENT))
    encode = msgspec.json.Encoder().encode
    return pa.array([encode(message) for message in flat], pa.binary()).cast(pa.string())


def _repairs(of_rows: list[list[RepairNote]]) -> pa.Array:
    flat = [note for notes in of_rows for note in notes]
    return pa.ListArray.from_arrays(offsets_of([len(notes) for notes in of_rows]), repairs_array(flat))


def repairs_array(flat: list[RepairNote]) -> pa.Array:
    """Repairs as an array of structs."""
    fields = [
        pa.array([note.message_id for note in flat], pa.string()),
        pa.array([note.reason.value for note in flat], pa.string()),
        pa.array([note.detail for note in flat], pa.string()),
    ]
    return pa.StructArray.from_arrays(fields, fields=list(REPAIR))


def offsets_of(lengths: list[int]) -> pa.Array:
    """Where each of the lists begins, and where the last one ends."""
    offsets = [0]
    for length in lengths:
        offsets.append(offsets[-1] + length)
    return pa.array(offsets, pa.int32())


def _timestamps(values: list[int | None]) -> pa.Array:
    return pa.array(values, pa.int64()).cast(TIMESTAMP)


def _bound(pick: Any, row: Row) -> int | None:
    known = [ms for ms in row.sent_ms if ms is not None]
    return pick(known) if known else None


def _json_or_none(value: list[Any] | None) -> str | None:
    return None if value is None else msgspec.json.encode(value).decode()
