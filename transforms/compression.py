"""Compressed archives as streams of blocks; a broken stream says so after the last good block."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from typing import Literal

import zstandard

Codec = Literal["gzip", "zstd"]

# A block of a hostile archive may inflate a thousandfold: it comes out in pieces of this size.
_PIECE = 1 << 22


class BrokenStream(Exception):
    """The compressed data ends too early, or is none."""


def decompressed(blocks: Iterable[bytes], codec: Codec) -> Iterator[bytes]:
    """The plain bytes of one or more concatenated members. Raises BrokenStream, after what is whole."""
    inflate = _gzip_pieces if codec == "gzip" else _zstd_pieces
    return inflate(blocks)


def _gzip_pieces(blocks: Iterable[bytes]) -> Iterator[bytes]:
    member = None
    for block in blocks:
        rest = block
        while rest:
            if member is None:
                # Padding between or behind members is no member.
                rest = rest.lstrip(b"\0")
                if not rest:
                    break
                member = zlib.decompressobj(wbits=31)
            try:
                piece = member.decompress(rest, _PIECE)
            except zlib.error as error:
                raise BrokenStream(f"not gzip: {error}") from None
            if piece:
                yield piece
            if member.eof:
                rest, member = member.unused_data, None
            else:
                rest = member.unconsumed_tail
    if member is not None:
        raise BrokenStream("the gzip data ends too early")


def _zstd_pieces(blocks: Iterable[bytes]) -> Iterator[bytes]:
    factory = zstandard.ZstdDecompressor(max_window_size=1 << 27)
    member = None
    for block in blocks:
        rest = block
        while rest:
            if member is None:
                member = factory.decompressobj()
            # The library inflates all it is given: small bites keep what comes out small.
            bite, rest = rest[:65536], rest[65536:]
            try:
                piece = member.decompress(bite)
            except zstandard.ZstdError as error:
                raise BrokenStream(f"not zstd: {error}") from None
            if piece:
                yield piece
            if member.eof:
                rest, member = member.unused_data + rest, None
    if member is not None:
        raise BrokenStream("the zstd data ends too early")
