"""Sessions that are over, as rows: what batch gives for the same records, with session and version."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec
import numpy as np
import pyarrow as pa

from schemas.arrow import session_row_schema
from schemas.records import Rejected
from transforms.convert import Hooks, Row, Target
from transforms.record_tables import in_total_order
from transforms.row_tables import row_table
from transforms.sessions import Session
from transforms.shards import converted_shard
from transforms.streamed import numbered
from transforms.threads import Duplicates


class SessionRows(msgspec.Struct):
    """The rows of one dataset for sessions that are over, and the records that have no place in them."""

    table: pa.Table
    rejects: list[tuple[Rejected, Session]]


def converted_sessions(
    given: pa.Table,
    withdrawn: Sequence[Session],
    numbers: Mapping[str, int],
    target: Target,
    hooks: Hooks,
    duplicates: Duplicates,
) -> SessionRows:
    """The rows of the sessions in `given`, a table of `STREAMED` with whole sessions.

    A session that was given before and has no row now (another one has swallowed it, or nothing that
    speaks is left of it) gets an empty one, so that its latest version says so. `numbers` are the numbers
    of the records' sources, by which a reject names its place.
    """
    schema = session_row_schema(target.format)
    tables: list[pa.Table] = []
    rejects: list[tuple[Rejected, Session]] = []
    empty = list(withdrawn)
    for sessions, records in _one_a_thread(given):
        output = converted_shard(in_total_order(numbered(records, numbers)), target, hooks, duplicates)
        rejects += [(reject, sessions[str(reject.thread_id)]) for reject in output.rejects]
        rows = pa.concat_tables(output.tables)
        named = [sessions.pop(thread_id) for thread_id in rows["thread_id"].to_pylist()]
        tables.append(_with_sessions(rows, named, schema))
        empty += [session for session in sessions.values() if session.version > 1]
    if empty:
        rows = row_table([Row(session.thread_id, [], [], [], None, []) for session in empty], target.format)
        tables.append(_with_sessions(rows, empty, schema))
    table = pa.concat_tables(tables) if tables else schema.empty_table()
    return SessionRows(table.sort_by([("thread_id", "ascending"), ("session", "ascending")]), rejects)


def _one_a_thread(given: pa.Table) -> Iterator[tuple[dict[str, Session], pa.Table]]:
    """The first session of every thread, then the second of those that have one, and so on."""
    if not given.num_rows:
        return
    sessions = given.group_by(["thread_id", "session"]).aggregate([("version", "max")])
    ordered = sessions.sort_by([("thread_id", "ascending"), ("session", "ascending")])
    ids = ordered["thread_id"].to_pylist()
    nth = np.zeros(len(ids), np.int64)
    for at in range(1, len(ids)):
        nth[at] = nth[at - 1] + 1 if ids[at] == ids[at - 1] else 0
    keyed = ordered.append_column("nth", pa.array(nth))
    joined = given.append_column("row", pa.array(np.arange(given.num_rows))).select(
        ["thread_id", "session", "row"]
    )
    joined = joined.join(keyed, ["thread_id", "session"])
    of_record, rows = joined["nth"].to_numpy(), joined["row"].to_numpy()
    for turn in range(int(nth.max()) + 1):
        part = ordered.filter(pa.array(nth == turn))
        names = [
            Session(thread_id, session, version)
            for thread_id, session, version in zip(
                part["thread_id"].to_pylist(),
                part["session"].to_pylist(),
                part["version_max"].to_pylist(),
                strict=True,
            )
        ]
        records = given.take(pa.array(np.sort(rows[of_record == turn])))
        yield {session.thread_id: session for session in names}, records


def _with_sessions(rows: pa.Table, sessions: Sequence[Session], schema: pa.Schema) -> pa.Table:
    columns = [
        *rows.columns,
        pa.array([session.version for session in sessions], pa.int32()),
        pa.array([session.session for session in sessions], pa.int32()),
    ]
    return pa.Table.from_arrays(columns, schema=schema)
