"""Packed records come back from a file as they went into it."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from product import chat

from schemas.arrow import RECORDS
from schemas.records import Place, Record
from transforms.decode import record_of_line
from transforms.record_tables import packed_table, records_of, records_table, unpacked_tables
from transforms.spill import buffer_of, spilled


def record(number: int) -> Record:
    import msgspec

    read = record_of_line(msgspec.json.encode(chat(number)), Place(0, number), "auto")
    assert isinstance(read, Record)
    return read


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 5)), max_size=8))
def test_each_shard_gets_its_own_records_back(parts: list[tuple[int, int]]) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        tables = [
            (shard, records_table([record(shard * 100 + at) for at in range(count)]))
            for shard, count in parts
        ]
        places = spilled([(shard, packed_table(table)) for shard, table in tables], folder)
        assert [shard for shard, _place in places] == [shard for shard, _table in tables]
        for (_shard, place), (_same, table) in zip(places, tables, strict=True):
            assert records_of(unpacked_tables([place], RECORDS)) == records_of(table)
        assert len(list(Path(folder).iterdir())) == 1


def test_bytes_are_taken_as_they_are() -> None:
    packed = packed_table(records_table([record(1)]))
    assert buffer_of(packed.to_pybytes()).equals(packed)


def test_a_file_that_is_gone_is_an_os_error(tmp_path: Path) -> None:
    ((_shard, place),) = spilled([(0, packed_table(records_table([record(1)])))], str(tmp_path / "new"))
    Path(place[0]).unlink()
    with pytest.raises(OSError, match="shuffle-"):
        buffer_of(place)
