"""The limit: read the bytes, parse each line with the fastest decoder, write the finished table.

    python benchmarks/peers/limit.py --input ARCHIVE --finish JOB_OUTPUT     once, before
    python benchmarks/peers/limit.py --input ARCHIVE --output FOLDER         what is measured
    python benchmarks/peers/limit.py --input ARCHIVE --decoders              times the decoders

Nothing is grouped, sorted or converted: what the lines hold is thrown away, and the finished table,
the job's own, comes memory-mapped out of an Arrow file that was made before. One thread parses. Of
the decoders msgspec's typed structs take the least CPU for lines as short as these (a million: 0.9 s,
where pyarrow.json with an explicit schema took 1.1 to 1.4 and orjson 1.3; see --decoders).
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import orjson
import pyarrow as pa
import pyarrow.json
import pyarrow.parquet as pq


class Author(msgspec.Struct, gc=False, rename="camel"):
    is_me: bool


class Metadata(msgspec.Struct, gc=False, rename="camel"):
    date_sent: str


class Message(msgspec.Struct, gc=False, rename="camel"):
    """What a training row needs; all other fields are skipped."""

    id: str
    thread_id: str
    text: str
    author: Author
    metadata: Metadata


SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("threadId", pa.string()),
        ("text", pa.string()),
        ("author", pa.struct([("isMe", pa.bool_())])),
        ("metadata", pa.struct([("dateSent", pa.string())])),
    ]
)


def by_msgspec(path: Path) -> None:
    decode = msgspec.json.Decoder(Message).decode
    with open(path, "rb") as lines:
        for line in lines:
            decode(line)


def by_orjson(path: Path) -> None:
    with open(path, "rb") as lines:
        for line in lines:
            orjson.loads(line)


def by_pyarrow(path: Path) -> None:
    read = pyarrow.json.ReadOptions(use_threads=False, block_size=4 << 20)
    parse = pyarrow.json.ParseOptions(explicit_schema=SCHEMA, unexpected_field_behavior="ignore")
    for _batch in pyarrow.json.open_json(path, read, parse):
        pass


DECODERS: list[Callable[[Path], None]] = [by_msgspec, by_orjson, by_pyarrow]


def finished_path(archive: Path) -> Path:
    """Where the finished table of an archive is kept."""
    return archive.with_suffix(".finished.arrow")


def finish(archive: Path, job: Path) -> None:
    """Keeps the job's rows for later, as they are in memory."""
    table = pq.read_table(job, columns=["thread_id", "messages", "message_ids"])
    with pa.OSFile(str(finished_path(archive)), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)


def write(archive: Path, output: Path) -> None:
    """Writes the finished table, as the job writes its files."""
    output.mkdir(parents=True, exist_ok=True)
    with pa.memory_map(str(finished_path(archive))) as file:
        table = pa.ipc.open_file(file).read_all()
        options = {"compression_level": 3, "use_dictionary": ["messages.list.element.role"]}
        pq.write_table(table, output / "part-00000.parquet", compression="zstd", **options)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--input", required=True, type=Path)
    parser.add_argument("--output", type=Path)
    parser.add_argument("--finish", type=Path, metavar="JOB_OUTPUT")
    parser.add_argument("--decoders", action="store_true")
    options = parser.parse_args()
    for decode in DECODERS if options.decoders else []:
        started = time.process_time()
        decode(options.input)
        print(f"{decode.__name__}: {time.process_time() - started:.2f} s of CPU")
    if options.finish:
        finish(options.input, options.finish)
    if options.output:
        by_msgspec(options.input)
        write(options.input, options.output)


if __name__ == "__main__":
    main()
