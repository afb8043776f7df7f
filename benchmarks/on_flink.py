"""Peak memory of each worker on a Flink cluster as the archive grows, and with a hot thread.

    python benchmarks/on_flink.py --messages 300000 1200000
    python benchmarks/on_flink.py --messages 1200000 --hot

Starts a JobManager, two TaskManagers and a job
server on loopback (tests/helpers/flink.py) and samples the resident
memory of every TaskManager and every SDK worker. With --hot five of six messages are in one thread.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))
sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "helpers"))

import archive
from flink import Flink, flink
from product import command, environment, manifest

HERE = Path(__file__).parent
PART = 300_000
HOT_THREAD = "slack:C0:hot"


def in_parts(messages: int) -> Iterator[dict[str, Any]]:
    """Records in parts of 300,000 with threads of their own: a larger archive has more, none larger."""
    for part, start in enumerate(range(0, messages, PART)):
        for record in archive.chat_records(min(PART, messages - start), seed=7 + part):
            record["threadId"] += f"-{part}"
            yield record


def with_a_hot_thread(records: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The same records, five of six of them in one thread."""
    for number, record in enumerate(records):
        if number % 6:
            record["threadId"] = HOT_THREAD
        yield record


def data(messages: int, *, hot: bool) -> Path:
    """The archive, made where it is missing."""
    path = HERE / "data" / f"parts-{messages}{'-hot' if hot else ''}.jsonl"
    if not path.exists():
        records = in_parts(messages)
        archive.write(path, with_a_hot_thread(records) if hot else records)
    return path


class Peaks:
    """The most resident memory that each kind of process had, in MiB; the largest of its kind counts."""

    def __init__(self, cluster: Flink) -> None:
        self.mib = {"TaskManager": 0.0, "SDK worker": 0.0}
        self._cluster = cluster
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._sample)

    def __enter__(self) -> Peaks:
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._ended.set()
        self._thread.join()

    def _sample(self) -> None:
        managers = [one.pid for name, one in self._cluster.processes.items() if "taskmanager" in name]
        while not self._ended.wait(0.2):
            kinds = {"TaskManager": managers, "SDK worker": self._cluster.sdk_workers()}
            for kind, pids in kinds.items():
                self.mib[kind] = max([self.mib[kind], *map(resident_mib, pids)])


def resident_mib(pid: int) -> float:
    """Resident memory of a process; none where it has ended."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096 / (1 << 20)
    except OSError:
        return 0.0


def row(path: Path, folder: Path) -> str:
    """Runs the job over that archive on a cluster of its own; a line of the table."""
    with flink(folder / "flink", workers="process", task_managers=2) as cluster, Peaks(cluster) as peaks:
        started = time.monotonic()
        arguments = ["--input", str(path), "--output", str(folder / "out"), *cluster.options()]
        subprocess.run(command("run", *arguments), env=environment(), check=True, stderr=sys.stderr)
        wall = time.monotonic() - started
    made = manifest(folder / "out")
    shards = sum(file["path"].startswith("training/") for file in made["files"])
    rows = made["datasets"]["training"]["rows"]
    memory = f"{peaks.mib['TaskManager']:.0f} | {peaks.mib['SDK worker']:.0f}"
    return f"| {path.name} | {shards} | {rows} | {wall:.0f} | {memory} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, nargs="+", default=[300_000, 1_200_000])
    parser.add_argument("--hot", action="store_true")
    options = parser.parse_args()
    print(
        "| archive | shards | rows | wall s | TaskManager MiB | SDK worker MiB |\n|---|---|---|---|---|---|"
    )
    for messages in options.messages:
        path = data(messages, hot=options.hot)
        folder = Path(tempfile.mkdtemp(prefix="threadloom-flink-"))
        try:
            print(row(path, folder), flush=True)
        finally:
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
