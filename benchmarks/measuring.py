"""Runs commands in turn and measures each with all of its descendants: wall, CPU, peak memory."""

from __future__ import annotations

import os
import statistics
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
_PAGE = os.sysconf("SC_PAGE_SIZE")
# Looking takes time from who is looked at.
_SAMPLE_SECONDS = 0.05


class Figures(NamedTuple):
    """One run of one command; seconds and MiB."""

    wall: float
    cpu: float
    peak_mib: float


class Contestant(NamedTuple):
    """A name, its command with a folder to write to, and what to do after its run in the first round."""

    name: str
    command: Callable[[Path], list[str]]
    after: Callable[[Path], None] = lambda _output: None


def in_turn(contestants: Sequence[Contestant], rounds: int) -> dict[str, list[Figures]]:
    """Every round runs every contestant once, A B A B: what else the machine does hits all alike."""
    figures: dict[str, list[Figures]] = {one.name: [] for one in contestants}
    for number in range(rounds):
        with tempfile.TemporaryDirectory(prefix="threadloom-benchmark-") as folder:
            for place, one in enumerate(contestants):
                output = Path(folder) / str(place)
                figures[one.name].append(measured(one.command(output)))
                if not number:
                    one.after(output)
    return figures


def measured(command: list[str]) -> Figures:
    """Runs a command to its end. CPU is that of the process and of all descendants it waited for."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with tempfile.TemporaryFile() as errors:
        started = time.monotonic()
        process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=errors)
        peak = _Peak(process.pid)
        _pid, status, usage = os.wait4(process.pid, 0)
        wall = time.monotonic() - started
        peak.stop()
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            errors.seek(0)
            text = errors.read().decode(errors="replace")[-2000:]
            raise SystemExit(f"{' '.join(command)} ended with {process.returncode}:\n{text}")
    return Figures(wall, usage.ru_utime + usage.ru_stime, peak.mib)


class _Peak:
    """Samples the resident memory of a process and its descendants."""

    def __init__(self, pid: int) -> None:
        self.mib = 0.0
        self._pid = pid
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join()

    def _sample(self) -> None:
        while not self._stopped.wait(_SAMPLE_SECONDS):
            self.mib = max(self.mib, _tree_bytes(self._pid) / (1 << 20))


def _tree_bytes(root: int) -> int:
    total, queue = 0, [root]
    while queue:
        pid = queue.pop()
        try:
            total += int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE
            for task in os.listdir(f"/proc/{pid}/task"):
                queue += map(int, Path(f"/proc/{pid}/task/{task}/children").read_text().split())
        except OSError:  # it ended in between
            continue
    return total


def table(figures: dict[str, list[Figures]], base: str, messages: int | None) -> str:
    """Markdown: each contestant's figures divided by the base's of the same round, then the medians."""
    speed = messages is not None
    heads = ["wall", "CPU", "peak memory", *(["messages/s per core"] if speed else [])]
    units = ["wall s", "CPU s", "peak MiB", *(["messages/s per core"] if speed else [])]
    lines = _header([f"divided by {base}: median (min-max)", *heads])
    for name, runs in figures.items():
        if name != base:
            pairs = zip(_rows(runs, messages), _rows(figures[base], messages), strict=True)
            ratios = [[own / other for own, other in zip(*pair, strict=True)] for pair in pairs]
            lines.append(_line(name, [_spread(column) for column in zip(*ratios, strict=True)]))
    lines += ["", *_header(["median", *units])]
    for name, runs in figures.items():
        columns = [statistics.median(column) for column in zip(*_rows(runs, messages), strict=True)]
        lines.append(
            _line(name, [*(f"{value:.2f}" for value in columns[:2]), *(f"{v:,.0f}" for v in columns[2:])])
        )
    return "\n".join(lines)


def _rows(runs: list[Figures], messages: int | None) -> list[list[float]]:
    return [[*run, *([] if messages is None else [messages / run.cpu])] for run in runs]


def _spread(values: Sequence[float]) -> str:
    return f"{statistics.median(values):.2f} ({min(values):.2f}-{max(values):.2f})"


def _header(names: list[str]) -> list[str]:
    return [_line(names[0], names[1:]), "|" + "---|" * len(names)]


def _line(name: str, cells: Sequence[str]) -> str:
    return f"| {name} | " + " | ".join(cells) + " |"
