"""Lines of ranges: whatever the blocks and the ranges are, each line comes once, at its offset."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from transforms.lines import lines_of_blocks

LIMIT = 12


def blocks_of(data: bytes, start: int, size: int) -> list[bytes]:
    return [data[at : at + size] for at in range(start, len(data), size)]


def by_ranges(data: bytes, range_size: int, block_size: int) -> list[tuple[int, bytes, int]]:
    found = []
    for start in range(0, max(len(data), 1), range_size):
        end = start + range_size if start + range_size < len(data) else None
        blocks = blocks_of(data, max(start - 1, 0), block_size)
        for lines in lines_of_blocks(blocks, start, end, LIMIT):
            found += [
                (offset, line, len(line))
                for offset, line in zip(lines.offsets.tolist(), lines.data, strict=True)
            ]
            found += [(one.offset, one.start[:LIMIT], one.size) for one in lines.oversized]
    return sorted(found)


def simply(data: bytes) -> list[tuple[int, bytes, int]]:
    found, at = [], 0
    for number, line in enumerate(data.split(b"\n")):
        shown = line[3:] if number == 0 and line.startswith(b"\xef\xbb\xbf") else line
        if len(shown) > LIMIT:
            found.append((at, shown[:LIMIT], len(line)))
        elif shown.strip():
            found.append((at, shown, len(shown)))
        at += len(line) + 1
    return found


ALPHABET = st.sampled_from([b"a", b"b", b"\n", b"\n", b"\r", b" ", b"aaaaaaaaaaa"])


@given(st.lists(ALPHABET, max_size=40).map(b"".join), st.integers(1, 50), st.integers(1, 30))
@example(b"a" * 40 + b"\nb\n", 5, 3)
@example(b"a\nb", 2, 1)
@example(b"\n", 1, 1)
def test_each_line_comes_once(data: bytes, range_size: int, block_size: int) -> None:
    given_lines = [(at, line[:LIMIT], size) for at, line, size in by_ranges(data, range_size, block_size)]
    assert [(at, line, size) for at, line, size in given_lines] == simply(data)


def test_a_byte_order_mark_is_no_text() -> None:
    (lines,) = lines_of_blocks([b"\xef\xbb\xbfab\ncd"], 0, 3, LIMIT)
    assert lines.data == [b"ab"]
    assert lines.offsets.tolist() == [0]


def test_of_an_oversized_line_little_is_held() -> None:
    blocks = [b"x" * 100_000] * 50 + [b"\nshort\n"]
    found = list(lines_of_blocks(iter(blocks), 0, None, 1000))
    oversized = [one for lines in found for one in lines.oversized]
    assert [(one.offset, one.size) for one in oversized] == [(0, 5_000_000)]
    assert len(oversized[0].start) <= 64 << 10
    assert [lines.data for lines in found if lines.data] == [[b"short"]]
