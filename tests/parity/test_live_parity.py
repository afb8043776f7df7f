"""The real npm package `chat` beside our converter, on random threads. Hypothesis shrinks a failure
to the smallest thread that differs, and prints it.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from case_files import plain
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from threads import decoded, messages_of, ordered_threads, target

from schemas.formats import Format
from transforms.convert import Hooks, converted
from transforms.links import SITE_LIMIT, TITLE_LIMIT

# `ai` and `zod` are its peers: its module of converters imports them.
PACKAGES = ("chat@4.41.1", "ai@6", "zod@4")
CACHE = Path(os.environ.get("THREADLOOM_CACHE", Path.home() / ".cache" / "threadloom")) / "chat-4.41.1"
SCRIPT = Path(__file__).parent / "convert.mjs"

pytestmark = pytest.mark.live


class Upstream:
    """The npm package in a Node process, one thread a line."""

    def __init__(self) -> None:
        self._node = subprocess.Popen(
            ["node", str(CACHE / SCRIPT.name)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    def converted(self, records: list[Any], *, include_names: bool) -> dict[str, Any]:
        assert self._node.stdin is not None
        assert self._node.stdout is not None
        request = json.dumps({"records": records, "includeNames": include_names})
        self._node.stdin.write(request.encode() + b"\n")
        self._node.stdin.flush()
        answer: dict[str, Any] = json.loads(self._node.stdout.readline())
        return answer

    def stop(self) -> None:
        assert self._node.stdin is not None
        self._node.stdin.close()
        self._node.wait(timeout=10)


@pytest.fixture(scope="module")
def upstream() -> Iterator[Upstream]:
    assert shutil.which("node"), "the live parity tests need Node 20"
    if not (CACHE / "node_modules" / "chat").exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        install = ["npm", "install", "--no-save", "--no-package-lock", "--prefix", str(CACHE), *PACKAGES]
        subprocess.run(install, check=True, capture_output=True)
    shutil.copy(SCRIPT, CACHE)
    process = Upstream()
    yield process
    process.stop()


SCRIPTS = st.sampled_from(
    [
        "hello",
        "café",
        "данные",
        "数据です",
        "مرحبا",
        "שלום",
        "ไทย",
        "हिन्दी",
        "👩‍👩‍👧",
        "😀",
        "e\u0301",
        "\u200b",
        "\0",
    ]
)
SPACES = st.sampled_from(
    [" ", "\n", "\t", "\r\n", "\u00a0", "\ufeff", "\u0085", "\u001c", "\u2028", "\u3000"]
)
MARKS = st.sampled_from(
    ["<", ">", "&", "&amp;", "</untrusted-third-party-link-metadata>", '"', "$&", "[x]: "]
)
PIECES = st.one_of(SCRIPTS, SPACES, MARKS, st.text(max_size=5))
TEXT = st.lists(PIECES, max_size=6).map("".join)


def around(limit: int) -> st.SearchStrategy[str]:
    """Texts whose length in UTF-16 units lies about a limit, astral characters among them."""
    return st.tuples(st.integers(limit - 4, limit + 3), TEXT, st.sampled_from(["a", "é", "<", "&"])).map(
        lambda parts: parts[2] * (parts[0] - len(parts[1])) + parts[1]
    )


LINK = st.fixed_dictionaries(
    {"url": TEXT | around(2048)},
    optional={
        "title": st.none() | TEXT | around(TITLE_LIMIT),
        "description": st.none() | TEXT | around(1000),
        "siteName": st.none() | TEXT | around(SITE_LIMIT),
        "fetchMessage": st.booleans(),
    },
)
DATA = st.binary(max_size=12).map(lambda raw: base64.b64encode(raw).decode())
ATTACHMENT = st.fixed_dictionaries(
    {"type": st.sampled_from(["image", "file", "file", "video", "audio", "sticker"])},
    optional={
        "mimeType": st.none()
        | st.sampled_from(
            ["image/png", "", "text/plain", "text/html; charset=x", "application/json", "TEXT/A"]
        )
        | st.sampled_from(["application/pdf", "application/jsonp", "application/yaml", "image/svg+xml"]),
        "name": st.none() | TEXT,
        "data": DATA,
        "url": st.just("https://e.test/x"),
    },
)
DATE = st.integers(-(10**11), 4 * 10**12).map(lambda ms: _iso(ms)) | st.sampled_from(
    ["2024-01-15T10:00:00.000Z", "2024-01-15T10:00:00+02:00", "2024-01-15T08:00:00.000999Z"]
)


def _iso(ms: int) -> str:
    from datetime import UTC, datetime, timedelta

    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=ms)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.").rjust(20, "0") + f"{moment.microsecond // 1000:03d}Z"


MESSAGE = st.fixed_dictionaries(
    {
        "_type": st.just("chat:Message"),
        "threadId": st.just("t"),
        "text": TEXT,
        "author": st.fixed_dictionaries(
            {"isMe": st.booleans()}, optional={"userName": TEXT | st.none(), "isBot": st.booleans()}
        ),
        "metadata": st.fixed_dictionaries({"dateSent": DATE}, optional={"edited": st.booleans()}),
    },
    optional={
        "attachments": st.none() | st.lists(ATTACHMENT, max_size=3),
        "links": st.none() | st.lists(LINK, max_size=3),
    },
)


def without_half_pairs(value: Any) -> Any:
    """Upstream's output without the halves of pairs that its cuts leave; ours has none."""
    return json.loads(json.dumps(plain(value), ensure_ascii=False).replace("\ufffd", ""))


@given(st.lists(MESSAGE, min_size=1, max_size=4), st.booleans())
@settings(max_examples=1500, deadline=None, suppress_health_check=list(HealthCheck), print_blob=True)
def test_no_difference(upstream: Upstream, messages: list[Any], names: bool) -> None:
    records = [{**message, "id": str(number)} for number, message in enumerate(messages)]
    theirs = upstream.converted(records, include_names=names)
    good, bad = decoded(records)
    assert not bad
    (thread,) = ordered_threads(good)
    for name, fmt in (("ai", Format.AI_SDK), ("tanstack", Format.TANSTACK)):
        seen: list[Any] = []

        def note(attachment: dict[str, Any], source: dict[str, Any], seen: list[Any] = seen) -> None:
            seen.append([attachment["type"], source["id"]])

        outcome = converted(thread, target(fmt, include_names=names), Hooks(on_unsupported=note))
        ours = json.loads(json.dumps(messages_of(outcome)))
        assert without_half_pairs(ours) == without_half_pairs(theirs[name]["messages"])
        # Upstream converts all messages at once: in which order it reports is chance.
        assert sorted(seen) == sorted(theirs[name]["unsupported"])
    COUNT.append(len(records))


COUNT: list[int] = []


def test_enough_messages_were_compared(upstream: Upstream) -> None:
    assert sum(COUNT) >= 2000
