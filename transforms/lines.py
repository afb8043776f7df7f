"""Lines and their byte offsets, from blocks of bytes that end anywhere."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_KEPT_OF_OVERSIZED = 64 << 10


class Line(NamedTuple):
    """A line without its line break. `size` differs from the length where only the start is kept."""

    offset: int
    data: bytes
    size: int


def lines_of_blocks(
    blocks: Iterable[bytes], start: int, end: int | None, limit: int
) -> Iterator[list[Line]]:
    """The lines that start in [start, end), a list for each block; blank lines are passed over.

    `blocks` are the bytes from `start` on; `end` None means to the end of the data. Where `start` is
    above 0, the blocks begin one byte before it: the first line belongs to this range only if that
    byte is a line break. Of a line longer than `limit` bytes only the start is kept.
    """
    position = start
    rest = b""
    dropped = 0
    skipping = False
    if start > 0:
        position, skipping = start - 1, True
    for block in blocks:
        if end is not None and position >= end and not skipping:
            return
        data = rest + block if rest else block
        at = position
        pieces = data.split(b"\n")
        rest = pieces.pop()
        found: list[Line] = []
        for piece in pieces:
            length = len(piece)
            if skipping:
                skipping = False
            elif end is not None and at >= end:
                yield found
                return
            else:
                size = length + dropped
                _add(found, at, piece, size, limit)
            at += length + dropped + 1
            dropped = 0
        position = at
        if skipping:
            position += len(rest)
            rest = b""
            if end is not None and position >= end:
                # Not a single line starts here: one that began earlier spans the whole range.
                yield found
                return
        elif len(rest) > limit:
            dropped += len(rest) - _KEPT_OF_OVERSIZED
            rest = rest[:_KEPT_OF_OVERSIZED]
        yield found
    if rest and not skipping and (end is None or position < end):
        last: list[Line] = []
        _add(last, position, rest, len(rest) + dropped, limit)
        yield last


def _add(found: list[Line], at: int, piece: bytes, size: int, limit: int) -> None:
    if at == 0 and piece.startswith(BYTE_ORDER_MARK):
        piece = piece[len(BYTE_ORDER_MARK) :]
    if size > limit:
        found.append(Line(at, piece[:_KEPT_OF_OVERSIZED], size))
    elif piece and not piece.isspace():
        found.append(Line(at, piece, len(piece)))
