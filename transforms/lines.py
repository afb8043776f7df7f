"""Lines and their byte offsets, from blocks of bytes that end anywhere."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import accumulate
from typing import NamedTuple

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_KEPT_OF_OVERSIZED = 64 << 10


class Oversized(NamedTuple):
    """A line that is too long to be a record: where it is, how it starts, how long it is."""

    offset: int
    start: bytes
    size: int


class Lines(NamedTuple):
    """The lines of one block, without line breaks: `offsets[i]` is where `data[i]` starts."""

    offsets: list[int]
    data: list[bytes]
    oversized: list[Oversized]

    @property
    def end(self) -> int:
        """Where the last line ends, its line break included; 0 where there is none."""
        last = self.offsets[-1] + len(self.data[-1]) + 1 if self.data else 0
        longest = self.oversized[-1].offset + self.oversized[-1].size + 1 if self.oversized else 0
        return max(last, longest)


def lines_of_blocks(blocks: Iterable[bytes], start: int, end: int | None, limit: int) -> Iterator[Lines]:
    """The lines that start in [start, end), those that a block completes together; no blank ones.

    `blocks` are the bytes from `start` on; `end` None means to the end of the data. Where `start` is
    above 0, the blocks begin one byte before it: the first line belongs to this range only if that
    byte is a line break. Of a line longer than `limit` bytes only the start is kept.
    """
    at = start - 1 if start > 0 else 0
    rest = b""
    dropped = 0
    entering = start > 0
    for block in blocks:
        if end is not None and at >= end:
            return
        pieces = (rest + block if rest else block).split(b"\n")
        rest = pieces.pop()
        if entering:
            # What comes before the first line break belongs to the range before this one.
            if not pieces:
                at, rest = at + len(rest), b""
                yield Lines([], [], [])
                continue
            at += len(pieces.pop(0)) + 1
            entering = False
        if pieces and dropped:
            size = len(pieces[0]) + dropped
            yield _oversized(at, pieces.pop(0), size)
            at, dropped = at + size + 1, 0
        lines, at = _lines(pieces, at, end, limit)
        if len(rest) > limit:
            kept = min(_KEPT_OF_OVERSIZED, limit)
            dropped += len(rest) - kept
            rest = rest[:kept]
        yield lines
    if rest and not entering and (end is None or at < end):
        if dropped:
            yield _oversized(at, rest, len(rest) + dropped)
        else:
            yield _lines([rest], at, end, limit)[0]


def _lines(pieces: list[bytes], at: int, end: int | None, limit: int) -> tuple[Lines, int]:
    """The pieces that are lines of the range, and where the piece behind them starts."""
    offsets = list(accumulate((len(piece) + 1 for piece in pieces), initial=at))
    behind = offsets.pop()
    if end is not None and behind > end:
        inside = sum(1 for offset in offsets if offset < end)
        offsets, pieces = offsets[:inside], pieces[:inside]
    if at == 0 and pieces and pieces[0].startswith(BYTE_ORDER_MARK):
        pieces[0] = pieces[0][len(BYTE_ORDER_MARK) :]
    blank = any(not piece or piece.isspace() for piece in pieces)
    if not blank and max(map(len, pieces), default=0) <= limit:
        return Lines(offsets, pieces, []), behind
    found = Lines([], [], [])
    for offset, piece in zip(offsets, pieces, strict=True):
        if len(piece) > limit:
            found.oversized.append(Oversized(offset, piece[:_KEPT_OF_OVERSIZED], len(piece)))
        elif piece and not piece.isspace():
            found.offsets.append(offset)
            found.data.append(piece)
    return found, behind


def _oversized(at: int, start: bytes, size: int) -> Lines:
    return Lines([], [], [Oversized(at, start[:_KEPT_OF_OVERSIZED], size)])
