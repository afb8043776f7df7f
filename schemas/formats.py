"""The target vocabularies: the formats of the `messages` column, and which dataset each is for."""

from __future__ import annotations

import enum


class Dataset(enum.StrEnum):
    TRAINING = "training"
    REPLAY = "replay"


class Format(enum.StrEnum):
    MESSAGES = "messages"
    AI_SDK = "ai-sdk"
    TANSTACK = "tanstack"
    TRL = "trl"
    OPENAI = "openai"
    LANGCHAIN = "langchain"


TRAINING_FORMATS = (Format.MESSAGES, Format.AI_SDK, Format.TANSTACK, Format.TRL, Format.OPENAI)
REPLAY_FORMATS = (Format.LANGCHAIN,)

SCHEMA_VERSION = "1"
