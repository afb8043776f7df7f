"""Records as Arrow tables: how they cross the shuffle in few, large elements, and come back in order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from schemas.arrow import RECORDS
from schemas.records import (
    AguiMessage,
    Attachment,
    ChatMessage,
    History,
    Kind,
    Link,
    Place,
    Record,
)


class _ChatExtras(msgspec.Struct, omit_defaults=True):
    """What few Chat SDK messages have."""

    attachments: list[Attachment] = []
    links: list[Link] = []


_EXTRAS = msgspec.json.Decoder(_ChatExtras)
_AGUI = msgspec.json.Decoder(AguiMessage)
_HISTORY = msgspec.json.Decoder(History)


def packed_records(records: list[Record]) -> bytes:
    """The records as one Arrow IPC stream of one batch."""
    columns: dict[str, list[Any]] = {name: [] for name in RECORDS.names}
    append = [columns[name].append for name in RECORDS.names]
    for record in records:
        is_me, user_name, text, body = _split_body(record)
        values = (
            record.thread_id,
            int(record.kind),
            record.place.file,
            record.place.at,
            record.id,
            record.sent_ms,
            record.edited_ms,
            record.messages,
            is_me,
            user_name,
            text,
            body,
        )
        for add, value in zip(append, values, strict=True):
            add(value)
    return packed_table(pa.table(columns, schema=RECORDS))


def packed_table(table: pa.Table) -> bytes:
    """A table as an Arrow IPC stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]


def unpacked_tables(packed: Iterable[bytes], schema: pa.Schema) -> pa.Table:
    """One table of all the streams; an empty one of that schema where there are none."""
    tables = [pa.ipc.open_stream(stream).read_all() for stream in packed]
    return pa.concat_tables(tables) if tables else schema.empty_table()


def in_total_order(table: pa.Table) -> pa.Table:
    """The records sorted by thread, then date (none counts as 0), then place."""
    dates = pc.fill_null(table["sent_ms"], 0)
    keyed = table.append_column("date", dates)
    order = [(name, "ascending") for name in ("thread_id", "date", "file", "at")]
    return table.take(pc.sort_indices(keyed, sort_keys=order))


def threads_of(table: pa.Table) -> Iterator[list[Record]]:
    """The records of each thread, from a table in total order."""
    if not table.num_rows:
        return
    # A few tens of thousands of rows at a time: Python objects of a whole shard would be the peak.
    thread: list[Record] = []
    for batch in table.to_batches(max_chunksize=1 << 14):
        for record in _records(batch):
            if thread and record.thread_id != thread[0].thread_id:
                yield thread
                thread = []
            thread.append(record)
    if thread:
        yield thread


def _records(batch: pa.RecordBatch) -> Iterator[Record]:
    for row in zip(*(column.to_pylist() for column in batch.columns), strict=True):
        thread_id, kind, file, at, message_id, sent_ms, edited_ms, messages, *body = row
        yield Record(
            thread_id,
            Kind(kind),
            Place(file, at),
            _joined_body(kind, message_id, sent_ms, body),
            message_id,
            sent_ms,
            edited_ms,
            messages,
        )


def _split_body(record: Record) -> tuple[bool | None, str | None, str | None, bytes | None]:
    body = record.body
    if not isinstance(body, ChatMessage):
        return None, None, None, msgspec.json.encode(body)
    extras = None
    if body.attachments or body.links:
        extras = msgspec.json.encode(_ChatExtras(body.attachments, body.links))
    return body.is_me, body.user_name, body.text, extras


def _joined_body(
    kind: int, message_id: str | None, sent_ms: int | None, body: list[Any]
) -> ChatMessage | AguiMessage | History:
    is_me, user_name, text, packed = body
    if kind == Kind.CHAT:
        if packed is None:
            return ChatMessage(message_id, text, is_me, user_name, sent_ms)
        extras = _EXTRAS.decode(packed)
        return ChatMessage(
            message_id, text, is_me, user_name, sent_ms, extras.attachments, extras.links
        )
    return (_AGUI if kind == Kind.AGUI else _HISTORY).decode(packed)
