"""The case files, with their encodings undone (see tests/cases/SOURCE.txt)."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path
from typing import Any

CASES = Path(__file__).parent.parent / "cases"
_SURROGATE = re.compile("[\ud800-\udfff]")


def cases(name: str) -> list[dict[str, Any]]:
    with open(CASES / name, encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def plain(value: Any) -> Any:
    """An expected value as Python holds it; lone surrogates are U+FFFD, since none is ever written."""
    if isinstance(value, str):
        return _SURROGATE.sub("\ufffd", value.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))
    if isinstance(value, list):
        return [plain(item) for item in value]
    if not isinstance(value, dict):
        return value
    if set(value) == {"$js"}:
        return {"-0": 0, "undefined": None}.get(value["$js"], float(value["$js"].replace("undefined", "nan")))
    if set(value) == {"$float"}:
        return float(value["$float"])
    if set(value) == {"$pairs"}:
        return {key: plain(item) for key, item in value["$pairs"]}
    return {key: plain(item) for key, item in value.items()}


def chat_record(message: dict[str, Any], dates: dict[str, str]) -> dict[str, Any]:
    """A message of chat_sdk.jsonl as the record that an archive of it would hold."""
    record = dict(message)
    record["_type"] = "chat:Message"
    record["threadId"] = "t"
    metadata = dict(record.get("metadata") or {})
    sent = metadata.get("dateSent")
    if isinstance(sent, dict):
        value = sent["$date"] if "$date" in sent else sent["$raw"]
        metadata["dateSent"] = dates.get(value, value) if isinstance(value, str) else value
        if "$date" in sent and sent["$date"] is None:
            metadata["dateSent"] = 0
    if "metadata" in record:
        record["metadata"] = metadata
    if record.get("attachments"):
        record["attachments"] = [_attachment(one) for one in record["attachments"]]
    return record


def _attachment(attachment: dict[str, Any]) -> dict[str, Any]:
    plain_one = {key: value for key, value in attachment.items() if key != "fetchData"}
    data = _data(attachment.get("fetchData"))
    if data is not None:
        plain_one["data"] = data
    return plain_one


def _data(fetch: dict[str, Any] | None) -> str | None:
    """What an archive holds of what fetchData gives: base64, or nothing where it throws."""
    if not fetch or "throws" in fetch or fetch.get("returns", "") in (None, "undefined"):
        return None
    if "base64" in fetch:
        return str(fetch["base64"])
    if "returns" in fetch:
        # A string is written as it is by upstream, for base64 that it is not.
        return str(fetch["returns"])
    text = next(fetch[key] for key in fetch if key.endswith("utf8"))
    return base64.b64encode(text.encode()).decode()
