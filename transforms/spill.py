"""Packed records in files, so that only where they are has to cross the shuffle.

For a runner whose workers share a disk and whose shuffle is memory: it copies what crosses some ten times
over. A record stays in the file until the run ends; the system keeps what is needed of it in memory.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Sequence

import pyarrow as pa

# A file, where in it the packed records begin, and how many bytes they are.
Spilled = tuple[str, int, int]
Packed = bytes | Spilled


def spilled(parts: Sequence[tuple[int, pa.Buffer]], folder: str) -> list[tuple[int, Spilled]]:
    """Each shard's packed records, in a file that nothing else writes to. Raises OSError."""
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, f"shuffle-{uuid.uuid4().hex}.arrow")
    places: list[tuple[int, Spilled]] = []
    with open(path, "xb") as file:
        for shard, packed in parts:
            places.append((shard, (path, file.tell(), packed.size)))
            file.write(packed)
    return places


def buffer_of(packed: Packed) -> pa.Buffer:
    """The packed records, mapped where they lie in a file. Raises OSError."""
    if isinstance(packed, bytes):
        return pa.py_buffer(packed)
    path, start, size = packed
    with pa.memory_map(path) as file:
        file.seek(start)
        return file.read_buffer(size)
