"""Avro schemas of both record kinds, for those who write archives as Avro container files."""

from __future__ import annotations

import json
from importlib import resources
from typing import Any

NAMES = ("chat_message", "agui_message", "agui_history")


def avro_schema(name: str) -> dict[str, Any]:
    """The schema of that name, one of NAMES, as fastavro takes it."""
    text = resources.files(__package__).joinpath(f"{name}.avsc").read_text(encoding="utf-8")
    schema: dict[str, Any] = json.loads(text)
    return schema
