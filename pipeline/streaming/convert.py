"""Sessions that are over into parcels of rows and rejects."""

from __future__ import annotations

from collections.abc import Iterator

import apache_beam as beam

from pipeline.streaming.parcels import addressed
from pipeline.streaming.sessions import Given
from schemas.parcels import RejectsParcel, RowsParcel
from transforms.convert import Target
from transforms.dofns import HookSpec
from transforms.record_tables import packed_table
from transforms.session_rejects import session_reject_table
from transforms.session_rows import converted_sessions
from transforms.streamed import source_numbers
from transforms.threads import Duplicates


class ConvertSessions(beam.DoFn):  # type: ignore[misc]
    """Given -> parcels of one dataset's rows, and of what has no place in them"""

    def __init__(self, target: Target, hooks: HookSpec, duplicates: Duplicates) -> None:
        self._target = target
        self._spec = hooks
        self._duplicates = duplicates

    def setup(self) -> None:
        self._hooks = self._spec.resolved()

    def process(self, given: Given) -> Iterator[tuple[int, bytes]]:
        numbers = source_numbers(given.records["source"].unique().to_pylist())
        rows = converted_sessions(
            given.records, given.withdrawn, numbers, self._target, self._hooks, self._duplicates
        )
        if rows.table.num_rows:
            packed = packed_table(rows.table).to_pybytes()
            yield addressed(RowsParcel(self._target.dataset.value, packed))
        if rows.rejects:
            table = session_reject_table(rows.rejects, list(numbers))
            yield addressed(RejectsParcel(packed_table(table).to_pybytes()))
