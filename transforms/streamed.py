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
from transforms.lines import Lines
from transforms.record_tables import records_table


def streamed(table: pa.Table, source: str, arrived_ms: int | pa.Array) -> pa.Table:
    """Records of one source (a table of `RECORDS`) as a table of `STREAMED`; when they arrived: all, or each.

    A record without a date happened when it arrived; its conversion goes on knowing none.
    """
    count = table.num_rows
    columns = {
        **{name: table[name] for name in table.column_names if name != "file"},
        "source": pa.repeat(pa.scalar(source), count),
        "event_ms": pc.coalesce(
            table["sent_ms"], pa.scalar(arrived_ms) if isinstance(arrived_ms, int) else arrived_ms
        ),
        "session": pa.repeat(pa.scalar(0, pa.int32()), count),
        "version": pa.repeat(pa.scalar(0, pa.int32()), count),
    }
    return pa.Table.from_arrays([columns[field.name] for field in STREAMED], schema=STREAMED)


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
    """The records and rejects of messages of one partition; `places` are their places in it."""
    whole = [len(value) <= RECORD_LIMIT and b"\n" not in value for value in values]
    lines = [value for value, is_line in zip(values, whole, strict=True) if is_line]
    offsets = np.array([at for at, is_line in zip(places, whole, strict=True) if is_line], np.int64)
    table, rejects = decoded_lines(_lines(lines, offsets), 0, source)
    others, refused = _one_by_one(
        [(value, at) for value, at, is_line in zip(values, places, whole, strict=True) if not is_line], source
    )
    return DecodedBlock(pa.concat_tables([table, others]), [*rejects, *refused])


def _lines(lines: Sequence[bytes], offsets: np.ndarray) -> Lines:
    text = b"\n".join(lines)
    sizes = np.array([len(line) for line in lines], np.int64)
    ends = np.cumsum(sizes + 1) - 1
    filled = np.flatnonzero([bool(line.strip()) for line in lines])
    return Lines(text, ends - sizes, ends, offsets, [], len(text)).at(filled)


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
