"""How each format writes a turn. To add one: a module with one function, and a line in RENDERERS."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from schemas.formats import Format
from schemas.turns import RepairNote, Turn
from transforms.formats.ai_sdk import ai_sdk_message
from transforms.formats.langchain import langchain_message
from transforms.formats.openai import openai_message, trl_message
from transforms.formats.roles_and_text import role_and_text
from transforms.formats.tanstack import tanstack_message

# Gives the message, or None where the format has no place for the turn; appends to the notes what
# the format has no place for.
Renderer = Callable[[Turn, list[RepairNote]], dict[str, Any] | None]

RENDERERS: Mapping[Format, Renderer] = MappingProxyType(
    {
        Format.MESSAGES: role_and_text,
        Format.AI_SDK: ai_sdk_message,
        Format.TANSTACK: tanstack_message,
        Format.TRL: trl_message,
        Format.OPENAI: openai_message,
        Format.LANGCHAIN: langchain_message,
    }
)
