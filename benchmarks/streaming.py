"""The streaming job beside the batch job on one Flink cluster: rates, and memory while sessions come and go.

    python benchmarks/streaming.py --messages 600000 --minutes 20

First the batch job reads an archive; then the streaming job reads the same files, which wait for it; then it
follows files that appear every second, for so many minutes, with threads that begin and fall silent. One
JobManager, one TaskManager and one SDK worker on loopback (tests/helpers/flink.py). Rates are messages for
each second of CPU that the TaskManager and the SDK worker took together.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parent.parent))
sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "helpers"))

import archive
from flink import Flink, flink
from on_flink import resident_mib
from product import command, environment
from streaming_job import Stream, commits, logged_records, stamped

GAP_SECONDS, LATENESS_SECONDS, COMMIT_SECONDS = 30, 60, 30
FILES = 40
HOW = [
    f"--session_gap={GAP_SECONDS}s",
    f"--allowed_lateness={LATENESS_SECONDS}s",
    f"--commit_every={COMMIT_SECONDS}s",
    "--poll_every=1s",
    "@runner_configs/flink_streaming.args",
]
_TICKS = os.sysconf("SC_CLK_TCK")
_THREAD, _DATE = "@thread@", "@date@"


class Talk:
    """Messages like those of the benchmark's archives, with threads and dates of one's choice."""

    def __init__(self, count: int) -> None:
        self._texts = [self._template(record) for record in archive.chat_records(count, seed=7)]
        self._rng = random.Random(7)
        self._said = 0

    @staticmethod
    def _template(record: dict[str, Any]) -> str:
        record["threadId"] = _THREAD
        record["metadata"]["dateSent"] = _DATE
        return json.dumps(record)

    def write(self, path: Path, count: int, moment: float, threads: int) -> None:
        """So many messages of the second before that moment; a file that appears at once."""
        lines = []
        for _ in range(count):
            text = self._texts[self._said % len(self._texts)]
            sent = stamped(moment - self._rng.random())
            # A thread talks for a minute, then there are others.
            thread = f"{int(moment) // 60}-{self._rng.randrange(threads)}"
            lines.append(text.replace(_THREAD, thread).replace(_DATE, sent))
            self._said += 1
        hidden = path.with_name(f".{path.name}")
        hidden.write_text("\n".join(lines) + "\n")
        hidden.rename(path)


class Usage:
    """CPU seconds so far, and resident MiB, of the TaskManager and its SDK workers, ended ones included."""

    def __init__(self, cluster: Flink) -> None:
        self._cluster = cluster
        self._cpu: dict[int, float] = {}

    def sample(self) -> tuple[float, float, float]:
        """CPU seconds of all, MiB of the TaskManager, MiB of the SDK workers."""
        manager = self._cluster.processes["taskmanager0"].pid
        workers = self._cluster.sdk_workers()
        for pid in (manager, *workers):
            with contextlib.suppress(OSError):
                fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
                self._cpu[pid] = (int(fields[11]) + int(fields[12])) / _TICKS
        return sum(self._cpu.values()), resident_mib(manager), sum(map(resident_mib, workers))


class Rate(NamedTuple):
    wall: float
    cpu: float
    messages: int

    def line(self, name: str) -> str:
        return (
            f"| {name} | {self.messages:,} | {self.wall:.0f} | {self.cpu:.0f} | "
            f"{self.messages / self.wall:,.0f} | {self.messages / self.cpu:,.0f} |"
        )


def batch(cluster: Flink, folder: Path, pattern: str, messages: int) -> Rate:
    """The batch job over the files, its start included."""
    usage = Usage(cluster)
    before, _manager, _worker = usage.sample()
    started = time.monotonic()
    given = ["--input", pattern, "--output", str(folder / "batch"), "--dataset", "both", "--quiet"]
    run = subprocess.Popen(
        command("run", *given, *cluster.options(), "--parallelism=1"), env=environment(), stderr=sys.stderr
    )
    while run.poll() is None:
        usage.sample()
        time.sleep(0.1)
    assert run.returncode == 0
    return Rate(time.monotonic() - started, usage.sample()[0] - before, messages)


def started(cluster: Flink, folder: Path, pattern: str) -> Stream:
    where = f"--state_backend_storage_path=file://{folder}/checkpoints"
    given = [*HOW, *cluster.options(), "--max_bundle_size=5000", "--parallelism=1", where]
    return Stream(folder / "out", [*given, "--watch", pattern])


def backlog(cluster: Flink, stream: Stream, messages: int) -> Rate:
    """The files that wait, from the start of the job to the commit that has the last message."""
    usage = Usage(cluster)
    before, _manager, _worker = usage.sample()
    begun = time.monotonic()

    def is_done() -> bool:
        usage.sample()
        return logged_records(stream.output) >= messages

    stream.wait(is_done, "the backlog", seconds=900)
    return Rate(time.monotonic() - begun, usage.sample()[0] - before, messages)


def steady(
    cluster: Flink, stream: Stream, folder: Path, talk: Talk, minutes: float, rate: int
) -> Iterator[str]:
    """A line a minute: memory, checkpoint, rate."""
    usage = Usage(cluster)
    logged, (cpu, _manager, _worker) = logged_records(stream.output), usage.sample()
    begun = time.time()
    for second in range(int(minutes * 60)):
        talk.write(folder / f"live{second:05d}.jsonl", rate, time.time(), threads=rate * 2)
        if second % 60 == 59:
            now_logged, (now_cpu, manager, worker) = logged_records(stream.output), usage.sample()
            per_second = (now_logged - logged) / 60
            yield (
                f"| {(second + 1) // 60} | {manager:.0f} | {worker:.0f} | {checkpoint_kib(cluster):,.0f} | "
                f"{per_second:,.0f} | {(now_logged - logged) / max(now_cpu - cpu, 0.01):,.0f} | "
                f"{len(commits(stream.output))} |"
            )
            logged, cpu = now_logged, now_cpu
        time.sleep(max(0.0, begun + second + 1 - time.time()))
        assert stream.process.poll() is None, stream.log.read_text()[-2000:]


def checkpoint_kib(cluster: Flink) -> float:
    """The size of the last checkpoint of the job that runs."""
    for job in cluster.overview("jobs/overview")["jobs"]:
        if job["state"] == "RUNNING":
            latest = cluster.overview(f"jobs/{job['jid']}/checkpoints")["latest"]["completed"]
            return float(latest["state_size"]) / 1024 if latest else 0.0
    return 0.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=600_000)
    parser.add_argument("--minutes", type=float, default=20)
    parser.add_argument("--rate", type=int, default=1000, help="messages a second of the steady part")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="threadloom-streaming-"))
    talk = Talk(50_000)
    files = folder / "in"
    files.mkdir()
    each = options.messages // FILES
    for number in range(FILES):
        talk.write(files / f"wait{number:03d}.jsonl", each, time.time() - FILES + number, threads=each // 20)
    pattern = str(files / "*.jsonl")
    try:
        with flink(folder / "flink", workers="process", task_managers=1) as cluster:
            print("| job | messages | wall s | CPU s | messages/s | messages/s of CPU |")
            print("|---|---|---|---|---|---|")
            print(batch(cluster, folder, pattern, each * FILES).line("batch"), flush=True)
            stream = started(cluster, folder, pattern)
            try:
                print(backlog(cluster, stream, each * FILES).line("streaming, what waits"), flush=True)
                print("\n| minute | TaskManager MiB | SDK worker MiB | checkpoint KiB ", end="")
                print("| messages/s | messages/s of CPU | commits |")
                print("|---|---|---|---|---|---|---|")
                for line in steady(cluster, stream, files, talk, options.minutes, options.rate):
                    print(line, flush=True)
            finally:
                stream.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
