"""The DoFns: each calls one function and tags what it gives. No state, no decisions of their own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import apache_beam as beam
import msgspec
import pyarrow as pa

from schemas.arrow import RECORDS
from schemas.errors import JobError
from transforms.attachments import RootedReader
from transforms.convert import Hooks, Target
from transforms.hooks import hook_function
from transforms.record_tables import in_total_order, unpacked_tables
from transforms.rejects import packed_rejects
from transforms.shards import converted_shard
from transforms.spill import Packed
from transforms.threads import Duplicates

REJECTS = "rejects"
TALLY = "tally"


class HookSpec(msgspec.Struct, frozen=True):
    """The hooks by name: functions do not travel, their names do."""

    attachment_root: str | None = None
    transform_message: str | None = None
    on_unsupported_attachment: str | None = None

    def resolved(self) -> Hooks:
        """The hooks themselves. Raises ValueError where one cannot be had."""
        root, transform, report = (
            self.attachment_root,
            self.transform_message,
            self.on_unsupported_attachment,
        )
        return Hooks(
            RootedReader(root) if root else None,
            hook_function(transform, "transform_message") if transform else None,
            hook_function(report, "on_unsupported_attachment") if report else None,
        )


class OrderShard(beam.DoFn):  # type: ignore[misc]
    """(shard, packed records) -> (shard, table of records in total order)"""

    def process(self, element: tuple[int, Iterable[Packed]]) -> Iterator[tuple[int, pa.Table]]:
        shard, packed = element
        try:
            records = unpacked_tables(packed, RECORDS)
        except (OSError, pa.ArrowInvalid) as error:
            hint = "does another run write to the same output?"
            raise JobError(f"cannot read back what the run put aside: {error}: {hint}") from error
        yield shard, in_total_order(records)


class ConvertShard(beam.DoFn):  # type: ignore[misc]
    """(shard, ordered records) -> (shard, row groups); rejects and the tally on tags of their own."""

    def __init__(self, target: Target, hooks: HookSpec, duplicates: Duplicates) -> None:
        self._target = target
        self._spec = hooks
        self._duplicates = duplicates

    def setup(self) -> None:
        self._hooks = self._spec.resolved()

    def process(self, element: tuple[int, pa.Table]) -> Iterator[Any]:
        shard, records = element
        output = converted_shard(records, self._target, self._hooks, self._duplicates)
        yield beam.pvalue.TaggedOutput(TALLY, dict(output.tally))
        if output.rejects:
            yield beam.pvalue.TaggedOutput(REJECTS, (shard, packed_rejects(output.rejects)))
        yield shard, output.tables
