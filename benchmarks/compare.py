"""The job beside its peers: each in turn, several rounds, in one run; prints ratios.

    python benchmarks/compare.py --messages 300000 --rounds 3

Every round runs every peer once (A B, A B, …), so that what else the machine does hits all alike.
Wall and CPU seconds and peak memory are of the whole process tree.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import NamedTuple

import archive
import pyarrow.compute as pc
import pyarrow.parquet as pq

HERE = Path(__file__).parent
JOB, NAIVE = "threadloom", "naive Beam job"


class Figures(NamedTuple):
    wall: float
    cpu: float
    peak_mib: float


def measured(command: list[str]) -> Figures:
    """Runs a command to its end and measures it with its children."""
    started = time.monotonic()
    before = os.times()
    environment = {**os.environ, "PYTHONPATH": str(HERE.parent)}
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    peak = _Peak(process.pid)
    code = process.wait()
    wall = time.monotonic() - started
    peak.stop()
    after = os.times()
    if code:
        raise SystemExit(f"{command} ended with {code}")
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return Figures(wall, cpu, peak.mib)


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
        while not self._stopped.wait(0.05):
            self.mib = max(self.mib, _tree_kib(self._pid) / 1024)


def _tree_kib(root: int) -> int:
    parents: dict[int, int] = {}
    resident: dict[int, int] = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                fields = Path(f"/proc/{entry}/stat").read_text().rsplit(")", 1)[1].split()
            except OSError:
                continue
            parents[int(entry)] = int(fields[1])
            resident[int(entry)] = int(fields[21]) * 4
    total, queue = 0, [root]
    while queue:
        pid = queue.pop()
        total += resident.get(pid, 0)
        queue += [child for child, parent in parents.items() if parent == pid]
    return total


def commands(data: Path, folder: Path) -> dict[str, list[str]]:
    python = sys.executable
    return {
        JOB: [
            python,
            "-m",
            "pipeline",
            "run",
            "--quiet",
            "--input",
            str(data),
            "--output",
            str(folder / "job"),
        ],
        NAIVE: [
            python,
            str(HERE / "peers" / "naive_beam.py"),
            "--input",
            str(data),
            "--output",
            str(folder / "naive"),
        ],
    }


def threads_and_messages(folder: Path) -> tuple[int, int]:
    """Rows and messages in a folder of Parquet files: the peers must give the same."""
    table = pq.read_table(folder, columns=["thread_id", "message_ids"])
    return table.num_rows, pc.sum(pc.list_value_length(table["message_ids"])).as_py()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=300_000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    data = HERE / "data" / f"chat-{options.messages}.jsonl"
    if not data.exists():
        archive.write(data, archive.chat_records(options.messages, seed=7))
    figures: dict[str, list[Figures]] = {JOB: [], NAIVE: []}
    for number in range(options.rounds):
        folder = Path(tempfile.mkdtemp(prefix="threadloom-benchmark-"))
        for name, command in commands(data, folder).items():
            figures[name].append(measured(command))
        if not number:
            job, naive = (
                threads_and_messages(folder / "job" / "training"),
                threads_and_messages(folder / "naive"),
            )
            print(f"rows and messages: {JOB} {job}, {NAIVE} {naive}")
        shutil.rmtree(folder)
    print("| | wall s (min-median-max) | CPU s | peak MiB |\n|---|---|---|---|")
    for name, rounds in figures.items():
        cells = [
            "-".join(f"{value:.1f}" for value in (min(column), statistics.median(column), max(column)))
            for column in zip(*rounds, strict=True)
        ]
        print(f"| {name} | " + " | ".join(cells) + " |")
    for part, label in ((0, "wall"), (1, "CPU"), (2, "peak memory")):
        ratios = [naive[part] / job[part] for job, naive in zip(figures[JOB], figures[NAIVE], strict=True)]
        print(f"naive / threadloom, {label}: " + ", ".join(f"{ratio:.2f}" for ratio in ratios))


if __name__ == "__main__":
    main()
