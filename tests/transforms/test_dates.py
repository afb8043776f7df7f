"""dateSent: agrees with `new Date(text)` wherever a text names an instant, else a clear refusal."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from case_files import cases
from hypothesis import given
from hypothesis import strategies as st

from transforms.dates import BadDate, epoch_ms

CASES = [case for case in cases("dates.jsonl") if isinstance(case["input"], str)]
WITH_ZONE = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d(:\d\d(\.\d+)?)?([Zz]|[+-]\d\d:?\d\d)", re.ASCII)


def given_by(value: Any) -> int | str:
    try:
        ms = epoch_ms(value)
    except BadDate:
        return "refused"
    assert ms is not None
    return ms


@pytest.mark.parametrize("case", CASES, ids=lambda case: repr(case["input"]))
def test_agrees_with_javascript_or_refuses(case: dict[str, Any]) -> None:
    result = given_by(case["input"])
    if case["ms_utc"] == "NaN" or case["local_dependent"]:
        assert result == "refused"
    elif case["input"].startswith("0000-"):
        # JavaScript has a year 0; readers of timestamps (Python's datetime) have none.
        assert result == "refused"
    elif WITH_ZONE.fullmatch(case["input"]):
        assert result == case["ms_utc"]
    else:
        assert result in ("refused", case["ms_utc"])


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, None),
        (1705312800, 1705312800000),
        (1705312800.5, 1705312800500),
        (1705312800.1236, 1705312800124),
        (1705312800000, 1705312800000),
        (1705312800000000, 1705312800000),
        (1705312800123456, 1705312800123),
        (-1, -1000),
        (0, 0),
        (datetime(2024, 1, 15, 10, tzinfo=UTC), 1705312800000),
        (datetime(2024, 1, 15, 10, tzinfo=timezone(timedelta(hours=2))), 1705305600000),
    ],
)
def test_numbers_and_timestamps(value: Any, expected: int | None) -> None:
    assert epoch_ms(value) == expected


@pytest.mark.parametrize(
    "value", [True, False, [], {}, float("nan"), float("inf"), 10**18, 10**400, datetime(2024, 1, 15)]
)
def test_what_is_no_date(value: Any) -> None:
    assert given_by(value) == "refused"


@given(st.datetimes(min_value=datetime(1, 1, 2), timezones=st.just(UTC)), st.integers(-1439, 1439))
def test_any_instant_in_any_zone(moment: datetime, minutes: int) -> None:
    moment = moment.replace(microsecond=moment.microsecond // 1000 * 1000)
    expected = (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)
    assert epoch_ms(moment.isoformat(timespec="milliseconds")) == expected
    try:
        local = moment.astimezone(timezone(timedelta(minutes=minutes)))
    except OverflowError:
        return
    assert epoch_ms(local.isoformat(timespec="milliseconds")) == expected
