"""Tables as one Parquet file: the same bytes wherever they are written."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

_ZSTD_LEVEL = 3
_DICTIONARY_COLUMNS = [
    "messages.list.element.role",
    "repairs.list.element.reason",
    "reason",
    "place_unit",
    "source_file",
    "dataset",
]


def write_parquet(stream: Any, schema: pa.Schema, tables: Iterable[pa.Table]) -> int:
    """The tables as one Parquet file: zstd, statistics, page index. Gives the number of rows."""
    rows = 0
    with pq.ParquetWriter(
        pa.PythonFile(stream, mode="w"),
        schema,
        compression="zstd",
        compression_level=_ZSTD_LEVEL,
        use_dictionary=_DICTIONARY_COLUMNS,
        write_statistics=True,
        write_page_index=True,
    ) as writer:
        for table in tables:
            # A row group without rows makes `datasets` read in batches of none.
            if table.num_rows:
                writer.write_table(table, row_group_size=table.num_rows)
                rows += table.num_rows
    return rows
