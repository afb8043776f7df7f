"""The graph: from file to row, top to bottom.

splits of files
  -> records and rejects                   Read archive
  -> records keyed by shard                  (packed: few, large elements cross the shuffle)
  -> shards in total order                 Group into threads
  -> rows by dataset, late rejects         Convert for …
  -> one file a shard and dataset          Write …
  -> manifest, _SUCCESS                    Commit
"""

from __future__ import annotations

import apache_beam as beam
from apache_beam.pvalue import PCollection

from pipeline.commit import Commit
from pipeline.grouping import GroupIntoThreads
from pipeline.plan import Plan
from pipeline.progress import Progress
from pipeline.read_archive import RECORDS, ReadArchive
from pipeline.writing import WriteRejects, WriteRows
from transforms.dofns import REJECTS, TALLY, ConvertShard

ROWS = "rows"


def build(pipeline: beam.Pipeline, plan: Plan, progress: Progress) -> PCollection:
    """Adds the job to the pipeline; gives the committed manifest as its one element."""
    options, files = plan.options, plan.files
    paths = [file.path for file in plan.inputs]
    archive = pipeline | "Read archive" >> ReadArchive(
        plan.splits, plan.blocks, paths, files.shards, progress, plan.spill_folder
    )
    threads = archive[RECORDS] | "Group into threads" >> GroupIntoThreads(files.shards)

    rejects, tallies, receipts = [archive[REJECTS]], [archive[TALLY]], []
    for target in plan.targets:
        name = target.dataset.value
        convert = ConvertShard(target, plan.hooks, options.duplicates_kind)
        shards = threads | f"Convert for {name}" >> beam.ParDo(convert).with_outputs(
            REJECTS, TALLY, main=ROWS
        )
        receipts.append(shards[ROWS] | f"Write {name}" >> WriteRows(files, name))
        rejects.append(shards[REJECTS])
        tallies.append(shards[TALLY])

    receipts.append(
        rejects | "All rejects" >> beam.Flatten() | "Write rejected" >> WriteRejects(files, "rejected", paths)
    )
    all_receipts = receipts | "All receipts" >> beam.Flatten()
    all_tallies = tallies | "All tallies" >> beam.Flatten()
    return (all_receipts, all_tallies) | "Commit" >> Commit(plan.committing)
