"""Records on their way through a job that never ends, and back to what a batch job has of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from schemas.arrow import RECORDS, STREAMED
from schemas.records import Place, Record, Rejected
from transforms.decode import RECORD_LIMIT, Source, oversized_line, record_of_line
from transforms.decoded_lines import DecodedBlock, decoded_lines
from transforms.lines import BYTE_ORDER_MARK, Lines
from transforms.record_tables import records_table


def streamed(table: pa.Table, source: str, came_ms: int | pa.Array) -> pa.Table:
    """Records of one source (a table of `RECORDS`) as a table of `STREAMED`; when they came: all, or each.

    A record without a date happened when it came; its conversion goes on knowing none.
    """
    count = table.num_rows
    came = pa.scalar(came_ms, pa.int64()) if isinstance(came_ms, int) else came_ms
    columns = {
        **{name: table[name] for name in table.column_names if name != "file"},
        "source": pa.repeat(pa.scalar(source), count),
        "event_ms": pc.coalesce(table["sent_ms"], came),
        "arrived_ms": pa.repeat(pa.scalar(0, pa.int64()), count),
        "session": pa.repeat(pa.scalar(0, pa.int32()), count),
        "version": pa.repeat(pa.scalar(0, pa.int32()), count),
    }
    return pa.Table.from_arrays([columns[field.name] for field in STREAMED], schema=STREAMED)


def arrived(table: pa.Table, arrived_ms: int) -> pa.Table:
    """The records, with how far time had come when they arrived."""
    at = STREAMED.get_field_index("arrived_ms")
    times = pa.repeat(pa.scalar(arrived_ms, pa.int64()), table.num_rows)
    return table.set_column(at, STREAMED.field(at), times)


def source_numbers(sources: Sequence[str]) -> dict[str, int]:
    """Each source's number in archive order, which is by name."""
    return {source: number for number, source in enumerate(sorted(set(sources)))}


def numbered(table: pa.Table, numbers: Mapping[str, int]) -> pa.Table:
    """Records of a table of `STREAMED` as a table of `RECORDS`; `numbers` names every source."""
    encoded = table["source"].combine_chunks().dictionary_encode()
    of_source = pa.array([numbers[source] for source in encoded.dictionary.to_pylist()], pa.int32())
    columns = {name: table[name] for name in table.column_names}
    columns["file"] = of_source.take(encoded.indices)
    return pa.Table.from_arrays([columns[field.name] for field in RECORDS], schema=RECORDS)


def decoded_values(values: Sequence[bytes], places: Sequence[int], source: Source) -> DecodedBlock:
    """The records and rejects of messages of one partition; `places` are their places in it.

    As in a file, what is blank is nothing at all, and a byte-order mark in front is not part of a record.
    """
    filled = [
        (value.removeprefix(BYTE_ORDER_MARK), at)
        for value, at in zip(values, places, strict=True)
        if value.strip()
    ]
    lines = [(value, at) for value, at in filled if _is_line(value)]
    others = [(value, at) for value, at in filled if not _is_line(value)]
    table, rejects = decoded_lines(_lines(lines), 0, source)
    more, refused = _one_by_one(others, source)
    return DecodedBlock(pa.concat_tables([table, more]), [*rejects, *refused])


def _is_line(value: bytes) -> bool:
    return len(value) <= RECORD_LIMIT and b"\n" not in value


def _lines(values: Sequence[tuple[bytes, int]]) -> Lines:
    text = b"\n".join(value for value, _at in values)
    sizes = np.array([len(value) for value, _at in values], np.int64)
    ends = np.cumsum(sizes + 1) - 1
    return Lines(text, ends - sizes, ends, np.array([at for _value, at in values], np.int64), [], len(text))


def _one_by_one(values: Sequence[tuple[bytes, int]], source: Source) -> tuple[pa.Table, list[Rejected]]:
    records, rejects = [], []
    for value, at in values:
        place = Place(0, at)
        if len(value) > RECORD_LIMIT:
            rejects.append(oversized_line(value, len(value), place))
            continue
        result = record_of_line(value, place, source)
        if isinstance(result, Record):
            records.append(result)
        else:
            rejects.append(result)
    return records_table(records), rejects
