"""One shard, converted: its threads' rows as tables for one dataset, its rejects, and its tally."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import msgspec
import pyarrow as pa

from schemas.records import Rejected
from transforms.convert import Hooks, Row, Target, converted
from transforms.ledger import Tally, fates, prefixed
from transforms.record_tables import threads_of
from transforms.rejects import late_reject
from transforms.row_tables import row_table
from transforms.threads import Duplicates, Thread, thread_of_records

# A row group: so many messages, or, where they are long, so many characters.
GROUP_MESSAGES = 1 << 16
GROUP_CHARACTERS = 32 << 20


class ShardOutput(msgspec.Struct):
    """The row groups of one shard of one dataset, in order, its rejects and its tally."""

    tables: list[pa.Table]
    rejects: list[Rejected]
    tally: Tally


def converted_shard(
    records: pa.Table, target: Target, hooks: Hooks, duplicates: Duplicates
) -> ShardOutput:
    """The shard's threads as rows. `records` stands in total order."""
    output = ShardOutput([], [], Counter())
    rows: list[Row] = []
    messages = characters = 0
    for thread in shard_threads(records, duplicates):
        outcome = converted(thread, target, hooks)
        tally, rejects = fates(thread, outcome)
        output.tally.update(tally)
        output.rejects += [
            late_reject(record, reason, detail, target.dataset.value)
            for record, reason, detail in rejects
        ]
        if outcome.row is None:
            continue
        rows.append(outcome.row)
        messages += len(outcome.row.messages)
        characters += outcome.row.characters
        if messages >= GROUP_MESSAGES or characters >= GROUP_CHARACTERS:
            output.tables.append(row_table(rows, target.format))
            rows, messages, characters = [], 0, 0
    if rows or not output.tables:
        output.tables.append(row_table(rows, target.format))
    output.tally = prefixed(output.tally, target.dataset)
    return output


def shard_threads(records: pa.Table, duplicates: Duplicates) -> Iterable[Thread]:
    """The threads of a shard, by thread id."""
    for of_thread in threads_of(records):
        yield thread_of_records(of_thread, duplicates)
