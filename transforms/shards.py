"""One shard, converted: its threads' rows for one dataset, its rejects, and its tally.

Most Chat SDK threads go column by column; a thread that needs more (other vocabularies, several
versions of a message, a hook) goes through `converted`, thread by thread. Either way gives the same.
"""

from __future__ import annotations

from collections import Counter

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from schemas.reasons import Reject
from schemas.records import Kind, Record, Rejected
from transforms.chat_columns import chat_rows
from transforms.convert import Hooks, Row, Target, converted
from transforms.ledger import Tally, fates, prefixed
from transforms.record_tables import threads_of
from transforms.rejects import late_reject
from transforms.row_tables import row_table
from transforms.threads import Duplicates, thread_of_records

# A row group: so many messages, or, where they are long, so many bytes.
GROUP_MESSAGES = 1 << 16
GROUP_BYTES = 32 << 20
_ROWS_A_TABLE = 4096


class ShardOutput(msgspec.Struct):
    """The row groups of one shard of one dataset, in order, its rejects and its tally."""

    tables: list[pa.Table]
    rejects: list[Rejected]
    tally: Tally


def converted_shard(records: pa.Table, target: Target, hooks: Hooks, duplicates: Duplicates) -> ShardOutput:
    """The shard's threads as rows, by thread id. `records` stands in total order."""
    plain, others = _split(records, target, hooks, duplicates)
    columns = chat_rows(plain, target, hooks.read_file)
    tables, rejects, tally = _thread_by_thread(others, target, hooks, duplicates)
    table = pa.concat_tables([columns.table, *tables]).combine_chunks()
    if columns.table.num_rows and len(tables):
        table = table.take(pc.sort_indices(table["thread_id"]))
    late = [
        late_reject(record, reason, detail, target.dataset.value)
        for record, reason, detail in [*columns.rejects, *rejects]
    ]
    tally.update(columns.tally)
    return ShardOutput(row_groups(table), late, prefixed(tally, target.dataset))


def _split(
    records: pa.Table, target: Target, hooks: Hooks, duplicates: Duplicates
) -> tuple[pa.Table, pa.Table]:
    """The records of threads that can go column by column, and the rest."""
    if hooks.transform_message is not None or hooks.on_unsupported is not None:
        return records.slice(0, 0), records
    if target.needs_whole_thread:
        return records.slice(0, 0), records
    other_kinds = records.filter(pc.not_equal(records["kind"], int(Kind.CHAT)))
    special = set(other_kinds["thread_id"].unique().to_pylist())
    if duplicates == "latest":
        special |= _threads_with_versions(records)
    if not special:
        return records, records.slice(0, 0)
    is_special = pc.is_in(records["thread_id"], pa.array(sorted(special), pa.string()))
    return records.filter(pc.invert(is_special)), records.filter(is_special)


def _threads_with_versions(records: pa.Table) -> set[str]:
    ids = records["id"]
    if pc.count_distinct(ids).as_py() == len(ids) - ids.null_count:
        return set()
    counted = (
        records.filter(ids.is_valid())
        .select(["thread_id", "id"])
        .group_by(["thread_id", "id"])
        .aggregate([([], "count_all")])
    )
    repeated = counted.filter(pc.greater(counted["count_all"], 1))
    return set(repeated["thread_id"].unique().to_pylist())


def _thread_by_thread(
    records: pa.Table, target: Target, hooks: Hooks, duplicates: Duplicates
) -> tuple[list[pa.Table], list[tuple[Record, Reject, str]], Tally]:
    tables: list[pa.Table] = []
    rejects: list[tuple[Record, Reject, str]] = []
    total: Tally = Counter()
    rows: list[Row] = []
    for of_thread in threads_of(records):
        thread = thread_of_records(of_thread, duplicates)
        outcome = converted(thread, target, hooks)
        tally, own_rejects = fates(thread, outcome)
        total.update(tally)
        rejects += own_rejects
        if outcome.row is not None:
            rows.append(outcome.row)
        if len(rows) == _ROWS_A_TABLE:
            tables.append(row_table(rows, target.format))
            rows = []
    if rows:
        tables.append(row_table(rows, target.format))
    return tables, rejects, total


def row_groups(table: pa.Table) -> list[pa.Table]:
    """The table cut into row groups of at most so many messages, fewer where they are long."""
    messages = pc.sum(table["message_count"]).as_py() or 0
    by_size = -(-table.nbytes // GROUP_BYTES)
    limit = min(GROUP_MESSAGES, -(-messages // by_size)) if by_size else GROUP_MESSAGES
    groups: list[pa.Table] = []
    start = held = 0
    for number, count in enumerate(table["message_count"].to_pylist()):
        held += count
        if held >= limit:
            groups.append(table.slice(start, number + 1 - start))
            start, held = number + 1, 0
    if start < table.num_rows or not groups:
        groups.append(table.slice(start))
    return groups
