"""Compares a peer's rows with the job's; raises with the first difference.

    python benchmarks/check_rows.py --job out/training --peer folder --archive chat.jsonl [--everything]

All threads and all message ids must be equal and in the same order inside each thread; role and
content must be equal for the messages whose record has neither links nor attachments, which most
peers cannot express, or with --everything for all. The order of the threads is each tool's own.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq


class Difference(Exception):
    """The first place where the peer's rows are not the job's."""


class _Extras(msgspec.Struct, rename="camel"):
    thread_id: str
    id: str
    links: list[msgspec.Raw] | None = None
    attachments: list[msgspec.Raw] | None = None


class Messages(NamedTuple):
    """The messages of a dataset, thread by thread in the order of the thread ids: aligned columns."""

    threads: pa.Array
    ids: pa.Array
    roles: pa.Array
    contents: pa.Array


def messages_of(folder: Path) -> Messages:
    """The messages in a folder of Parquet files. Raises Difference where they are no dataset."""
    columns = ["thread_id", "messages", "message_ids"]
    parts = [pq.read_table(path, columns=columns) for path in sorted(folder.glob("*.parquet"))]
    if not parts:
        raise Difference(f"{folder}: no Parquet files")
    rows = pa.concat_tables([_plain(part) for part in parts]).sort_by("thread_id").combine_chunks()
    thread_ids, messages, ids = (rows[name].combine_chunks() for name in columns)
    if len(thread_ids.unique()) < len(thread_ids):
        raise Difference(f"{folder}: a thread has more than one row")
    counts = pc.list_value_length(ids)
    if not counts.equals(pc.list_value_length(messages)):
        raise Difference(f"{folder}: messages and message_ids are not aligned")
    flat = messages.flatten()
    threads = thread_ids.take(pc.list_parent_indices(ids))
    return Messages(threads, ids.flatten(), flat.field("role"), flat.field("content"))


def _plain(table: pa.Table) -> pa.Table:
    """The columns as the job's types: writers have several kinds of strings and lists."""
    struct = pa.struct([("role", pa.string()), ("content", pa.string())])
    schema = pa.schema(
        [
            ("thread_id", pa.string()),
            ("messages", pa.list_(struct)),
            ("message_ids", pa.list_(pa.string())),
        ]
    )
    return table.cast(schema)


def keys_with_extras(archive: Path) -> Iterator[str]:
    """The messages whose record has links or attachments."""
    decode = msgspec.json.Decoder(_Extras).decode
    with open(archive, "rb") as lines:
        for line in lines:
            record = decode(line)
            if record.links or record.attachments:
                yield f"{record.thread_id}\0{record.id}"


def check_rows(job: Path, peer: Path, archive: Path, *, everything: bool) -> int:
    """Raises Difference, or gives how many messages were compared with role and content."""
    ours, theirs = messages_of(job), messages_of(peer)
    _same("thread", ours, theirs, ours.threads, theirs.threads)
    _same("message id", ours, theirs, ours.ids, theirs.ids)
    if not everything:
        keys = pc.binary_join_element_wise(ours.threads, pc.fill_null(ours.ids, ""), "\0")
        extras = pa.array(keys_with_extras(archive), pa.string())
        plain = pc.invert(pc.is_in(keys, value_set=extras))
        ours, theirs = (Messages(*(column.filter(plain) for column in one)) for one in (ours, theirs))
    _same("role", ours, theirs, ours.roles, theirs.roles)
    _same("content", ours, theirs, ours.contents, theirs.contents)
    return len(ours.ids)


def _same(what: str, ours: Messages, theirs: Messages, own: pa.Array, other: pa.Array) -> None:
    if own.equals(other):
        return
    shared = min(len(own), len(other))
    equal = pc.fill_null(pc.equal(own.slice(0, shared), other.slice(0, shared)), False)
    at = pc.index(equal, False).as_py()
    at = shared if at < 0 else at
    raise Difference(
        f"{what}s differ from message {at} on: the job has {_shown(ours, at)}, the peer {_shown(theirs, at)}"
    )


def _shown(messages: Messages, at: int) -> Any:
    return tuple(column[at].as_py() for column in messages) if at < len(messages.ids) else "no more"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--job", required=True, type=Path)
    parser.add_argument("--peer", required=True, type=Path)
    parser.add_argument("--archive", required=True, type=Path)
    parser.add_argument("--everything", action="store_true")
    options = parser.parse_args()
    count = check_rows(options.job, options.peer, options.archive, everything=options.everything)
    print(f"the same rows; role and content compared of {count} messages")


if __name__ == "__main__":
    main()
