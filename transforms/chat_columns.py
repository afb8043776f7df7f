"""Chat SDK threads of a shard to rows, column by column: section A of the rules at Arrow's speed.

A Chat SDK message is converted on its own, and nearly all of them are text alone: their role and
content are columns already. Only messages with attachments or links go through `chat_turn`, one by
one. `convert` remains the one definition of right: a property test holds this module equal to it.
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from schemas.arrow import ROLE_AND_CONTENT, TIMESTAMP, row_schema
from schemas.formats import Format
from schemas.reasons import Reject, Repair
from schemas.records import Record
from schemas.turns import RepairNote, Turn
from transforms.attachments import FileReader
from transforms.chat_turns import chat_turn, is_empty, message_text
from transforms.convert import BLANK_DETAIL, Target
from transforms.formats import RENDERERS
from transforms.guards.history import EMPTIED_DETAIL
from transforms.js_text import PYTHON_WHITE_SPACE, WHITE_SPACE, is_blank
from transforms.ledger import Tally, count_left_out, no_turn_detail
from transforms.record_tables import chat_messages_of, records_of
from transforms.row_tables import offsets_of, repairs_array

_FAR = np.iinfo(np.int64).max
_FIRST_OF_BLANK = pa.array(["", *WHITE_SPACE])


class ChatRows(NamedTuple):
    """The rows of the threads, the rejected records, and the tally."""

    table: pa.Table
    rejects: list[tuple[Record, Reject, str]]
    tally: Tally


class _Contents(NamedTuple):
    """Each record's role and content; where `kept` is false there is no message, for `why`."""

    roles: pa.Array
    contents: pa.Array
    turns: dict[int, Turn]
    kept: npt.NDArray[np.bool_]
    why: dict[int, Repair]
    notes: dict[int, list[RepairNote]]
    guard_notes: dict[int, list[RepairNote]]
    format_notes: dict[int, list[RepairNote]]


def chat_rows(records: pa.Table, target: Target, read_file: FileReader | None) -> ChatRows:
    """The rows of whole Chat SDK threads, each message once, in total order. No hooks."""
    contents = _contents(records, target, read_file)
    starts = _thread_starts(records["thread_id"].combine_chunks())
    lengths = np.diff(np.append(starts, records.num_rows))
    kept = _sums(contents.kept.astype(np.int64), starts)
    rejects, tally = _settled(records, contents, starts, lengths, kept)
    table = _rows(records, contents, target.format, starts, lengths, kept, tally)
    return ChatRows(table, rejects, tally)


def _contents(records: pa.Table, target: Target, read_file: FileReader | None) -> _Contents:
    """What each record says. Records with a body are read one by one, all others as columns."""
    text = records["text"].combine_chunks()
    is_me = records["is_me"].combine_chunks()
    roles = pc.if_else(is_me, pa.scalar("assistant"), pa.scalar("user"))
    blank = _are_blank(text)
    if target.include_names:
        names = pc.fill_null(records["user_name"].combine_chunks(), "undefined")
        named = pc.binary_join_element_wise("[", names, "]: ", text, "")
        text = pc.if_else(is_me, text, named)
    emptied = _emptied_by_guards(text, blank, target)
    kept = np.logical_not(blank.to_numpy(zero_copy_only=False)) & ~emptied
    why: dict[int, Repair] = {}
    notes: dict[int, list[RepairNote]] = {}
    guard_notes: dict[int, list[RepairNote]] = {}
    format_notes: dict[int, list[RepairNote]] = {}
    turns: dict[int, Turn] = {}
    written: list[str] = []
    render = RENDERERS[target.format]
    # Other formats render the turn itself, later.
    only_texts = target.format is Format.MESSAGES
    with_body = records["body"].is_valid().combine_chunks()
    chosen = np.flatnonzero(with_body.to_numpy(zero_copy_only=False))
    for position, message in zip(
        chosen.tolist(), chat_messages_of(records.take(pa.array(chosen))), strict=True
    ):
        if only_texts and not message.attachments:
            content = message_text(message, include_names=target.include_names)
            is_kept = not is_blank(content)
            is_emptied = is_kept and target.is_emptied(content)
            kept[position], emptied[position] = is_kept and not is_emptied, is_emptied
            written.append(content)
            continue
        turn, own_notes = chat_turn(
            message, position, include_names=target.include_names, read_file=read_file
        )
        if own_notes:
            notes[position] = own_notes
        kept[position] = not is_empty(turn)
        emptied[position] = kept[position] and not turn.files and target.is_emptied(turn.text)
        kept[position] &= ~emptied[position]
        content = ""
        if kept[position]:
            rendering: list[RepairNote] = []
            rendered = render(turn, rendering)
            if rendered is None:
                kept[position] = False
                why[position] = Repair.NO_PLACE_IN_FORMAT
            elif only_texts:
                content = str(rendered["content"])
            if rendering:
                format_notes[position] = rendering
        turns[position] = turn
        written.append(content)
    if written:
        text = pc.replace_with_mask(text, with_body, pa.array(written, pa.string()))
    ids = records["id"]
    for position in np.flatnonzero(np.logical_not(kept)).tolist():
        if position not in why:
            why[position] = Repair.BLANK_MESSAGE
            by_guards = bool(emptied[position])
            detail = EMPTIED_DETAIL if by_guards else BLANK_DETAIL
            note = RepairNote(ids[position].as_py(), Repair.BLANK_MESSAGE, detail)
            (guard_notes if by_guards else notes).setdefault(position, []).append(note)
    return _Contents(roles, text, turns, kept, why, notes, guard_notes, format_notes)


