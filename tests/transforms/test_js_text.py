from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transforms.js_text import (
    cut,
    is_blank,
    is_truthy,
    scrubbed,
    single_spaced,
    trimmed,
    without_lone_surrogates,
)

ANY_TEXT = st.text(st.characters(), max_size=30)


@pytest.mark.parametrize("space", ["\ufeff", "\u00a0", "\u2028", "\u3000", "\v", "\f"])
def test_what_javascript_trims(space: str) -> None:
    assert trimmed(f"{space}a{space}") == "a"
    assert is_blank(space)


@pytest.mark.parametrize("kept", ["\u0085", "\u001c", "\u200b", "\u180e", "\0"])
def test_what_javascript_keeps_and_python_or_unicode_might_not(kept: str) -> None:
    assert trimmed(kept) == kept
    assert not is_blank(kept)
    assert single_spaced(f"a{kept}b") == f"a{kept}b"


@pytest.mark.parametrize(
    ("text", "units", "expected"),
    [("abc", 2, "ab"), ("abc", 3, "abc"), ("a😀b", 2, "a"), ("a😀b", 3, "a😀"), ("éé", 1, "é"), ("", 0, "")],
)
def test_a_cut_counts_utf16_units_and_splits_no_pair(text: str, units: int, expected: str) -> None:
    assert cut(text, units) == expected


@given(ANY_TEXT, st.integers(0, 40))
def test_a_cut_is_the_longest_start_that_fits(text: str, units: int) -> None:
    text = without_lone_surrogates(text)
    given_start = cut(text, units)
    assert text.startswith(given_start)
    assert len(given_start.encode("utf-16-le")) // 2 <= units
    longer = text[: len(given_start) + 1]
    assert longer == given_start or len(longer.encode("utf-16-le")) // 2 > units


@given(ANY_TEXT)
def test_no_lone_surrogate_is_left(text: str) -> None:
    clean = without_lone_surrogates(text)
    clean.encode("utf-8")
    assert len(clean) <= len(text)
    assert without_lone_surrogates(clean) == clean


def test_surrogates_are_joined_or_replaced() -> None:
    assert without_lone_surrogates("\ud83d\ude00 \ud83d \ude00") == "😀 \ufffd \ufffd"
    assert scrubbed({"\ud83d": ["\ude00", {"a": "\ud83d\ude00"}]}) == {"\ufffd": ["\ufffd", {"a": "😀"}]}


@pytest.mark.parametrize(
    ("value", "truth"),
    [(True, True), (False, False), ("false", True), ("", False), (0, False), (0.0, False), (None, False),
     ([], True), ({}, True), (1, True)],
)  # fmt: skip
def test_truth(value: object, truth: bool) -> None:
    assert is_truthy(value) is truth
