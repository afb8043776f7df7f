"""Records into threads: the batch way.

What comes out is (shard, table of records in total order), every shard once, also where it is
empty. A streaming transform with the same output can stand beside this one.
"""

from __future__ import annotations

import apache_beam as beam
from apache_beam.pvalue import PCollection

from schemas.arrow import RECORDS
from transforms.dofns import OrderShard
from transforms.record_tables import packed_table


class GroupIntoThreads(beam.PTransform):  # type: ignore[misc]
    """(shard, packed records) … -> (shard, ordered records), one element a shard"""

    def __init__(self, shards: int) -> None:
        super().__init__()
        self._shards = shards

    def expand(self, records: PCollection) -> PCollection:
        empty = packed_table(RECORDS.empty_table()).to_pybytes()
        seeds = records.pipeline | "Every shard" >> beam.Create(
            [(shard, empty) for shard in range(self._shards)], reshuffle=False
        )
        return (
            (records, seeds)
            | "With every shard" >> beam.Flatten()
            | "Group by shard" >> beam.GroupByKey()
            | "Order" >> beam.ParDo(OrderShard())
        )