def _are_blank(texts: pa.Array) -> pa.Array:
    """Which texts are white space alone. Only those that begin with some are looked at further."""
    doubtful = pc.is_in(pc.utf8_slice_codeunits(texts, 0, 1), value_set=_FIRST_OF_BLANK)
    found = pc.equal(pc.utf8_trim(texts.filter(doubtful), characters=WHITE_SPACE), "")
    return pc.replace_with_mask(pa.repeat(pa.scalar(False), len(texts)), doubtful, found)


def _kept_of(column: pa.Array, kept: npt.NDArray[np.bool_]) -> pa.Array:
    """The column without what is not kept: nearly always there is nothing, and no need to copy it."""
    return column if kept.all() else column.filter(pa.array(kept))


def _emptied_by_guards(text: pa.Array, blank: pa.Array, target: Target) -> npt.NDArray[np.bool_]:
    """Which texts the guards of a replay dataset take for blank, though JavaScript does not."""
    if not target.has_guards:
        return np.zeros(len(text), np.bool_)
    anywhere = pc.equal(pc.utf8_trim(text, characters=WHITE_SPACE + PYTHON_WHITE_SPACE), "")
    only_there = pc.and_(anywhere, pc.invert(blank))
    return np.array(only_there.to_numpy(zero_copy_only=False))


def _thread_starts(thread_ids: pa.Array) -> npt.NDArray[np.int64]:
    """Where each thread begins, in records sorted by thread."""
    if not len(thread_ids):
        return np.zeros(0, np.int64)
    changes = pc.not_equal(thread_ids.slice(1), thread_ids.slice(0, len(thread_ids) - 1))
    found = np.flatnonzero(changes.to_numpy(zero_copy_only=False)) + 1
    return np.concatenate([np.zeros(1, np.int64), found])


