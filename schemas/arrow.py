"""Arrow schemas: of the tables that cross the shuffle, and of the files that a run writes."""

from __future__ import annotations

import pyarrow as pa

from schemas.formats import SCHEMA_VERSION, Format

# One row a record. `body` is JSON: of a Chat SDK message only its attachments and links (null for
# most), of an AG-UI record the message, among whatever else its line held, or the history.
RECORDS = pa.schema(
    [
        pa.field("thread_id", pa.string(), nullable=False),
        pa.field("kind", pa.int8(), nullable=False),
        pa.field("file", pa.int32(), nullable=False),
        pa.field("at", pa.int64(), nullable=False),
        pa.field("id", pa.string()),
        pa.field("sent_ms", pa.int64()),
        pa.field("edited_ms", pa.int64()),
        pa.field("messages", pa.int32(), nullable=False),
        pa.field("is_me", pa.bool_()),
        pa.field("user_name", pa.string()),
        pa.field("text", pa.string()),
        pa.field("body", pa.binary()),
    ]
)

# A record as a job that never ends keeps it: by the name of its source, because sources come as they come.
LOGGED = pa.schema(
    [
        *(field for field in RECORDS if field.name != "file"),
        pa.field("source", pa.string(), nullable=False),
    ]
)

# The same on its way into sessions: when it happened, how far time had come when it arrived, and, once that
# was given, which session it is in and how often that was given (0 before).
STREAMED = pa.schema(
    [
        *LOGGED,
        pa.field("event_ms", pa.int64(), nullable=False),
        pa.field("arrived_ms", pa.int64(), nullable=False),
        pa.field("session", pa.int32(), nullable=False),
        pa.field("version", pa.int32(), nullable=False),
    ]
)

# What is known of a thread for ever: how many sessions it has had, and when the last of them ended.
KNOWN = pa.schema(
    [
        pa.field("thread_id", pa.string(), nullable=False),
        pa.field("sessions", pa.int32(), nullable=False),
        pa.field("until_ms", pa.int64(), nullable=False),
    ]
)

TIMESTAMP = pa.timestamp("ms", tz="UTC")

REPAIR = pa.struct(
    [
        pa.field("message_id", pa.string()),
        pa.field("reason", pa.string(), nullable=False),
        pa.field("detail", pa.string()),
    ]
)

ROLE_AND_CONTENT = pa.struct(
    [
        pa.field("role", pa.string(), nullable=False),
        pa.field("content", pa.string(), nullable=False),
    ]
)

REJECTS = pa.schema(
    [
        pa.field("source_file", pa.string()),
        pa.field("place", pa.int64()),
        pa.field("place_unit", pa.string()),
        pa.field("reason", pa.string(), nullable=False),
        pa.field("detail", pa.string()),
        pa.field("thread_id", pa.string()),
        pa.field("dataset", pa.string()),
        pa.field("raw", pa.binary()),
    ]
)


def message_type(fmt: Format) -> pa.DataType:
    """Type of one element of `messages`: a struct for plain text turns, a JSON string elsewhere."""
    return ROLE_AND_CONTENT if fmt is Format.MESSAGES else pa.string()


def row_schema(fmt: Format) -> pa.Schema:
    """Schema of a dataset's files, one row a thread, with the format and version in its metadata."""
    fields = [
        pa.field("thread_id", pa.string(), nullable=False),
        pa.field("messages", pa.list_(message_type(fmt)), nullable=False),
        pa.field("message_ids", pa.list_(pa.string()), nullable=False),
        pa.field("sent_at", pa.list_(TIMESTAMP), nullable=False),
        pa.field("message_count", pa.int32(), nullable=False),
        pa.field("first_sent", TIMESTAMP),
        pa.field("last_sent", TIMESTAMP),
        pa.field("tools", pa.string()),
        pa.field("repairs", pa.list_(REPAIR), nullable=False),
    ]
    metadata = {"threadloom.format": fmt.value, "threadloom.schema_version": SCHEMA_VERSION}
    return pa.schema(fields, metadata=metadata)


_VERSION_AND_SESSION = [pa.field("version", pa.int32()), pa.field("session", pa.int32())]


def session_row_schema(fmt: Format) -> pa.Schema:
    """Schema of the files of a job that never ends, one row a session and version."""
    plain = row_schema(fmt)
    return pa.schema([*plain, *_VERSION_AND_SESSION], metadata=plain.metadata)


def reject_schema() -> pa.Schema:
    """Schema of the rejects' files."""
    return REJECTS.with_metadata({"threadloom.schema_version": SCHEMA_VERSION})


def session_reject_schema() -> pa.Schema:
    """Schema of the rejects of a job that never ends; both more are null where it concerns every dataset."""
    plain = reject_schema()
    return pa.schema([*plain, *_VERSION_AND_SESSION], metadata=plain.metadata)
