"""The command itself, in a process of its own, and its output read back."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from pipeline.cli import main

ROOT = Path(__file__).parent.parent.parent
ARCHIVES = ROOT / "tests" / "archives"
FIVE = (
    "chatsdk-irc-ubuntu/serialized.jsonl",
    "chatsdk-slack-export-viewer/serialized.jsonl",
    "chatsdk-vercel-chat-recorded/serialized.jsonl",
    "agui-messages/*.jsonl",
    "agui-tau-bench/messages.jsonl",
)


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "pipeline", *arguments]


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT)}


def threadloom(*arguments: object, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Runs the command to its end."""
    return subprocess.run(
        command(*map(str, arguments)),
        capture_output=True,
        text=True,
        env=environment(),
        cwd=cwd or ROOT,
        timeout=600,
        check=False,
    )


def here(*arguments: object) -> tuple[int, str]:
    """Runs the command in this process, which spares Beam's import; gives exit code and stderr."""
    said = io.StringIO()
    with contextlib.redirect_stderr(said):
        code = main([*map(str, arguments)])
    return code, said.getvalue()


def run(output: Path, *arguments: object, code: int = 0) -> dict[str, Any]:
    """`threadloom run` into that folder, in this process; gives the manifest."""
    given, said = here("run", "--output", output, *arguments)
    assert given == code, said
    return manifest(output)


def manifest(output: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((output / "manifest.json").read_text())
    return content


def rows(output: Path, dataset: str) -> list[dict[str, Any]]:
    """All rows of a dataset, messages that are JSON decoded."""
    read: list[dict[str, Any]] = []
    for path in sorted((output / dataset).glob("*.parquet")):
        read += pq.read_table(path).to_pylist()
    for row in read:
        if "messages" in row:
            row["messages"] = [json.loads(one) if isinstance(one, str) else one for one in row["messages"]]
    return read


def rejects(output: Path) -> list[dict[str, Any]]:
    return rows(output, "rejected")


def hashes(output: Path) -> dict[str, str]:
    """SHA-256 of every data file, by its path in the output."""
    return {
        str(path.relative_to(output)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(output.rglob("*.parquet"))
    }


def refused(output: Path, *arguments: object, code: int) -> str:
    """A run that must end with that code, one line, and nothing that could be taken for a result."""
    given, said = here("run", "--output", output, *arguments)
    assert given == code, said
    errors = [line for line in said.splitlines() if line.startswith("threadloom: error:")]
    assert len(errors) == 1, said
    assert "Traceback" not in said
    return errors[0]


def write_lines(path: Path, records: Iterable[Any]) -> Path:
    """Records as JSON lines; bytes are written as they are."""
    with open(path, "wb") as lines:
        for record in records:
            lines.write(record if isinstance(record, bytes) else json.dumps(record).encode())
            lines.write(b"\n")
    return path


def chat(number: int, text: str = "hello", thread: str = "t1", **fields: Any) -> dict[str, Any]:
    """A Chat SDK record."""
    return {
        "_type": "chat:Message",
        "id": f"m{number}",
        "threadId": thread,
        "text": text,
        "author": {"userId": "U1", "userName": "sam", "fullName": "Sam", "isBot": False, "isMe": False},
        "metadata": {"dateSent": f"2024-01-15T10:{number // 60 % 60:02d}:{number % 60:02d}.000Z"},
        "attachments": [],
        **fields,
    }
