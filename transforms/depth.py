"""How deep JSON nests, told from its text alone.

The decoders stop at Python's recursion limit, which leaves more or less room on each runner; a fixed
bound well below it gives the same verdict on all of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

DEPTH_LIMIT = 400

_BYTES = re.compile(rb'"(?:[^"\\]++|\\.)*+"?|[\[\]{}]', re.DOTALL)
_TEXT = re.compile(r'"(?:[^"\\]++|\\.)*+"?|[\[\]{}]', re.DOTALL)


def is_too_deep(json_text: bytes | str) -> bool:
    """Whether its brackets, those inside strings aside, nest deeper than DEPTH_LIMIT."""
    # What is nested so deep is at least so long: a bracket opens it, and one closes it.
    if len(json_text) <= 2 * DEPTH_LIMIT:
        return False
    if isinstance(json_text, bytes):
        few = json_text.count(b"[") + json_text.count(b"{") <= DEPTH_LIMIT
        return not few and _depth(found.group().decode("latin-1") for found in _BYTES.finditer(json_text))
    few = json_text.count("[") + json_text.count("{") <= DEPTH_LIMIT
    return not few and _depth(found.group() for found in _TEXT.finditer(json_text))


def _depth(tokens: Iterable[str]) -> bool:
    depth = 0
    for token in tokens:
        if token in ("[", "{"):
            depth += 1
            if depth > DEPTH_LIMIT:
                return True
        elif token in ("]", "}"):
            depth -= 1
    return False
