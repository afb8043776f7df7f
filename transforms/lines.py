"""Lines and their byte offsets, from blocks of bytes that end anywhere."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_KEPT_OF_OVERSIZED = 64 << 10
_LINE_BREAK, _BLANK = ord("\n"), ord(" ")
_NONE = np.zeros(0, np.int64)

Positions = npt.NDArray[np.int64]


class Oversized(NamedTuple):
    """A line that is too long to be a record: where it is, how it starts, how long it is."""

    offset: int
    start: bytes
    size: int


class Stretch(NamedTuple):
    """Whole lines as they stand in a file, the last line break left out, and where they start.

    Those that start at `end` or behind belong to another range; `None` where there is no such bound.
    `oversized` are lines before these that were too long to be held.
    """

    text: bytes | None
    at: int
    end: int | None
    limit: int
    oversized: list[Oversized]


class Lines(NamedTuple):
    """The lines of one block, those that are blank or oversized left out.

    Line i is `text[starts[i] : ends[i]]`, and starts `offsets[i]` bytes into its file.
    """

    text: bytes
    starts: Positions
    ends: Positions
    offsets: Positions
    oversized: list[Oversized]
    # Where the last line ends, its line break included.
    end: int

    def __len__(self) -> int:
        return len(self.starts)

    @property
    def data(self) -> list[bytes]:
        """Each line, without its line break."""
        text = self.text
        return [text[start:end] for start, end in zip(self.starts.tolist(), self.ends.tolist(), strict=True)]

    def at(self, positions: Positions) -> Lines:
        """Some of the lines."""
        starts, ends, offsets = self.starts[positions], self.ends[positions], self.offsets[positions]
        return Lines(self.text, starts, ends, offsets, [], self.end)


def lines_of_blocks(blocks: Iterable[bytes], start: int, end: int | None, limit: int) -> Iterator[Lines]:
    """The lines that start in [start, end), those that a block completes together; no blank ones.

    `blocks` are the bytes from `start` on; `end` None means to the end of the data. Where `start` is
    above 0, the blocks begin one byte before it: the first line belongs to this range only if that
    byte is a line break. Of a line longer than `limit` bytes only the start is kept.
    """
    return map(lines_of_stretch, stretches(blocks, start, end, limit))


def stretches(blocks: Iterable[bytes], start: int, end: int | None, limit: int) -> Iterator[Stretch]:
    """As `lines_of_blocks`, the lines not looked at yet."""
    at = start - 1 if start > 0 else 0
    rest = b""
    dropped = 0
    entering = start > 0
    for block in blocks:
        if end is not None and at >= end:
            return
        behind = block.rfind(b"\n") + 1
        text = b"".join((rest, memoryview(block)[: behind - 1])) if behind else None
        rest = block[behind:] if behind else rest + block
        oversized = []
        if entering:
            # What comes before the first line break belongs to the range before this one.
            if text is None:
                at, rest = at + len(rest), b""
            else:
                at, text = _behind_first(text, at)
                entering = False
        if text is not None and dropped:
            length = _length_of_first(text)
            oversized.append(_oversized(at, text[:length], length + dropped))
            at, text = _behind_first(text, at + dropped)
            dropped = 0
        if len(rest) > limit:
            kept = min(_KEPT_OF_OVERSIZED, limit)
            dropped += len(rest) - kept
            rest = rest[:kept]
        yield Stretch(text, at, end, limit, oversized)
        if text is not None:
            at += len(text) + 1
    if rest and not entering and (end is None or at < end):
        if dropped:
            too_long = _oversized(at, rest, len(rest) + dropped)
            yield Stretch(None, at + too_long.size + 1, end, limit, [too_long])
        else:
            yield Stretch(rest, at, end, limit, [])


def lines_of(data: list[bytes], offsets: list[int]) -> Lines:
    """Lines that stand apart, as one block."""
    ends = np.cumsum(np.array([len(line) + 1 for line in data], np.int64)) - 1
    starts = np.concatenate([np.zeros(min(1, len(data)), np.int64), ends[:-1] + 1])
    places = np.array(offsets, np.int64)
    return Lines(b"\n".join(data), starts, ends, places, [], offsets[-1] + len(data[-1]) + 1 if data else 0)


def _length_of_first(text: bytes) -> int:
    found = text.find(b"\n")
    return len(text) if found < 0 else found


def _behind_first(text: bytes, at: int) -> tuple[int, bytes | None]:
    """What follows the first line, and where that is; None where it is the only one."""
    length = _length_of_first(text)
    return at + length + 1, text[length + 1 :] if length < len(text) else None


def lines_of_stretch(stretch: Stretch) -> Lines:
    """The lines, as far as they start before the stretch's `end`."""
    text, at, end, limit, oversized = stretch
    if text is None:
        return Lines(b"", _NONE, _NONE, _NONE, oversized, at)
    octets = np.frombuffer(text, np.uint8)
    breaks = _places_of(_LINE_BREAK, octets)
    starts = np.concatenate([np.zeros(1, np.int64), breaks + 1])
    ends = np.append(breaks, len(text))
    offsets = starts + at
    behind = at + len(text) + 1
    if end is not None and behind > end:
        inside = int(np.searchsorted(offsets, end))
        starts, ends, offsets = starts[:inside], ends[:inside], offsets[:inside]
    if at == 0 and len(starts) and text.startswith(BYTE_ORDER_MARK):
        starts[0] += len(BYTE_ORDER_MARK)
    lengths = ends - starts
    too_long = [
        _oversized(int(offsets[one]), text[starts[one] : ends[one]], int(lengths[one]))
        for one in np.flatnonzero(lengths > limit).tolist()
    ]
    kept = (lengths > 0) & (lengths <= limit)
    # White space only: its first byte is some.
    candidates = np.flatnonzero(kept)
    candidates = candidates[octets[starts[candidates]] <= _BLANK]
    for one in candidates.tolist():
        kept[one] = not text[starts[one] : ends[one]].isspace()
    if not kept.all():
        starts, ends, offsets = starts[kept], ends[kept], offsets[kept]
    return Lines(text, starts, ends, offsets, [*oversized, *too_long], behind)


def _places_of(octet: int, octets: npt.NDArray[np.uint8]) -> Positions:
    """Where the octet is. Eight at a time are looked at, and few of them more closely."""
    found = octets == octet
    whole = len(found) // 8 * 8
    words = np.flatnonzero(found[:whole].view(np.uint64))
    rows, columns = np.nonzero(found[:whole].reshape(-1, 8)[words])
    return np.concatenate([words[rows] * 8 + columns, np.flatnonzero(found[whole:]) + whole])


def _oversized(at: int, start: bytes, size: int) -> Oversized:
    return Oversized(at, start[:_KEPT_OF_OVERSIZED], size)
