"""Makes the archives that the benchmarks read: seeded, with skewed thread sizes.

    python benchmarks/archive.py --messages 300000 benchmarks/data/chat-300000.jsonl
    python benchmarks/archive.py --messages 300000 --agui benchmarks/data/agui-300000.jsonl

Texts of about 200 characters, about 475 bytes of JSON a message, 47,000 threads for a million
messages with a heavy tail, 5 % with a link, 3 % with an attachment. With --agui the same as AG-UI
records, a third of the assistant turns with a tool call and its result.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Iterator
from datetime import UTC
from pathlib import Path
from typing import Any

WORDS = [
    "the",
    "deploy",
    "pipeline",
    "failed",
    "again",
    "because",
    "cache",
    "key",
    "changed",
    "and",
    "nobody",
    "noticed",
    "until",
    "this",
    "morning",
    "please",
    "check",
    "whether",
    "rollback",
    "finished",
    "before",
    "we",
    "restart",
    "workers",
    "über",
    "naïve",
    "café",
    "данные",
    "数据",
    "です",
    "ok",
    "thanks",
    "maybe",
    "later",
    "retry",
    "queue",
    "shard",
    "schema",
    "index",
    "latency",
    "budget",
]
START_MS = 1_700_000_000_000


def thread_of(rng: random.Random, threads: int) -> int:
    """A thread's number: Pareto, so that a few threads hold many messages."""
    return (
        min(int(rng.paretovariate(0.6)) - 1, threads - 1) if rng.random() < 0.3 else (rng.randrange(threads))
    )


def text(rng: random.Random) -> str:
    """About 200 characters."""
    words = [rng.choice(WORDS) for _ in range(rng.randint(15, 45))]
    return " ".join(words)


def iso(ms: int) -> str:
    from datetime import datetime

    moment = datetime.fromtimestamp(ms / 1000, UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{ms % 1000:03d}Z"


def chat_records(messages: int, seed: int) -> Iterator[dict[str, Any]]:
    """Chat SDK records."""
    rng = random.Random(seed)
    threads = max(1, messages * 47 // 1000)
    for number in range(messages):
        thread = thread_of(rng, threads)
        mine = rng.random() < 0.4
        record: dict[str, Any] = {
            "_type": "chat:Message",
            "id": f"m{number}",
            "threadId": f"slack:C{thread % 97}:{1_700_000_000 + thread}.000100",
            "text": text(rng),
            "author": {
                "userId": "B1" if mine else f"U{rng.randrange(500)}",
                "userName": "bot" if mine else f"user{rng.randrange(500)}",
                "fullName": "Bot" if mine else "Some User",
                "isBot": mine,
                "isMe": mine,
            },
            "metadata": {"dateSent": iso(START_MS + rng.randrange(10**10)), "edited": False},
            "attachments": [],
        }
        if rng.random() < 0.05:
            record["links"] = [{"url": f"https://example.test/{number}", "title": "A <b>title</b> & more"}]
        if rng.random() < 0.03:
            record["attachments"] = [
                {"type": "image", "mimeType": "image/png", "name": "p.png", "data": "iVBORw0KGgo="}
            ]
        yield record


def agui_records(messages: int, seed: int) -> Iterator[dict[str, Any]]:
    """AG-UI records with tool calls and results."""
    rng = random.Random(seed)
    threads = max(1, messages * 47 // 1000)
    number = 0
    while number < messages:
        thread = f"thread-{thread_of(rng, threads)}"
        sent = START_MS + rng.randrange(10**10)
        shape = rng.random()
        turn: list[dict[str, Any]] = [{"role": "user", "content": text(rng)}]
        if shape < 0.33:
            arguments = json.dumps({"query": text(rng)[:60], "limit": rng.randrange(50)})
            call = {
                "id": f"call_{number}",
                "type": "function",
                "function": {"name": "search", "arguments": arguments},
            }
            turn += [
                {"role": "assistant", "content": "", "toolCalls": [call]},
                {"role": "tool", "content": text(rng), "toolCallId": f"call_{number}"},
            ]
        turn.append({"role": "assistant", "content": text(rng)})
        for place, message in enumerate(turn[: messages - number]):
            yield {
                "threadId": thread,
                "id": f"m{number + place}",
                **message,
                "dateSent": iso(sent + place),
            }
        number += len(turn)


def write(path: Path, records: Iterator[dict[str, Any]]) -> int:
    """Writes the records as JSON lines; gives the size in bytes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w", encoding="utf-8") as lines:
        for record in records:
            lines.write(json.dumps(record, ensure_ascii=False, separators=(",", ":")) + "\n")
    return path.stat().st_size


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path", type=Path)
    parser.add_argument("--messages", type=int, default=300_000)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--agui", action="store_true")
    options = parser.parse_args()
    make = agui_records if options.agui else chat_records
    size = write(options.path, make(options.messages, options.seed))
    print(f"{options.path}: {options.messages} messages, {size} bytes")


if __name__ == "__main__":
    main()
