"""The Beam job that one writes first.

ReadFromText, json, dicts through GroupByKey, WriteToParquet.
It does less than Threadloom: no links, no attachments, no rejects, no sums, no total order,
no blank messages left out.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable
from typing import Any

import apache_beam as beam
import pyarrow as pa
from apache_beam.options.pipeline_options import PipelineOptions

SCHEMA = pa.schema(
    [
        ("thread_id", pa.string()),
        ("messages", pa.list_(pa.struct([("role", pa.string()), ("content", pa.string())]))),
        ("message_ids", pa.list_(pa.string())),
    ]
)


def keyed(record: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    return record["threadId"], record


def row(element: tuple[str, Iterable[dict[str, Any]]]) -> dict[str, Any]:
    thread_id, records = element
    ordered = sorted(records, key=lambda record: record["metadata"]["dateSent"])
    return {
        "thread_id": thread_id,
        "messages": [
            {
                "role": "assistant" if record["author"]["isMe"] else "user",
                "content": record["text"],
            }
            for record in ordered
        ],
        "message_ids": [record["id"] for record in ordered],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--input", required=True)
    parser.add_argument("--output", required=True)
    options = parser.parse_args()
    with beam.Pipeline(options=PipelineOptions(["--runner=FnApiRunner"])) as pipeline:
        (
            pipeline
            | "Read" >> beam.io.ReadFromText(options.input)
            | "Parse" >> beam.Map(json.loads)
            | "Key" >> beam.Map(keyed)
            | "Group" >> beam.GroupByKey()
            | "Row" >> beam.Map(row)
            | "Write"
            >> beam.io.WriteToParquet(
                options.output + "/part", SCHEMA, codec="zstd", file_name_suffix=".parquet"
            )
        )


if __name__ == "__main__":
    main()
