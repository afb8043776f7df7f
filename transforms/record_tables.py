"""Records as Arrow tables: how they cross the shuffle in few, large elements, and come back in order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from schemas.arrow import RECORDS
from schemas.records import (
    AguiBody,
    AguiMessage,
    Attachment,
    ChatMessage,
    History,
    Kind,
    Link,
    Place,
    Record,
)
from transforms.sharding import shard_of
from transforms.spill import Packed, buffer_of


class _ChatExtras(msgspec.Struct, omit_defaults=True):
    """What few Chat SDK messages have."""

    attachments: list[Attachment] = []
    links: list[Link] = []


_KINDS = tuple(Kind)
_EXTRAS = msgspec.json.Decoder(_ChatExtras)
_AGUI = msgspec.json.Decoder(AguiBody)
_HISTORY = msgspec.json.Decoder(History)


def records_table(records: list[Record]) -> pa.Table:
    """The records as a table of `RECORDS`."""
    rows = [
        (
            record.thread_id,
            int(record.kind),
            record.place.file,
            record.place.at,
            record.id,
            record.sent_ms,
            record.edited_ms,
            record.messages,
            *_split_body(record),
        )
        for record in records
    ]
    columns = zip(*rows, strict=True) if rows else [()] * len(RECORDS)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, RECORDS, strict=True)]
    return pa.Table.from_arrays(arrays, schema=RECORDS)


def packed_extras(attachments: list[Attachment], links: list[Link]) -> bytes:
    """A Chat SDK message's attachments and links, as its `body`."""
    return msgspec.json.encode(_ChatExtras(attachments, links))


def packed_agui(message: AguiMessage) -> bytes:
    """A single AG-UI message as its `body`; when it was sent is a column of its own."""
    message.sent_ms = None
    return msgspec.json.encode(message)


def by_shard(table: pa.Table, shards: int) -> list[tuple[int, pa.Table]]:
    """The records of each shard that has any. The hash is taken once a thread, not once a record."""
    if shards == 1 or not table.num_rows:
        return [(0, table)] if table.num_rows else []
    encoded = table["thread_id"].combine_chunks().dictionary_encode()
    of_thread = [shard_of(thread_id, shards) for thread_id in encoded.dictionary.to_pylist()]
    of_record = pa.array(of_thread, pa.int32()).take(encoded.indices)
    ordered = table.take(pc.sort_indices(of_record))
    parts: list[tuple[int, pa.Table]] = []
    start = 0
    for count in sorted(pc.value_counts(of_record).to_pylist(), key=lambda one: one["values"]):
        parts.append((count["values"], ordered.slice(start, count["counts"])))
        start += count["counts"]
    return parts


# What crosses a shuffle is copied several times on its way, and what waits in a file instead is written and
# read: LZ4 costs less than it saves there, in time and in memory.
_COMPRESSED = pa.ipc.IpcWriteOptions(compression="lz4")


def packed_table(table: pa.Table) -> pa.Buffer:
    """A table as a compressed Arrow IPC stream of one batch."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=_COMPRESSED) as writer:
        writer.write_table(table.combine_chunks())
    return sink.getvalue()


def unpacked_tables(packed: Iterable[Packed], schema: pa.Schema) -> pa.Table:
    """One table of all the streams; an empty one of that schema where there are none. Raises OSError."""
    tables = [pa.ipc.open_stream(buffer_of(stream)).read_all() for stream in packed]
    return pa.concat_tables(tables) if tables else schema.empty_table()


def in_total_order(table: pa.Table) -> pa.Table:
    """The records sorted by thread, then date (none counts as 0), then place."""
    table = table.combine_chunks()
    file, at = _numbers(table["file"]), _numbers(table["at"])
    dates = _numbers(pc.fill_null(table["sent_ms"], 0))
    ranks = value_ranks(table["thread_id"])
    if not _are_in_archive_order(file, at):
        return table.take(pa.array(np.lexsort((at, file, dates, ranks))))
    # The sorts are stable: what is equal stays in archive order.
    first = int(dates.min(initial=0))
    span = int(dates.max(initial=0)) - first + 1
    if (int(ranks.max(initial=0)) + 1) * span < _FAR:
        return table.take(pa.array(np.argsort(ranks * span + (dates - first), kind="stable")))
    return table.take(pa.array(np.lexsort((dates, ranks))))


_FAR = 1 << 62


def _are_in_archive_order(file: npt.NDArray[np.int64], at: npt.NDArray[np.int64]) -> bool:
    behind = (file[1:] > file[:-1]) | ((file[1:] == file[:-1]) & (at[1:] > at[:-1]))
    return bool(behind.all())


def _numbers(column: pa.ChunkedArray) -> npt.NDArray[np.int64]:
    return np.asarray(column.to_numpy(), np.int64)


def value_ranks(column: pa.ChunkedArray) -> npt.NDArray[np.int64]:
    """Each value's place among the different values, in the order of their bytes."""
    if not len(column):
        return np.zeros(0, np.int64)
    encoded = column.combine_chunks().dictionary_encode()
    order = pc.sort_indices(encoded.dictionary).to_numpy()
    ranks = np.empty(len(order), np.int64)
    ranks[order] = np.arange(len(order))
    return np.asarray(ranks[encoded.indices.to_numpy()], np.int64)


