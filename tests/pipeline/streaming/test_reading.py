"""What a streaming job reads of a file or a broker: lanes, parcels, and rejects instead of failures."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from apache_beam.pvalue import TaggedOutput
from apache_beam.utils.timestamp import Timestamp
from apache_beam.utils.windowed_value import WindowedValue
from product import chat, write_lines

from pipeline.inputs import FileFormat, Split
from pipeline.streaming.parcels import opened
from pipeline.streaming.reading import Message, ReadFiles, ReadMessages
from pipeline.streaming.watch import FileSplit
from schemas.arrow import STREAMED
from schemas.parcels import ReadParcel
from transforms.record_tables import unpacked_tables

NOW = Timestamp(micros=5_000_000)


def parcels(outputs: Iterator[Any]) -> list[ReadParcel]:
    read = []
    for one in outputs:
        value = one.value if isinstance(one, TaggedOutput) else None
        if value is not None:
            parcel = opened((value.value if isinstance(value, WindowedValue) else value)[1])
            assert isinstance(parcel, ReadParcel)
            read.append(parcel)
    return read


def records(parcel: ReadParcel) -> list[dict[str, Any]]:
    return [] if parcel.table is None else unpacked_tables([parcel.table], STREAMED).to_pylist()


def rejects(parcel: ReadParcel) -> list[dict[str, Any]]:
    return [] if parcel.rejects is None else unpacked_tables([parcel.rejects], STREAMED).to_pylist()


def read_file(path: Path) -> ReadParcel:
    dofn = ReadFiles("auto", lanes=4)._read
    size = path.stat().st_size if path.exists() else 0
    file = FileSplit(Split(0, str(path), FileFormat.JSONL), size, 1)
    (parcel,) = parcels(dofn.process(file, NOW))
    return parcel


def test_a_file(tmp_path: Path) -> None:
    undated = chat(2)
    del undated["metadata"]["dateSent"]
    parcel = read_file(write_lines(tmp_path / "a.jsonl", [chat(1), b"{", undated]))
    assert (parcel.records, parcel.messages, parcel.ended, parcel.ranges) == (3, 3, 1, 1)
    assert [one["sent_ms"] is None for one in records(parcel)] == [False, True]
    # A record without a date happened when it came.
    assert records(parcel)[1]["event_ms"] == 5_000
    (reject,) = rejects(parcel)
    assert (reject["reason"], reject["place_unit"], reject["version"]) == ("not_json", "byte", None)


def test_an_empty_file(tmp_path: Path) -> None:
    parcel = read_file(write_lines(tmp_path / "a.jsonl", []))
    assert (parcel.records, parcel.ended, parcel.table, parcel.rejects) == (0, 1, None, None)


@pytest.mark.parametrize("kind", ["gone", "rubbish"])
def test_what_cannot_be_read_is_a_reject(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "a.jsonl"
    if kind == "rubbish":
        path.write_bytes(bytes(range(256)) * 40)
    parcel = read_file(path)
    assert parcel.table is None
    assert {one["reason"] for one in rejects(parcel)} <= {"broken_file", "not_utf8", "not_json"}
    assert parcel.records == len(rejects(parcel)) > 0


def test_messages_of_several_partitions() -> None:
    dofn = ReadMessages("auto", lanes=4)._read
    dofn.start_bundle()
    for at in range(3):
        for partition in range(2):
            source = f"kafka://chat/{partition:05d}"
            value = json.dumps(chat(at, thread=f"t{partition}")).encode() if at else b"nonsense"
            assert list(dofn.process(Message(source, at, 7_000, value), NOW)) == []
    read = parcels(dofn.finish_bundle())
    assert [(one.source, one.records, one.ranges) for one in read] == [
        ("kafka://chat/00000", 3, None),
        ("kafka://chat/00001", 3, None),
    ]
    assert [one["at"] for one in records(read[0])] == [1, 2]
    assert [(one["place"], one["place_unit"]) for one in rejects(read[0])] == [(0, "offset")]
    assert list(dofn.finish_bundle()) == []
