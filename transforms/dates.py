"""dateSent: ISO 8601 with a zone, or epoch seconds, milliseconds or microseconds, to epoch milliseconds.

Where a text names an instant, the result is what `new Date(text)` gives: digits below the
millisecond are cut off, 24:00:00 is the next midnight, the 30th of February runs over into March.
A text that leaves the zone open means another instant on every machine: it is refused.
Source: ECMA-262, Date Time String Format; V8's results are in tests/cases/dates.jsonl.
"""

from __future__ import annotations

import math
import re
from datetime import UTC, date, datetime, timedelta
from typing import Any

_ISO = re.compile(
    r"(?P<year>\d{4}|[+-]\d{6})-(?P<month>\d\d)-(?P<day>\d\d)"
    r"(?:[Tt ](?P<hour>\d\d):(?P<minute>\d\d)(?::(?P<second>\d\d)(?:\.(?P<fraction>\d+))?)?"
    r"(?:(?P<utc>[Zz])|(?P<sign>[+-])(?P<zone_hour>\d\d):?(?P<zone_minute>\d\d)))?",
    re.ASCII,
)
_PLAIN = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{3})?Z", re.ASCII)
_DAY_MS = 86_400_000
_EPOCH_ORDINAL = date(1970, 1, 1).toordinal()

# What readers of timestamps can hold (Python's datetime among them): years 1 to 9999.
FIRST_MS = -62_135_596_800_000
LAST_MS = 253_402_300_799_999

# An epoch number is read by its size: below 1e11 seconds (the year 5138), below 1e14
# milliseconds (the year 5138 too), above that microseconds.
_SECONDS_BELOW = 1e11
_MILLISECONDS_BELOW = 1e14


class BadDate(ValueError):
    """The value names no instant; the message says why."""


def epoch_ms(value: Any) -> int | None:
    """Epoch milliseconds of a `dateSent` value; None where there is none. Raises BadDate."""
    if value is None:
        return None
    if isinstance(value, str):
        ms = _ms_of_text(value)
    elif isinstance(value, datetime):
        ms = _ms_of_datetime(value)
    elif isinstance(value, bool) or not isinstance(value, (int, float)):
        raise BadDate(f"expected a date, got {type(value).__name__}")
    else:
        ms = _ms_of_number(value)
    if not FIRST_MS <= ms <= LAST_MS:
        raise BadDate("the year is outside 0001-9999")
    return ms


def _ms_of_datetime(value: datetime) -> int:
    """A timestamp column's value; one without a zone is no instant."""
    if value.tzinfo is None:
        raise BadDate("the timestamp has no zone")
    return (value - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)


def _ms_of_number(value: int | float) -> int:
    if isinstance(value, float) and not math.isfinite(value):
        raise BadDate("the number is not finite")
    size = abs(value)
    if size < _SECONDS_BELOW:
        return math.floor(value * 1000 + 0.5) if isinstance(value, float) else value * 1000
    if size < _MILLISECONDS_BELOW:
        return math.trunc(value)
    if size > LAST_MS * 1000:
        raise BadDate("the number is too large for an instant")
    return math.trunc(value) // 1000


def _ms_of_text(text: str) -> int:
    found = _ISO.fullmatch(text)
    if not found:
        raise BadDate(f"not ISO 8601 with a zone: {text[:40]!r}")
    part = found.groupdict()
    year, month, day = int(part["year"]), int(part["month"]), int(part["day"])
    if part["year"] == "-000000" or not 1 <= month <= 12 or not 1 <= day <= 31:
        raise BadDate(f"no such day: {text[:40]!r}")
    ms = _days_before(year, month) * _DAY_MS + (day - 1) * _DAY_MS
    if part["hour"] is None:
        return ms
    hour, minute, second = int(part["hour"]), int(part["minute"]), int(part["second"] or 0)
    thousandths = int(((part["fraction"] or "") + "000")[:3])
    midnight_after = hour == 24 and not (minute or second or thousandths)
    if (hour > 23 and not midnight_after) or minute > 59 or second > 59:
        raise BadDate(f"no such time of day: {text[:40]!r}")
    ms += ((hour * 60 + minute) * 60 + second) * 1000 + thousandths
    if part["utc"]:
        return ms
    zone_hour, zone_minute = int(part["zone_hour"]), int(part["zone_minute"])
    if zone_hour > 23 or zone_minute > 59:
        raise BadDate(f"no such zone: {text[:40]!r}")
    offset = (zone_hour * 60 + zone_minute) * 60_000
    return ms - offset if part["sign"] == "+" else ms + offset


def _days_before(year: int, month: int) -> int:
    """Days from 1970-01-01 to the first of the month, in the proleptic Gregorian calendar."""
    cycles, year_of_cycle = divmod(year, 400)
    return date(year_of_cycle + 400, month, 1).toordinal() - _EPOCH_ORDINAL + (cycles - 1) * 146_097
