"""Each format's message for each kind of turn, and what it has no place for."""

from __future__ import annotations

from typing import Any

import pytest

from schemas.formats import Format
from schemas.reasons import Repair
from schemas.turns import FilePart, RepairNote, ToolCall, Turn
from transforms.formats import RENDERERS

IMAGE = FilePart("image", "image/png", "aGk=", "p.png", has_name=True)
TEXT_FILE = FilePart("text-file", "text/plain", "aGk=", None)
USER = Turn("user", "look", 0, "u", files=[IMAGE, TEXT_FILE])
CALLER = Turn("assistant", "wait", 1, "a", calls=[ToolCall("c1", "f", {"x": "é"})])
RESULT = Turn("tool", "done", 2, "t", result_of="c1", tool_name="f")
SYSTEM = Turn("system", "be brief", 3, "s")

INLINED = "look\n\n[File: attachment (text/plain)]\nhi"
CALL = {"id": "c1", "type": "function"}

EXPECTED: dict[Format, list[Any]] = {
    Format.MESSAGES: [
        {"role": "user", "content": INLINED},
        {"role": "assistant", "content": "wait"},
        None,
        {"role": "system", "content": "be brief"},
    ],
    Format.AI_SDK: [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "look"},
                {
                    "type": "file",
                    "data": "data:image/png;base64,aGk=",
                    "mediaType": "image/png",
                    "filename": "p.png",
                },
                {"type": "file", "data": "data:text/plain;base64,aGk=", "mediaType": "text/plain"},
            ],
        },
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "wait"},
                {"type": "tool-call", "toolCallId": "c1", "toolName": "f", "input": {"x": "é"}},
            ],
        },
        {
            "role": "tool",
            "content": [
                {
                    "type": "tool-result",
                    "toolCallId": "c1",
                    "toolName": "f",
                    "output": {"type": "text", "value": "done"},
                }
            ],
        },
        {"role": "system", "content": "be brief"},
    ],
    Format.TANSTACK: [
        {
            "role": "user",
            "content": [
                {"type": "text", "content": INLINED},
                {"type": "image", "source": {"type": "data", "value": "aGk=", "mimeType": "image/png"}},
            ],
        },
        {
            "role": "assistant",
            "content": "wait",
            "toolCalls": [{**CALL, "function": {"name": "f", "arguments": '{"x":"é"}'}}],
        },
        {"role": "tool", "content": "done", "toolCallId": "c1"},
        None,
    ],
    Format.TRL: [
        {"role": "user", "content": INLINED},
        {
            "role": "assistant",
            "content": "wait",
            "tool_calls": [{**CALL, "function": {"name": "f", "arguments": {"x": "é"}}}],
        },
        {"role": "tool", "content": "done", "tool_call_id": "c1", "name": "f"},
        {"role": "system", "content": "be brief"},
    ],
    Format.OPENAI: [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": INLINED},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}},
            ],
        },
        {
            "role": "assistant",
            "content": "wait",
            "tool_calls": [{**CALL, "function": {"name": "f", "arguments": '{"x":"é"}'}}],
        },
        {"role": "tool", "content": "done", "tool_call_id": "c1", "name": "f"},
        {"role": "system", "content": "be brief"},
    ],
    Format.LANGCHAIN: [
        {
            "type": "human",
            "data": {
                "content": [
                    {"type": "text", "text": INLINED},
                    {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}},
                ]
            },
        },
        {
            "type": "ai",
            "data": {
                "content": "wait",
                "tool_calls": [{"id": "c1", "name": "f", "args": {"x": "é"}, "type": "tool_call"}],
            },
        },
        {"type": "tool", "data": {"content": "done", "tool_call_id": "c1", "name": "f"}},
        {"type": "system", "data": {"content": "be brief"}},
    ],
}
# What has no place: the messages (by id) with a note, in order.
NOTED = {
    Format.MESSAGES: ["u", "a", "t"],
    Format.TRL: ["u"],
    Format.TANSTACK: ["s"],
}


@pytest.mark.parametrize("fmt", list(Format), ids=str)
def test_each_turn(fmt: Format) -> None:
    notes: list[RepairNote] = []
    given = [RENDERERS[fmt](turn, notes) for turn in (USER, CALLER, RESULT, SYSTEM)]
    assert given == EXPECTED[fmt]
    assert [note.message_id for note in notes] == NOTED.get(fmt, [])
    assert {note.reason for note in notes} <= {Repair.NO_PLACE_IN_FORMAT}


@pytest.mark.parametrize("fmt", [Format.MESSAGES, Format.TRL], ids=str)
def test_a_message_of_images_alone_has_no_place_in_a_text_format(fmt: Format) -> None:
    notes: list[RepairNote] = []
    assert RENDERERS[fmt](Turn("user", "", 0, "u", files=[IMAGE]), notes) is None
    assert len(notes) == 1


def test_a_call_without_text_has_no_place_in_messages() -> None:
    notes: list[RepairNote] = []
    silent = Turn("assistant", "", 1, "a", calls=CALLER.calls)
    assert RENDERERS[Format.MESSAGES](silent, notes) is None
    assert "f" in notes[0].detail
