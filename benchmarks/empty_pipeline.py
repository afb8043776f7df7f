"""The least that a Beam pipeline takes: one Create, one Map, in process. The base of `compare.py --start`."""

import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions

if __name__ == "__main__":
    with beam.Pipeline(options=PipelineOptions(["--runner=FnApiRunner"])) as pipeline:
        _ = pipeline | beam.Create([1]) | beam.Map(lambda number: number + 1)
