"""A command starts itself again once, with its settings; a program that calls us does not start twice."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from product import environment

from pipeline import allocators
from pipeline.allocators import FAST, start_again_with


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[tuple[list[str], dict[str, str]]]:
    calls: list[tuple[list[str], dict[str, str]]] = []
    monkeypatch.setattr(os, "execve", lambda _path, command, variables: calls.append((command, variables)))
    monkeypatch.setattr(sys, "platform", "linux")
    for name in FAST:
        monkeypatch.delenv(name, raising=False)
    return calls


@pytest.mark.parametrize(
    ("program", "starts"),
    [
        ("/v/bin/threadloom", True),
        ("/v/pipeline/__main__.py", True),
        ("-c", False),
        ("-", False),
        ("w.py", False),
    ],
)
def test_only_our_own_commands_start_again(
    program: str,
    starts: bool,
    started: list[tuple[list[str], dict[str, str]]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "argv", [program, "run"])
    monkeypatch.setattr(sys, "orig_argv", ["python", "-O", program, "run"])
    start_again_with(FAST)
    assert [command for command, _variables in started] == (
        [[sys.executable, "-O", program, "run"]] if starts else []
    )
    for _command, variables in started:
        assert FAST.items() <= variables.items()


def test_what_the_user_has_set_stays(
    started: list[tuple[list[str], dict[str, str]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["threadloom", "run"])
    monkeypatch.setenv("GLIBC_TUNABLES", "mine")
    start_again_with(FAST)
    ((_command, variables),) = started
    assert variables["GLIBC_TUNABLES"] == "mine"
    for name, value in FAST.items():
        monkeypatch.setenv(name, value)
    start_again_with(FAST)
    assert len(started) == 1


def test_where_it_cannot_be_done_the_command_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["threadloom", "run"])
    monkeypatch.setattr(sys, "executable", "")
    monkeypatch.delenv("GLIBC_TUNABLES", raising=False)
    start_again_with(FAST)
    assert allocators.FAST == FAST


def test_a_program_from_stdin_runs_once(tmp_path: Path) -> None:
    program = "print('once', flush=True)\nfrom pipeline.__main__ import command\nraise SystemExit(command())"
    done = subprocess.run(
        [sys.executable, "-", "run", "--input", "none", "--output", str(tmp_path / "out")],
        input=program,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "once\n"), done.stderr
