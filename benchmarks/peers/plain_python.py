"""The project's own pure functions in plain Python: the job without Beam.

The same blocks, decoder, shards, order, conversion and files, in one loop each. What the job takes
beyond this is Beam's price, and the commit's: no rejects are written here, no sums, no `_SUCCESS`.
"""

from __future__ import annotations

import argparse
import glob
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pyarrow as pa

from pipeline.options import shards_for
from schemas.formats import Dataset, Format
from transforms.convert import Hooks, Target
from transforms.decode import RECORD_LIMIT
from transforms.decoded_lines import decoded_lines
from transforms.guards.rules import GuardOptions
from transforms.lines import lines_of_blocks
from transforms.parquet import write_parquet
from transforms.record_tables import by_shard, in_total_order
from transforms.shards import converted_shard

BLOCK_BYTES = 4 << 20
# Of how many bytes of records the parts for each shard are made at once.
FLUSH_BYTES = 16 << 20
TARGET = Target(Dataset.TRAINING, Format.MESSAGES, GuardOptions())


def decoded(paths: list[str]) -> Iterator[pa.Table]:
    """The records of the files, block by block."""
    for number, path in enumerate(paths):
        with open(path, "rb") as stream:
            blocks = iter(partial(stream.read, BLOCK_BYTES), b"")
            for lines in lines_of_blocks(blocks, 0, None, RECORD_LIMIT):
                yield decoded_lines(lines, number, "auto").table


def read(paths: list[str], shards: int) -> list[list[pa.Table]]:
    """The records of each shard, in archive order."""
    parts: list[list[pa.Table]] = [[] for _ in range(shards)]
    held: list[pa.Table] = []

    def flush() -> None:
        if held:
            for shard, part in by_shard(pa.concat_tables(held), shards):
                parts[shard].append(part)
            held.clear()

    for table in decoded(paths):
        held.append(table)
        if sum(one.nbytes for one in held) >= FLUSH_BYTES:
            flush()
    flush()
    return parts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--input", required=True)
    parser.add_argument("--output", required=True, type=Path)
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    paths = sorted(glob.glob(options.input))
    shards = shards_for([("jsonl", Path(path).stat().st_size) for path in paths], None)
    parts = read(paths, shards)
    for shard in range(shards):
        tables, parts[shard] = parts[shard], []
        if tables:
            output = converted_shard(in_total_order(pa.concat_tables(tables)), TARGET, Hooks(), "latest")
            path = options.output / f"part-{shard:05d}-of-{shards:05d}.parquet"
            with open(path, "wb") as file:
                write_parquet(file, output.tables[0].schema, output.tables)


if __name__ == "__main__":
    main()
