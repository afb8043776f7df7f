"""Work ahead: nothing is seen of it but time."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from functools import partial

import pytest

from transforms.ahead import Behind, in_order


def slower_first(number: int) -> int:
    time.sleep(0.02 if number % 2 == 0 else 0)
    return number * number


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_results_come_in_the_order_of_the_items(threads: int) -> None:
    expected = [(number, number * number) for number in range(12)]
    assert list(in_order(slower_first, range(12), threads)) == expected
    assert list(in_order(slower_first, [], threads)) == []


def test_what_the_function_raises_comes_at_its_place() -> None:
    results = in_order(lambda number: 10 // number, [5, 2, 0, 1], 2)
    assert next(results) == (5, 2)
    assert next(results) == (2, 5)
    with pytest.raises(ZeroDivisionError):
        next(results)


def test_few_items_are_taken_ahead() -> None:
    taken = []

    def items() -> Iterator[int]:
        for number in range(10):
            taken.append(number)
            yield number

    results = in_order(slower_first, items(), 2)
    next(results)
    assert len(taken) == 3
    results.close()


def test_calls_behind_give_their_results_in_order() -> None:
    behind: Behind[int] = Behind()
    gate = threading.Event()
    behind.start(lambda: 4 if gate.wait(30) else 0)
    gate.set()
    for number in range(3, 8):
        behind.start(partial(slower_first, number))
    assert behind.results() == [4, 9, 16, 25, 36, 49]
    assert Behind[int]().results() == []


def test_what_a_call_behind_raises_is_raised_at_the_latest_at_the_end() -> None:
    behind: Behind[float] = Behind()
    behind.start(lambda: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        behind.results()
    behind = Behind()
    behind.start(lambda: 1 / 0)
    behind.start(lambda: 1.0)
    with pytest.raises(ZeroDivisionError):
        behind.start(lambda: 1.0)
