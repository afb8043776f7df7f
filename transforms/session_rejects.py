"""Rejects of a job that never ends, as tables: those of reading, and those of a session's rows."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from schemas.arrow import session_reject_schema
from schemas.records import Rejected
from transforms.rejects import reject_table
from transforms.sessions import Session


def read_reject_table(rejects: Sequence[Rejected], source: str) -> pa.Table:
    """What could not be read of one source, as a table of `session_reject_schema`."""
    return _table(rejects, [source], [None] * len(rejects), [None] * len(rejects))


def session_reject_table(rejects: Sequence[tuple[Rejected, Session]], sources: Sequence[str]) -> pa.Table:
    """What has no place in sessions' rows; `sources` are named by their numbers."""
    return _table(
        [reject for reject, _session in rejects],
        sources,
        [session.version for _reject, session in rejects],
        [session.session for _reject, session in rejects],
    )


def _table(
    rejects: Sequence[Rejected],
    sources: Sequence[str],
    versions: Sequence[int | None],
    sessions: Sequence[int | None],
) -> pa.Table:
    plain = reject_table(rejects, sources)
    more = [pa.array(versions, pa.int32()), pa.array(sessions, pa.int32())]
    return pa.Table.from_arrays([*plain.columns, *more], schema=session_reject_schema())
