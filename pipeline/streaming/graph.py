"""The graph that never ends: from message to commit, top to bottom.

files that appear | Kafka | Pub/Sub
  -> records by lane of threads            Read                 (parcels: all that was read, for the log)
  -> sessions that are over, whole         Group into sessions  (event time; with late messages again)
  -> rows by dataset, rejects              Convert for …        (parcels)
  -> files and manifest, in whole commits  Commit
"""

from __future__ import annotations

from typing import Any

import apache_beam as beam
import msgspec
from apache_beam.pvalue import DoOutputsTuple, PCollection

from pipeline.options import RunOptions
from pipeline.streaming.brokers import KafkaMessages, PubsubMessages
from pipeline.streaming.commits import CommitParcels, CommitRule
from pipeline.streaming.convert import ConvertSessions
from pipeline.streaming.log import Preparing
from pipeline.streaming.options import StreamOptions
from pipeline.streaming.parcels import TICK
from pipeline.streaming.reading import PARCELS, ReadFiles, ReadMessages
from pipeline.streaming.sessions import LANE_PARCELS, GroupIntoSessions
from pipeline.streaming.ticks import NowAndThen
from pipeline.streaming.watch import WatchFiles
from transforms.convert import Target
from transforms.dofns import HookSpec

# A commit is due, or may be published, also where nothing comes.
_TICK_MS = 1000


class StreamPlan(msgspec.Struct, frozen=True):
    """A job that never ends, ready to be built into a graph."""

    options: RunOptions
    stream: StreamOptions
    targets: list[Target]
    hooks: HookSpec
    # On Flink time is the clock's, see `ticks`.
    on_flink: bool = False

    @property
    def preparing(self) -> Preparing:
        formats = {target.dataset.value: target.format.value for target in self.targets}
        described = self.options.described() | msgspec.to_builtins(self.stream)
        return Preparing(self.options.output, formats, described)


def build_stream(pipeline: beam.Pipeline, plan: StreamPlan) -> PCollection:
    """Adds the job to the pipeline; gives the number of each commit as it is prepared."""
    read = pipeline | "Read" >> ReadStream(plan)
    parcels = written_parcels(read["records"], plan)
    now_and_then = NowAndThen(_TICK_MS, on_flink=plan.on_flink)
    ticks = (
        pipeline
        | "Now and then" >> now_and_then
        | "Ticks" >> beam.Map(_tick).with_output_types(tuple[int, bytes])
    )
    everything = (read[PARCELS], *parcels, ticks) | "All parcels" >> beam.Flatten()
    rule = CommitRule(plan.stream.commit_ms, plan.stream.commit_bytes)
    return everything | "Commit" >> CommitParcels(plan.preparing, rule)


def written_parcels(records: PCollection, plan: StreamPlan) -> list[PCollection]:
    """(lane, packed records) … -> parcels of the sessions that are over: their number, rows and rejects"""
    stream = plan.stream
    sessions = records | "Group into sessions" >> GroupIntoSessions(
        stream.rule, stream.granule_ms, by_clock=plan.on_flink
    )
    parcels = [sessions[LANE_PARCELS]]
    for target in plan.targets:
        convert = ConvertSessions(target, plan.hooks, plan.options.duplicates_kind)
        parcels.append(sessions["given"] | f"Convert for {target.dataset.value}" >> beam.ParDo(convert))
    return parcels


class ReadStream(beam.PTransform):  # type: ignore[misc]
    """-> (lane, packed records) …, parcels on a tag of their own"""

    def __init__(self, plan: StreamPlan) -> None:
        super().__init__()
        self._plan = plan

    def expand(self, begin: Any) -> DoOutputsTuple:
        stream, source = self._plan.stream, self._plan.options.source_kind
        if stream.watch:
            files = begin | "Watch files" >> WatchFiles(
                stream.watch, stream.poll_ms, on_flink=self._plan.on_flink
            )
            return files | "Read files" >> ReadFiles(source, stream.lanes)
        if stream.kafka_topics:
            messages = begin | "Kafka" >> KafkaMessages(stream)
        else:
            messages = begin | "Pub/Sub" >> PubsubMessages(str(stream.pubsub_subscription))
        return messages | "Read messages" >> ReadMessages(source, stream.lanes)


def _tick(_time: object) -> tuple[int, bytes]:
    return 0, TICK
