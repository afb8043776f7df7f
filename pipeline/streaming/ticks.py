"""Elements that come now and then, for ever: where Flink runs the job its own source, else Beam's.

Beam's `PeriodicImpulse` is a splittable DoFn, and Beam's Flink runner registers a new state, of some 80 KiB,
each time one of those has nothing to do for a while, and keeps it (seen with 2.70): a gigabyte in some hours.
Flink's own source has no such cost. It gives no watermark either, so on Flink time is the clock's.
"""

from __future__ import annotations

import time
from typing import Any

import apache_beam as beam
from apache_beam.io.flink.flink_streaming_impulse_source import FlinkStreamingImpulseSource
from apache_beam.pvalue import PCollection
from apache_beam.transforms.periodicsequence import PeriodicImpulse
from apache_beam.transforms.window import TimestampedValue


class NowAndThen(beam.PTransform):  # type: ignore[misc]
    """-> epoch milliseconds, about once every `every_ms`; on Flink once for each of its parallel sources"""

    def __init__(self, every_ms: int, *, on_flink: bool) -> None:
        super().__init__()
        self._every_ms = every_ms
        self._on_flink = on_flink

    def expand(self, begin: Any) -> PCollection:
        if self._on_flink:
            source = FlinkStreamingImpulseSource()
            # The class keeps one configuration for all of its instances.
            source.config = {"interval_ms": self._every_ms}
        else:
            source = PeriodicImpulse(fire_interval=self._every_ms / 1000, apply_windowing=False)
        return begin | "Impulses" >> source | "Now" >> beam.Map(_now).with_output_types(int)


def _now(_element: object) -> TimestampedValue:
    moment = time.time()
    return TimestampedValue(int(moment * 1000), moment)
