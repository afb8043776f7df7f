"""The DuckDB script: one statement from the JSON lines to the Parquet file, on all cores.

What SQL cannot say well is left out: the fencing of links, attachments, the latest of several
versions, rejects (one bad line ends the script), sums. A missing date counts as 0.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import duckdb

# Sorting the lists of structs, which start with the date and the place, is faster than
# `list(… ORDER BY sent, place)` twice, and gives the same.
STATEMENT = r"""
COPY (
    SELECT
        thread_id,
        list_transform(sorted, lambda one: {'role': one.role, 'content': one.content}) AS messages,
        list_transform(sorted, lambda one: one.id) AS message_ids
    FROM (
        SELECT
            thread_id,
            list_sort(list({
                'sent': sent,
                'place': place,
                'role': CASE WHEN is_me THEN 'assistant' ELSE 'user' END,
                'content': text,
                'id': id
            })) AS sorted
        FROM (
            SELECT
                threadId AS thread_id,
                id,
                text,
                author.isMe AS is_me,
                coalesce(metadata.dateSent, TIMESTAMP 'epoch') AS sent,
                row_number() OVER () AS place
            FROM read_ndjson({input}, columns = {
                threadId: 'VARCHAR',
                id: 'VARCHAR',
                text: 'VARCHAR',
                author: 'STRUCT(isMe BOOLEAN)',
                metadata: 'STRUCT(dateSent TIMESTAMP)'
            })
        )
        WHERE regexp_matches(text, '\S')
        GROUP BY thread_id
    )
) TO {output} (FORMAT parquet, COMPRESSION zstd)
"""


def quoted(text: str) -> str:
    """A string as SQL writes it."""
    return "'" + text.replace("'", "''") + "'"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--input", required=True)
    parser.add_argument("--output", required=True, type=Path)
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    output = quoted(str(options.output / "part-00000.parquet"))
    duckdb.sql(STATEMENT.replace("{input}", quoted(options.input)).replace("{output}", output))


if __name__ == "__main__":
    main()
