"""An AG-UI message's native tool calls, entry by entry, and the JSON in their arguments.

Source: AG-UI 1.0 tool call `{id, type: "function", function: {name, arguments: STRING}}`;
gaunt-sloth 4271be4 for how an `arguments` string that is not JSON is recovered.
"""

from __future__ import annotations

import enum
import json
from typing import Any

import msgspec

from transforms.depth import DEPTH_LIMIT, is_too_deep
from transforms.js_text import scrubbed, trimmed


class ArgumentsFound(enum.Enum):
    """How the arguments of a call were had from their string."""

    AS_WRITTEN = "as_written"
    RECOVERED = "recovered"
    UNREADABLE = "unreadable"


_CLOSING = {"{": "}", "[": "]"}


def is_well_formed_call(call: Any) -> bool:
    """Whether upstream can read the entry: an object with a function, its arguments a string."""
    if not isinstance(call, dict) or not isinstance(call.get("function"), dict):
        return False
    arguments = call["function"].get("arguments")
    return arguments is None or isinstance(arguments, str)


def call_entries(tool_calls: Any) -> list[Any]:
    """The entries of a `toolCalls` value; a value that is no list is one malformed entry."""
    if tool_calls is None:
        return []
    return tool_calls if isinstance(tool_calls, list) else [tool_calls]


def parsed_arguments(arguments: str | None) -> tuple[Any, ArgumentsFound]:
    """The JSON value of an `arguments` string, and how it was had.

    Blank is `{}`. What is not JSON gives the complete object or list at its start, else `{}`.
    """
    text = trimmed(arguments or "")
    if not text:
        return {}, ArgumentsFound.AS_WRITTEN
    try:
        return json_value(text), ArgumentsFound.AS_WRITTEN
    except (ValueError, RecursionError):
        pass
    end = _end_of_value(text)
    if end:
        try:
            return json_value(text[:end]), ArgumentsFound.RECOVERED
        except (ValueError, RecursionError):
            pass
    return {}, ArgumentsFound.UNREADABLE


def json_value(text: str) -> Any:
    """`JSON.parse(text)`, free of lone surrogates. Raises ValueError, RecursionError.

    Python's reader is narrowed to JSON (no NaN, no Infinity); a number too large for a double is
    refused, since no JSON could hold it again.
    """
    if is_too_deep(text):
        raise ValueError(f"nested deeper than {DEPTH_LIMIT}")
    try:
        return msgspec.json.decode(text)
    except (msgspec.MsgspecError, UnicodeError):
        # Not JSON; or an integer beyond 64 bits, or half a pair of surrogates.
        return scrubbed(_SLOW.decode(text))


def _refused_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _integer(digits: str) -> int:
    if len(digits) > 309:
        raise ValueError("the number is too large")
    return int(digits)


def _finite(digits: str) -> float:
    number = float(digits)
    if number in (float("inf"), float("-inf")):
        raise ValueError("the number is too large")
    return number


_SLOW = json.JSONDecoder(parse_constant=_refused_constant, parse_int=_integer, parse_float=_finite)


def _end_of_value(text: str) -> int:
    """Where the object or list that `text` starts with ends; 0 where there is none or it is torn."""
    open_brackets: list[str] = []
    in_string = escaped = False
    for index, character in enumerate(text):
        if in_string:
            if escaped:
                escaped = False
            elif character == "\\":
                escaped = True
            elif character == '"':
                in_string = False
        elif character in "{[":
            open_brackets.append(_CLOSING[character])
        elif not open_brackets:
            return 0
        elif character == '"':
            in_string = True
        elif character in "}]":
            if open_brackets.pop() != character:
                return 0
            if not open_brackets:
                return index + 1
    return 0
