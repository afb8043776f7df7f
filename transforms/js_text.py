"""JavaScript's idea of text: white space, UTF-16 lengths, surrogates.

Python's `str.strip` and `\\s` differ from ECMAScript's WhiteSpace and LineTerminator productions in
both directions (U+FEFF, U+0085, U+001C-1F), and its slices count code points, not UTF-16 units.
"""

from __future__ import annotations

import re
from typing import Any

WHITE_SPACE = (
    "\t\n\v\f\r \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000\ufeff"
)
PYTHON_WHITE_SPACE = "\u001c\u001d\u001e\u001f\u0085"
_RUN = re.compile(f"[{WHITE_SPACE}]+")
_SURROGATE_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")
_SURROGATE = re.compile("[\ud800-\udfff]")


def trimmed(text: str) -> str:
    """`text` as `String.prototype.trim` gives it."""
    return text.strip(WHITE_SPACE)


def is_blank(text: str) -> bool:
    """Whether nothing but JS white space is left of `text`."""
    return not text.strip(WHITE_SPACE)


def is_blank_anywhere(text: str) -> bool:
    """Whether nothing is left of `text` but what JavaScript or Python takes for white space."""
    return not text.strip(WHITE_SPACE + PYTHON_WHITE_SPACE)


def single_spaced(text: str) -> str:
    """`text.replace(/\\s+/g, " ").trim()`."""
    # A space is the one white space that Python prints.
    if text.isprintable() and "  " not in text:
        return text.strip(" ")
    return _RUN.sub(" ", text).strip(WHITE_SPACE)


def cut(text: str, units: int) -> str:
    """The first `units` UTF-16 units of `text`, without half of a pair at the end."""
    if len(text) <= units and (len(text) * 2 <= units or text.isascii()):
        return text
    if text.isascii():
        return text[:units]
    return text.encode("utf-16-le")[: units * 2].decode("utf-16-le", "ignore")


def without_lone_surrogates(text: str) -> str:
    """`text` with pairs of surrogates joined, and each lone one replaced by U+FFFD."""
    if text.isascii() or not _SURROGATE.search(text):
        return text
    joined = _SURROGATE_PAIR.sub(
        lambda pair: pair.group().encode("utf-16", "surrogatepass").decode("utf-16"), text
    )
    return _SURROGATE.sub("\ufffd", joined)


def scrubbed(value: Any) -> Any:
    """A JSON value with every string in it, keys too, free of lone surrogates."""
    if isinstance(value, str):
        return without_lone_surrogates(value)
    if isinstance(value, list):
        return [scrubbed(item) for item in value]
    if isinstance(value, dict):
        return {without_lone_surrogates(key): scrubbed(item) for key, item in value.items()}
    return value


def is_truthy(value: Any) -> bool:
    """JavaScript's truth of a JSON value: empty lists and objects are true, "false" is true."""
    if isinstance(value, (list, dict)):
        return True
    return bool(value)