def _sums(values: npt.NDArray[np.int64], starts: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    return np.add.reduceat(values, starts) if len(starts) else np.zeros(0, np.int64)


def _settled(
    records: pa.Table,
    contents: _Contents,
    starts: npt.NDArray[np.int64],
    lengths: npt.NDArray[np.int64],
    kept: npt.NDArray[np.int64],
) -> tuple[list[tuple[Record, Reject, str]], Tally]:
    """Where each record went. A thread with no message left is rejected, record by record."""
    tally: Tally = Counter()
    rejects: list[tuple[Record, Reject, str]] = []
    emptied: set[int] = set()
    for thread in np.flatnonzero(kept == 0).tolist():
        start, length = int(starts[thread]), int(lengths[thread])
        emptied.update(range(start, start + length))
        reasons = Counter(contents.why[at] for at in range(start, start + length))
        for record in records_of(records.slice(start, length)):
            rejects.append((record, Reject.NO_TURN_LEFT, no_turn_detail(reasons)))
            tally[f"rejected/{Reject.NO_TURN_LEFT.value}/records"] += 1
            tally[f"rejected/{Reject.NO_TURN_LEFT.value}/messages"] += 1
    for position, reason in contents.why.items():
        if position not in emptied:
            count_left_out(tally, reason)
    total = int(kept.sum())
    if total:
        tally["kept/records"] += total
        tally["kept/messages"] += total
    rows = int(np.count_nonzero(kept))
    if rows:
        tally["rows"] += rows
    return rejects, tally


def _rows(
    records: pa.Table,
    contents: _Contents,
    fmt: Format,
    starts: npt.NDArray[np.int64],
    lengths: npt.NDArray[np.int64],
    kept: npt.NDArray[np.int64],
    tally: Tally,
) -> pa.Table:
    with_row = kept > 0
    offsets = pa.array(np.concatenate([[0], np.cumsum(kept[with_row])]).astype(np.int32))
    sent = _kept_of(records["sent_ms"].combine_chunks(), contents.kept)
    firsts, lasts = _bounds(sent, offsets.to_numpy()[:-1])
    row_starts = starts[with_row]
    columns = [
        records["thread_id"].combine_chunks().take(pa.array(row_starts)),
        pa.ListArray.from_arrays(offsets, _messages(contents, fmt)),
        pa.ListArray.from_arrays(offsets, _kept_of(records["id"].combine_chunks(), contents.kept)),
        pa.ListArray.from_arrays(offsets, sent.cast(TIMESTAMP)),
        pa.array(kept[with_row].astype(np.int32)),
        firsts,
        lasts,
        pa.nulls(len(row_starts), pa.string()),
        _repairs(contents, row_starts, lengths[with_row], tally),
    ]
    return pa.Table.from_arrays(columns, schema=row_schema(fmt))


def _messages(contents: _Contents, fmt: Format) -> pa.Array:
    parts = [_kept_of(column, contents.kept) for column in (contents.roles, contents.contents)]
    if fmt is Format.MESSAGES:
        return pa.StructArray.from_arrays(parts, fields=list(ROLE_AND_CONTENT))
    render, encode = RENDERERS[fmt], msgspec.json.Encoder().encode
    written: list[bytes] = []
    positions = np.flatnonzero(contents.kept).tolist()
    roles, texts = (column.to_pylist() for column in parts)
    for position, role, text in zip(positions, roles, texts, strict=True):
        turn = contents.turns.get(position)
        written.append(encode(render(Turn(role, text) if turn is None else turn, [])))
    return pa.array(written, pa.binary()).cast(pa.string())


def _bounds(sent: pa.Array, starts: npt.NDArray[np.int64]) -> tuple[pa.Array, pa.Array]:
    """The first and last date of each row; null where no message of it has one."""
    if not len(starts):
        none = pa.nulls(0, TIMESTAMP)
        return none, none
    lows = pc.fill_null(sent, _FAR).to_numpy()
    highs = pc.fill_null(sent, -_FAR).to_numpy()
    first = np.minimum.reduceat(lows, starts)
    last = np.maximum.reduceat(highs, starts)
    return (
        pa.array(first, pa.int64(), mask=first == _FAR).cast(TIMESTAMP),
        pa.array(last, pa.int64(), mask=last == -_FAR).cast(TIMESTAMP),
    )


def _repairs(
    contents: _Contents,
    starts: npt.NDArray[np.int64],
    lengths: npt.NDArray[np.int64],
    tally: Tally,
) -> pa.Array:
    """Each row's repairs: the conversion's in the order of the messages, the guards', the format's."""
    counts = np.zeros(len(starts), np.int64)
    flat: list[tuple[int, int, int, RepairNote]] = []
    for phase, of_phase in enumerate((contents.notes, contents.guard_notes, contents.format_notes)):
        positions = np.array(sorted(of_phase), np.int64)
        rows = np.searchsorted(starts, positions, side="right") - 1
        for position, row in zip(positions.tolist(), rows.tolist(), strict=True):
            if row < 0 or position >= starts[row] + lengths[row]:
                continue
            for note in of_phase[position]:
                flat.append((row, phase, position, note))
                counts[row] += 1
                tally[f"repairs/{note.reason.value}"] += 1
    flat.sort(key=lambda entry: entry[:3])
    notes = repairs_array([entry[3] for entry in flat])
    return pa.ListArray.from_arrays(offsets_of(counts.tolist()), notes)
