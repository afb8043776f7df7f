"""Which files a look takes: those that two looks found the same, each once."""

from __future__ import annotations

from typing import Any

from pipeline.inputs import FileFormat
from pipeline.streaming.watch import newly_settled


def taken(seen: dict[str, Any], **found: tuple[int, float]) -> list[str]:
    return [
        file.path for file in newly_settled(seen, {name.replace("_", "."): at for name, at in found.items()})
    ]


def test_a_file_is_taken_at_the_second_look() -> None:
    seen: dict[str, Any] = {}
    assert taken(seen, a_jsonl=(10, 1.0)) == []
    assert taken(seen, a_jsonl=(10, 1.0), b_jsonl=(5, 1.0)) == ["a.jsonl"]
    assert taken(seen, a_jsonl=(10, 1.0), b_jsonl=(5, 1.0)) == ["b.jsonl"]
    assert taken(seen, a_jsonl=(10, 1.0), b_jsonl=(5, 1.0)) == []


def test_a_file_that_is_still_written_is_waited_for() -> None:
    seen: dict[str, Any] = {}
    for size in (10, 20, 30):
        assert taken(seen, a_jsonl=(size, float(size))) == []
    # Written over without growing: its time tells.
    assert taken(seen, a_jsonl=(30, 31.0)) == []
    assert taken(seen, a_jsonl=(30, 31.0)) == ["a.jsonl"]


def test_a_file_is_not_read_again_when_it_grows() -> None:
    seen: dict[str, Any] = {}
    for _ in range(2):
        taken(seen, a_jsonl=(10, 1.0))
    assert taken(seen, a_jsonl=(20, 2.0)) == []
    assert taken(seen, a_jsonl=(20, 2.0)) == []


def test_a_name_without_a_format_is_left_alone() -> None:
    seen: dict[str, Any] = {}
    for _ in range(3):
        assert taken(seen, a_tmp=(10, 1.0)) == []


def test_what_is_known_of_a_file() -> None:
    seen: dict[str, Any] = {}
    newly_settled(seen, {"x/a.jsonl.gz": (10, 1.0)})
    (file,) = newly_settled(seen, {"x/a.jsonl.gz": (10, 1.0)})
    assert (file.path, file.size, file.format) == ("x/a.jsonl.gz", 10, FileFormat.JSONL_GZIP)