def threads_of(table: pa.Table) -> Iterator[list[Record]]:
    """The records of each thread, from a table in total order."""
    if not table.num_rows:
        return
    # A few tens of thousands of rows at a time: Python objects of a whole shard would be the peak.
    thread: list[Record] = []
    for part in table.to_batches(max_chunksize=1 << 14):
        for record in _records(part):
            if thread and record.thread_id != thread[0].thread_id:
                yield thread
                thread = []
            thread.append(record)
    if thread:
        yield thread


def records_of(table: pa.Table) -> list[Record]:
    """The records of a table, in its order."""
    return [record for batch in table.to_batches() for record in _records(batch)]


def chat_messages_of(table: pa.Table) -> Iterator[ChatMessage]:
    """The messages of a table of Chat SDK records, in its order."""
    columns = [table[name].to_pylist() for name in ("id", "sent_ms", "is_me", "user_name", "text", "body")]
    for message_id, sent_ms, *body in zip(*columns, strict=True):
        yield _chat_message(message_id, sent_ms, body)


def _records(batch: pa.RecordBatch) -> Iterator[Record]:
    for row in zip(*(column.to_pylist() for column in batch.columns), strict=True):
        thread_id, kind, file, at, message_id, sent_ms, edited_ms, messages, *body = row
        yield Record(
            thread_id,
            _KINDS[kind],
            Place(file, at),
            _joined_body(kind, message_id, sent_ms, body),
            message_id,
            sent_ms,
            edited_ms,
            messages,
        )


def _split_body(record: Record) -> tuple[bool | None, str | None, str | None, bytes | None]:
    body = record.body
    if isinstance(body, AguiMessage):
        return None, None, None, packed_agui(body)
    if not isinstance(body, ChatMessage):
        return None, None, None, msgspec.json.encode(body)
    extras = None
    if body.attachments or body.links:
        extras = packed_extras(body.attachments, body.links)
    return body.is_me, body.user_name, body.text, extras


def _joined_body(
    kind: int, message_id: str | None, sent_ms: int | None, body: list[Any]
) -> ChatMessage | AguiMessage | History:
    if kind == Kind.CHAT:
        return _chat_message(message_id, sent_ms, body)
    packed = body[-1]
    if kind == Kind.HISTORY:
        return _HISTORY.decode(packed)
    read = _AGUI.decode(packed)
    return AguiMessage(
        read.role,
        read.id,
        read.content,
        read.tool_calls,
        read.tool_call_id,
        read.name,
        read.error,
        sent_ms,
    )


def _chat_message(message_id: str | None, sent_ms: int | None, body: list[Any]) -> ChatMessage:
    is_me, user_name, text, packed = body
    if packed is None:
        return ChatMessage(message_id, text, is_me, user_name, sent_ms)
    extras = _EXTRAS.decode(packed)
    return ChatMessage(message_id, text, is_me, user_name, sent_ms, extras.attachments, extras.links)
