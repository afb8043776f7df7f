"""A job server that is not there is said so at once."""

from __future__ import annotations

import socket
import time
from pathlib import Path

import pytest
from product import chat, here, write_lines


@pytest.fixture
def closed() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"localhost:{probe.getsockname()[1]}"


@pytest.mark.parametrize("what", [["--input", "a.jsonl"], ["--streaming", "--watch", "a.jsonl"]])
def test_nobody_answers(
    tmp_path: Path, what: list[str], closed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_lines(tmp_path / "a.jsonl", [chat(1)])
    monkeypatch.chdir(tmp_path)
    started = time.monotonic()
    runner = ["--runner=PortableRunner", f"--job_endpoint={closed}", "--environment_type=LOOPBACK"]
    code, said = here("run", *what, "--output", "out", *runner)
    assert code == 1
    assert f"nothing answers at --job_endpoint {closed}" in said
    assert time.monotonic() - started < 30
    assert not (tmp_path / "out").exists()


def test_an_endpoint_without_a_port(tmp_path: Path) -> None:
    archive = write_lines(tmp_path / "a.jsonl", [chat(1)])
    code, said = here(
        "run",
        "--input",
        archive,
        "--output",
        tmp_path / "out",
        "--runner=PortableRunner",
        "--job_endpoint=flink",
    )
    assert code == 1
    assert "HOST:PORT" in said
