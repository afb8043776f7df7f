"""Tool calls that a model emitted as text, in the dialects that the serving side promotes.

All or nothing: the whole text, white space aside, is one or more calls, each naming an allowed
tool; or it is text. Source of the grammar: gaunt-sloth 4271be4 (cases in tests/cases/ag_ui.jsonl).

    [tool:NAME]{json}                  the close <|call|> optional
    [tool:NAME]<parameter=K>V</parameter>…   the close </function> optional
    [NAME] newline {json} [/NAME]      or [END_TOOL_REQUEST]
    <function=NAME><parameter=K>V</parameter>…</function>
    <|channel|>commentary to=NAME code {json}   Harmony; see `_HARMONY`
"""

from __future__ import annotations

import re
from collections.abc import Set
from typing import Any, NamedTuple

from transforms.js_text import WHITE_SPACE
from transforms.tool_calls import json_value

PAYLOAD_LIMIT = 256_000

_NAME = r"[A-Za-z0-9_-]{1,120}"
_SPACE = f"[{WHITE_SPACE}]*"
_TOOL = re.compile(rf"\[tool:(?P<name>{_NAME})\]{_SPACE}")
_BRACKET = re.compile(rf"\[(?P<name>{_NAME})\][ \t]*(?:\r\n|\r|\n){_SPACE}")
_HARMONY = re.compile(
    r"(?:<\|channel\|>)?(?:commentary|analysis|final)[ \t]+to=(?P<name>[A-Za-z0-9_.-]{1,120})"
    rf"[ \t]*(?:code(?![A-Za-z0-9_-])|<\|constrain\|>[A-Za-z0-9_-]+)[ \t]*(?:<\|message\|>)?{_SPACE}"
)
# re.ASCII keeps re.IGNORECASE from folding U+0131, U+017F and U+212A onto ASCII letters.
_FUNCTION = re.compile(rf"<function=(?P<name>{_NAME})>{_SPACE}", re.ASCII | re.IGNORECASE)
_PARAMETER = re.compile(
    rf"<parameter=(?P<key>{_NAME})>(?P<value>.*?)</parameter>{_SPACE}",
    re.ASCII | re.IGNORECASE | re.DOTALL,
)
_FUNCTION_END = re.compile(r"</function>", re.ASCII | re.IGNORECASE)
_CALL_END = re.compile(rf"{_SPACE}<\|call\|>")
_BLANK = re.compile(_SPACE)
_QUOTE_OR_BRACE = re.compile(r'["{}]')
_REST_OF_STRING = re.compile(r'[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)


class TextCall(NamedTuple):
    """One call found in a text."""

    name: str
    args: dict[str, Any]


class _Found(NamedTuple):
    call: TextCall
    end: int


def text_calls(text: str, allowed: Set[str]) -> list[TextCall] | None:
    """The calls that make up the whole text, or None where it is (also) something else."""
    if not allowed:
        return None
    calls: list[TextCall] = []
    at = _skipped(text, 0)
    while at < len(text):
        found = _call_at(text, at, allowed)
        if found is None:
            return None
        calls.append(found.call)
        at = _skipped(text, found.end)
    return calls or None


def _call_at(text: str, at: int, allowed: Set[str]) -> _Found | None:
    start = text[at]
    if start == "[":
        return _tool_call(text, at, allowed) or _bracket_call(text, at, allowed)
    if start == "<" and (opening := _FUNCTION.match(text, at)):
        return _xml_call(text, opening, allowed, close_needed=True)
    return _harmony_call(text, at, allowed)


def _tool_call(text: str, at: int, allowed: Set[str]) -> _Found | None:
    opening = _TOOL.match(text, at)
    if not opening or opening["name"] not in allowed:
        return None
    payload = _json_object(text, opening.end())
    if payload is None:
        return _xml_call(text, opening, allowed, close_needed=False)
    args, end = payload
    return _Found(TextCall(opening["name"], args), _after(_CALL_END, text, end))


def _bracket_call(text: str, at: int, allowed: Set[str]) -> _Found | None:
    opening = _BRACKET.match(text, at)
    if not opening or opening["name"] not in allowed:
        return None
    payload = _json_object(text, opening.end())
    if payload is None:
        return None
    args, end = payload
    end = _skipped(text, end)
    for closing in ("[END_TOOL_REQUEST]", f"[/{opening['name']}]"):
        if text.startswith(closing, end):
            return _Found(TextCall(opening["name"], args), end + len(closing))
    return None


def _harmony_call(text: str, at: int, allowed: Set[str]) -> _Found | None:
    opening = _HARMONY.match(text, at)
    if not opening:
        return None
    name = opening["name"].rsplit(".", 1)[-1]
    payload = _json_object(text, opening.end()) if name in allowed else None
    if payload is None:
        return None
    args, end = payload
    return _Found(TextCall(name, args), _after(_CALL_END, text, end))


def _xml_call(text: str, opening: re.Match[str], allowed: Set[str], *, close_needed: bool) -> _Found | None:
    if opening["name"] not in allowed:
        return None
    args: dict[str, Any] = {}
    at = opening.end()
    size = parameters = 0
    while parameter := _PARAMETER.match(text, at):
        at = parameter.end()
        parameters += 1
        size += len(parameter.group().encode())
        if size > PAYLOAD_LIMIT:
            return None
        # Assigning to `__proto__` of a JavaScript object sets no key.
        if parameter["key"] != "__proto__":
            args[parameter["key"]] = _without_frame_breaks(parameter["value"])
    if not parameters:
        return None
    closing = _FUNCTION_END.match(text, at)
    if closing:
        return _Found(TextCall(opening["name"], args), closing.end())
    return None if close_needed else _Found(TextCall(opening["name"], args), at)


def _without_frame_breaks(value: str) -> str:
    """Without the one line break that follows the opening tag, and then the one before the close."""
    for line_break in ("\r\n", "\r", "\n"):
        if value.startswith(line_break):
            value = value[len(line_break) :]
            for last in ("\r\n", "\r", "\n"):
                if value.endswith(last):
                    return value[: -len(last)]
            return value
    return value


def _json_object(text: str, at: int) -> tuple[dict[str, Any], int] | None:
    """The JSON object that starts at `at`, and where it ends."""
    if not text.startswith("{", at):
        return None
    last = at + PAYLOAD_LIMIT
    depth, cursor = 0, at
    while token := _QUOTE_OR_BRACE.search(text, cursor, last):
        cursor = token.end()
        if token.group() == '"':
            string = _REST_OF_STRING.match(text, cursor, last)
            if not string:
                return None
            cursor = string.end()
        else:
            depth += 1 if token.group() == "{" else -1
            if not depth:
                return _parsed(text[at:cursor], cursor)
    return None


def _parsed(payload: str, end: int) -> tuple[dict[str, Any], int] | None:
    if len(payload.encode()) > PAYLOAD_LIMIT:
        return None
    try:
        value = json_value(payload)
    except (ValueError, RecursionError):
        return None
    return (value, end) if isinstance(value, dict) else None


def _skipped(text: str, at: int) -> int:
    blank = _BLANK.match(text, at)
    return blank.end() if blank else at


def _after(pattern: re.Pattern[str], text: str, at: int) -> int:
    found = pattern.match(text, at)
    return found.end() if found else at
