"""Which shard a thread belongs to: a fixed function of its id, the same on every runner."""

from __future__ import annotations

import zlib


def shard_of(key: str, shards: int) -> int:
    """A number from 0 to `shards` - 1, evenly spread: CRC-32 of the UTF-8 bytes, modulo `shards`."""
    return zlib.crc32(key.encode("utf-8", "surrogatepass")) % shards
