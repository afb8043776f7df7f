"""The estimate before a run starts, and the line that says what to do."""

from __future__ import annotations

import pytest
from product import chat, refused, run, write_lines

from pipeline.inputs import FileFormat, InputFile
from pipeline.memory import available_bytes, check_memory, estimated_bytes
from schemas.errors import UsageError

GIB = 1 << 30


def file(size: int, kind: FileFormat = FileFormat.JSONL) -> InputFile:
    return InputFile("a", size, kind)


def test_compressed_files_count_for_what_they_hold() -> None:
    plain, packed = estimated_bytes([file(GIB)]), estimated_bytes([file(GIB, FileFormat.JSONL_GZIP)])
    assert packed > 3 * plain
    assert estimated_bytes([file(GIB), file(GIB)]) > 1.9 * plain


def test_what_fits_and_what_does_not() -> None:
    check_memory([file(GIB)], 24 * GIB)
    check_memory([file(1000 * GIB)], None)
    with pytest.raises(UsageError, match=r"flink_cluster\.args.*--in_memory_anyway"):
        check_memory([file(8 * GIB)], 24 * GIB)


def test_this_machine_says_what_it_has() -> None:
    assert available_bytes() is None or available_bytes() > 1 << 20  # type: ignore[operator]


def test_the_command_stops_before_it_starts(tmp_path, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    archive = write_lines(tmp_path / "a.jsonl", [chat(1)])
    monkeypatch.setattr("pipeline.run.available_bytes", lambda: 100 << 20)
    assert "GiB" in refused(tmp_path / "out", "--input", archive, code=2)
    assert run(tmp_path / "out", "--input", archive, "--in_memory_anyway")["read"]["records"] == 1
