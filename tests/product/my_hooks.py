"""Hooks as a user writes them, for the tests of --transform_message."""

from __future__ import annotations

from typing import Any


def shout(message: dict[str, Any], source: dict[str, Any]) -> dict[str, Any] | None:
    if source["text"] == "skip me":
        return None
    if source["text"] == "break":
        raise ValueError("bad \ud83d luck")
    if source["text"] == "no message":
        return {"role": "user"}
    if isinstance(message["content"], str):
        return {**message, "content": message["content"].upper()}
    return message


def refuse_video(attachment: dict[str, Any], source: dict[str, Any]) -> None:
    raise RuntimeError(f"{attachment['type']} in {source['id']}")
