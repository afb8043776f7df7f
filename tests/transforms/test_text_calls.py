"""The dialects of text calls beyond the cases: limits, hostile texts, linear time."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transforms.text_calls import PAYLOAD_LIMIT, text_calls

ALLOWED = frozenset({"a", "b", "get_weather"})
PART = st.sampled_from(
    ["[tool:a]", "{", "}", '"', "\\", "[a]\n", "[/a]", "<function=a>", "<parameter=x>", "</parameter>",
     "</function>", "<|channel|>", "commentary to=a", " code", "<|call|>", "1", " ", "\n", "😀"]
)  # fmt: skip


@pytest.mark.parametrize(
    ("text", "calls"),
    [
        ('[tool:a]{"x":1}', [("a", {"x": 1})]),
        ('[tool:a]{"x":"}"} [tool:b]{}', [("a", {"x": "}"}), ("b", {})]),
        ("<function=a>\n<parameter=x>\n1\n</parameter>\n</function>", [("a", {"x": "1"})]),
        ('<|channel|>commentary to=functions.b code<|message|>{"y":[{}]}<|call|>', [("b", {"y": [{}]})]),
        ('[tool:c]{"x":1}', None),
        ('[tool:a]{"x":1} and so on', None),
        ("", None),
        ("  ", None),
        ('[tool:a]{"x":1', None),
    ],
)
def test_texts(text: str, calls: list[tuple[str, object]] | None) -> None:
    found = text_calls(text, ALLOWED)
    assert (found and [tuple(call) for call in found]) == calls


def test_no_allowed_tools_no_calls() -> None:
    assert text_calls("[tool:a]{}", frozenset()) is None


@given(st.lists(PART, max_size=15).map("".join))
def test_any_text_gives_calls_of_allowed_tools_or_none(text: str) -> None:
    for call in text_calls(text, ALLOWED) or []:
        assert call.name in ALLOWED
        assert isinstance(call.args, dict)


@pytest.mark.parametrize(
    "text",
    [
        "[tool:a]{" + '"' + '\\"' * 400_000,
        "[tool:a]{" + "{" * 400_000,
        "[tool:a]" + "<parameter=x>" * 100_000,
        "<function=a>" + "<parameter=x>1</parameter>" * 100_000,
        "[tool:a]{}" * 100_000 + "x",
        " " * 500_000,
    ],
)
def test_hostile_texts_take_no_time_to_speak_of(text: str) -> None:
    started = time.process_time()
    text_calls(text, ALLOWED)
    # A quadratic scan of half a megabyte takes minutes; this bound tells only that one from a linear one.
    assert time.process_time() - started < 20


def test_the_payload_limit_is_in_bytes() -> None:
    room = PAYLOAD_LIMIT - len('{"x":""}')
    assert text_calls('[tool:a]{"x":"' + "y" * room + '"}', ALLOWED)
    assert text_calls('[tool:a]{"x":"' + "é" * (room // 2) + '"}', ALLOWED)
    assert not text_calls('[tool:a]{"x":"' + "y" * (room + 1) + '"}', ALLOWED)
    assert not text_calls('[tool:a]{"x":"' + "é" * (room // 2 + 1) + '"}', ALLOWED)
