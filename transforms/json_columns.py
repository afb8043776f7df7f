"""Lines of plain Chat SDK messages straight into columns, without a Python object a message.

Arrow's JSON reader takes a whole block at once. It is trusted with a block only where it must give what
the typed decoder of `decode` gives, which is the one definition of right: a line that leaves any doubt is not
among the plain ones, and the caller takes the other way. A property test holds the two equal.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json

from schemas.arrow import RECORDS
from schemas.records import Attachment, Kind, Link
from transforms.dates import FIRST_MS
from transforms.lines import Lines, Positions
from transforms.record_tables import packed_extras

# What is decoded; a value of another type makes the reader refuse the block. `messages` is a whole
# history's: no Chat SDK message has it. Of attachments and links it only matters whether there are any.
_FIELDS = pa.schema(
    [
        ("_type", pa.string()),
        ("threadId", pa.string()),
        ("id", pa.string()),
        ("text", pa.string()),
        ("author", pa.struct([("isMe", pa.bool_()), ("userName", pa.string())])),
        ("metadata", pa.struct([("dateSent", pa.string()), ("editedAt", pa.string())])),
        ("attachments", pa.list_(pa.struct([("type", pa.string())]))),
        ("links", pa.list_(pa.struct([("url", pa.string())]))),
        ("messages", pa.null()),
    ]
)
_PARSE = pyarrow.json.ParseOptions(explicit_schema=_FIELDS, unexpected_field_behavior="ignore")
_OPENS, _CLOSES, _RETURN = b"{}\r"
_PLAIN_DATE = r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$"
# So few are decoded one by one rather than halved again.
_FEW_LINES = 512
_NO_TEXT = pa.scalar(None, pa.string())
_NO_MS = pa.scalar(None, pa.int64())


class PlainMessages(NamedTuple):
    """The plain messages of some lines as a table of `RECORDS`, and which lines they are."""

    table: pa.Table
    is_plain: npt.NDArray[np.bool_]


def plain_messages(lines: Lines, file: int, *, chat_only: bool) -> PlainMessages:
    """The plain Chat SDK messages among the lines, as far as Arrow's reader can be trusted with them.

    A line that it refuses takes few others with it: the rest is read in halves, and halves of those.
    `chat_only` takes records without a `_type` for Chat SDK messages too (`--source chat-sdk`).
    """
    read = _read(lines)
    if read is not None:
        return _plain_rows(read, lines, file, chat_only=chat_only)
    if len(lines) < _FEW_LINES:
        return PlainMessages(RECORDS.empty_table(), np.zeros(len(lines), np.bool_))
    halves = [
        plain_messages(lines.at(half), file, chat_only=chat_only)
        for half in np.array_split(np.arange(len(lines)), 2)
    ]
    tables, which = zip(*halves, strict=True)
    return PlainMessages(pa.concat_tables(tables), np.concatenate(which))


def _plain_rows(read: pa.Table, lines: Lines, file: int, *, chat_only: bool) -> PlainMessages:
    column = {name: read[name].combine_chunks() for name in _FIELDS.names}
    author, metadata = column["author"], column["metadata"]
    is_me, user_name = author.flatten()
    sent, edited = metadata.flatten()
    sent_ms, edited_ms = plain_dates(sent), plain_dates(edited)
    conditions = [
        pc.not_equal(column["threadId"], ""),
        column["text"].is_valid(),
        # Absent and null names are spelt differently, and are one to Arrow; so are the authors.
        user_name.is_valid(),
        pc.equal(sent.is_null(), sent_ms.is_null()),
        pc.equal(edited.is_null(), edited_ms.is_null()),
    ]
    if not chat_only:
        conditions.append(pc.equal(column["_type"], "chat:Message"))
    plain = conditions[0]
    for condition in conditions[1:]:
        plain = pc.and_(plain, condition)
    is_plain = np.array(pc.fill_null(plain, False).to_numpy(zero_copy_only=False))
    for token in _NO_JSON:
        is_plain[_lines_with(token, lines)] = False
    is_plain[_with_long_numbers(lines)] = False
    bodies = _bodies(lines, np.flatnonzero(is_plain & _hold_extras(column)), is_plain)
    count = len(lines)
    arrays = [
        column["threadId"],
        pa.repeat(pa.scalar(int(Kind.CHAT), pa.int8()), count),
        pa.repeat(pa.scalar(file, pa.int32()), count),
        pa.array(lines.offsets),
        pc.if_else(pc.equal(column["id"], ""), _NO_TEXT, column["id"]),
        sent_ms,
        edited_ms,
        pa.repeat(pa.scalar(1, pa.int32()), count),
        pc.fill_null(is_me, False),
        user_name,
        column["text"],
        bodies,
    ]
    # Not cast: a thread id that is null is not plain, and leaves the table with the filter.
    table = pa.Table.from_arrays(arrays, schema=RECORDS).filter(pa.array(is_plain))
    return PlainMessages(table, is_plain)


class _Extras(msgspec.Struct, gc=False):
    """What few messages have, and no column holds: read from their lines once more."""

    attachments: list[Attachment] | None = None
    links: list[Link] | None = None


_EXTRAS = msgspec.json.Decoder(_Extras)


def _hold_extras(column: dict[str, pa.Array]) -> npt.NDArray[np.bool_]:
    lengths = [pc.fill_null(pc.list_value_length(column[name]), 0) for name in ("attachments", "links")]
    return np.asarray((lengths[0].to_numpy() > 0) | (lengths[1].to_numpy() > 0))


def _bodies(lines: Lines, with_extras: Positions, is_plain: npt.NDArray[np.bool_]) -> pa.Array:
    """The `body` of each line; a line whose extras are not what they should be is no longer plain."""
    none = pa.nulls(len(lines), pa.binary())
    if not len(with_extras):
        return none
    bodies: list[bytes | None] = []
    for position, line in zip(with_extras.tolist(), lines.at(with_extras).data, strict=True):
        try:
            extras = _EXTRAS.decode(line)
        except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
            is_plain[position] = False
            bodies.append(None)
        else:
            bodies.append(packed_extras(extras.attachments or [], extras.links or []))
    mask = np.zeros(len(lines), np.bool_)
    mask[with_extras] = True
    return pc.replace_with_mask(none, pa.array(mask), pa.array(bodies, pa.binary()))


# Arrow's reader takes these for numbers, where it does not read them; JSON has no such numbers.
_NO_JSON = (b"NaN", b"Inf")
_SAMPLED = 1024
_LONG_NUMBER = re.compile(rb"\d{4300}")


def _read(lines: Lines) -> pa.Table | None:
    """The lines as rows, one each; None where there may be more or fewer, or other values than ours."""
    if not _is_object_a_line(lines) or not _are_neighbours(lines):
        return None
    text = pa.py_buffer(lines.text)[int(lines.starts[0]) : int(lines.ends[-1])]
    if not _is_utf8(text):
        return None
    options = pyarrow.json.ReadOptions(use_threads=False, block_size=len(text) + 1)
    try:
        table = pyarrow.json.read_json(pa.BufferReader(text), options, _PARSE)
    except pa.ArrowInvalid:
        return None
    # Blank lines are none to the reader either.
    return table if table.num_rows == len(lines) else None


def _is_object_a_line(lines: Lines) -> bool:
    """Whether every line opens and closes a brace: none is part of an object that spans several.

    No token of JSON that follows a closing brace within an object is an opening one.
    """
    octets = np.frombuffer(lines.text, np.uint8)
    last = lines.ends - 1
    last = last - (octets[last] == _RETURN)
    return bool((octets[lines.starts] == _OPENS).all() and (octets[last] == _CLOSES).all())


def _are_neighbours(lines: Lines) -> bool:
    """Whether nothing but blanks is between the lines: what was left out there would be read as well."""
    apart = np.flatnonzero(lines.starts[1:] - lines.ends[:-1] > 1)
    gaps = zip(lines.ends[apart].tolist(), lines.starts[apart + 1].tolist(), strict=True)
    return all(lines.text[end:start].isspace() for end, start in gaps)


def _with_long_numbers(lines: Lines) -> list[int]:
    """The lines with so many digits in a row that Python refuses the number, where Arrow does not read it."""
    begin = int(lines.starts[0])
    octets = np.frombuffer(lines.text, np.uint8)[begin : int(lines.ends[-1])]
    # Of so long a row at least two of these samples are digits, one behind the other.
    digits = (octets[::_SAMPLED] >= ord("0")) & (octets[::_SAMPLED] <= ord("9"))
    places = np.flatnonzero(digits[:-1] & digits[1:]) * _SAMPLED + begin
    doubtful = np.unique(np.clip(np.searchsorted(lines.ends, places), 0, len(lines) - 1))
    found = zip(doubtful.tolist(), lines.at(doubtful).data, strict=True)
    return [position for position, line in found if _LONG_NUMBER.search(line)]


def _lines_with(token: bytes, lines: Lines) -> Positions:
    """The lines that hold these three bytes."""
    begin = int(lines.starts[0])
    octets = np.frombuffer(lines.text, np.uint8)[begin : int(lines.ends[-1])]
    pair = int.from_bytes(token[:2], "little")
    found = []
    for first in (0, 1):
        # Two bytes at a time, from even and from odd places.
        pairs = octets[first : first + (len(octets) - first) // 2 * 2].view("<u2") == pair
        if pairs.any():
            found.append(np.flatnonzero(pairs) * 2 + first)
    if not found:
        return np.zeros(0, np.int64)
    places = np.concatenate(found)
    places = places[places + 2 < len(octets)]
    places = places[octets[places + 2] == token[2]]
    return np.asarray(np.clip(np.searchsorted(lines.ends, places + begin), 0, len(lines) - 1), np.int64)


def _is_utf8(text: pa.Buffer) -> bool:
    """Whether the bytes are UTF-8: Arrow's reader does not look."""
    ends = pa.py_buffer(np.array([0, len(text)], np.int64))
    whole = pa.Array.from_buffers(pa.large_binary(), 1, [None, ends, text])
    try:
        whole.cast(pa.large_string())
    except pa.ArrowInvalid:
        return False
    return True


def plain_dates(texts: pa.Array) -> pa.Array:
    """Epoch milliseconds of the texts in the form that `toISOString` writes; null for all others."""
    if texts.null_count == len(texts):
        return pa.nulls(len(texts), pa.int64())
    plain = pc.match_substring_regex(texts, _PLAIN_DATE)
    chosen = pc.if_else(plain, texts, _NO_TEXT)
    try:
        ms = chosen.cast(pa.timestamp("ms", "UTC")).cast(pa.int64())
    except pa.ArrowInvalid:
        # Some date does not exist (30 February, 24:00): each goes its own way.
        return pa.nulls(len(texts), pa.int64())
    return pc.if_else(pc.greater_equal(ms, FIRST_MS), ms, _NO_MS)
