"""A streaming job and what it writes: started, waited for, read back."""

from __future__ import annotations

import contextlib
import json
import random
import subprocess
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from product import ROOT, command, environment


def stamped(moment: float) -> str:
    """Epoch seconds as a Chat SDK date."""
    return datetime.fromtimestamp(moment, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class Talk:
    """People who talk: most threads fall silent, one never does; some messages are late, a few are broken."""

    def __init__(self, seed: int) -> None:
        self._rng = random.Random(seed)
        self.said: list[dict[str, Any] | bytes] = []

    def go_on(self, count: int) -> list[dict[str, Any] | bytes]:
        """The next records, said about now."""
        rng, now = self._rng, time.time()
        more: list[dict[str, Any] | bytes] = []
        for _ in range(count):
            late = rng.choice((0, 0, 0, 0, 0, 0, 0, 0, 5, 20))
            moment = now - rng.random() - late
            thread = rng.choice(("always", f"burst-{int(moment) // 15}-{rng.randrange(20)}"))
            number = len(self.said) + len(more)
            more.append(
                {
                    "_type": "chat:Message",
                    "id": f"m{number}",
                    "threadId": thread,
                    "text": f"message {number} " + "x" * rng.randrange(80),
                    "author": {"userName": "sam", "isMe": rng.random() < 0.4},
                    "metadata": {"dateSent": stamped(moment)},
                    "attachments": [],
                }
            )
        if rng.random() < 0.3:
            more.append(b'{"_type": "chat:Message", "threadId": "broken", ')
        self.said += more
        return more

    @property
    def messages(self) -> int:
        return sum(isinstance(one, dict) for one in self.said)


class Stream:
    """One streaming job, as its user starts it."""

    def __init__(self, output: Path, arguments: list[str]) -> None:
        self.output = output
        self.log = output.parent / f"{output.name}.log"
        given = ["--streaming", "--output", str(output), "--dataset", "both", *arguments]
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(command("run", *given), cwd=ROOT, env=environment(), stderr=log)

    def wait(self, ready: Callable[[], bool], what: str, seconds: int = 150) -> None:
        deadline = time.monotonic() + seconds
        while not ready():
            assert self.process.poll() is None, self.log.read_text()
            assert time.monotonic() < deadline, f"{what} took too long:\n{self.log.read_text()[-3000:]}"
            time.sleep(0.3)

    def wait_for(self, records: int, messages: int) -> None:
        """Until so many records are in the log, and so many messages in the latest rows of each dataset."""

        def has_all() -> bool:
            if logged_records(self.output) < records:
                return False
            return all(
                sum(row["message_count"] for row in latest_rows(self.output, dataset)) >= messages
                for dataset in ("training", "replay")
            )

        self.wait(has_all, f"{records} records")

    def stop(self) -> None:
        self.process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(timeout=30)
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()


def commits(output: Path) -> list[dict[str, Any]]:
    """The manifests of the published commits, in order."""
    return [json.loads(path.read_text()) for path in sorted((output / "_commits").glob("*.json"))]


def logged_records(output: Path) -> int:
    """How many records the published commits have taken."""
    return sum(source["records"] for commit in commits(output) for source in commit["sources"])


def committed_rows(output: Path, dataset: str) -> list[dict[str, Any]]:
    """All rows of a dataset, of the published commits alone."""
    files = [
        output / file["path"]
        for commit in commits(output)
        for file in commit["files"]
        if file["path"].startswith(f"{dataset}/")
    ]
    return [row for path in files for row in pq.read_table(path).to_pylist()]


def latest_rows(output: Path, dataset: str) -> list[dict[str, Any]]:
    """The latest version of every session that is not empty."""
    latest: dict[tuple[str, int], dict[str, Any]] = {}
    for row in committed_rows(output, dataset):
        key = row["thread_id"], row["session"]
        assert key not in latest or latest[key]["version"] != row["version"], f"{key} twice"
        if key not in latest or latest[key]["version"] < row["version"]:
            latest[key] = row
    return [row for row in latest.values() if row["message_count"]]


def drop(folder: Path, name: str, records: list[dict[str, Any] | bytes]) -> None:
    """A file that appears at once."""
    lines = [one if isinstance(one, bytes) else json.dumps(one).encode() for one in records]
    hidden = folder / f".{name}"
    hidden.write_bytes(b"\n".join(lines) + b"\n")
    hidden.rename(folder / name)
