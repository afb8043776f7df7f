"""Work beside the thread that asks for it, some items ahead or one behind.

For work that is nearly all Arrow's, which needs no lock of Python's meanwhile.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Generic, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


def in_order(
    function: Callable[[Item], Result], items: Iterable[Item], threads: int
) -> Iterator[tuple[Item, Result]]:
    """Each item with its result, in the order of the items. Raises what the function raises, at its place.

    At most `threads` + 1 items are taken before their results are asked for.
    """
    waiting: deque[tuple[Item, Future[Result]]] = deque()
    with ThreadPoolExecutor(threads, thread_name_prefix="ahead") as pool:
        for item in items:
            waiting.append((item, pool.submit(function, item)))
            if len(waiting) > threads:
                yield _first(waiting)
        while waiting:
            yield _first(waiting)


def _first(waiting: deque[tuple[Item, Future[Result]]]) -> tuple[Item, Result]:
    item, result = waiting.popleft()
    return item, result.result()


class Behind(Generic[Result]):
    """Calls that are made one after the other, in a thread of their own; one at most waits its turn."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="behind")
        self._started: list[Future[Result]] = []

    def start(self, call: Callable[[], Result]) -> None:
        """Returns while the call is made. Raises what an earlier call raised."""
        if len(self._started) > 1:
            self._started[-2].result()
        self._started.append(self._pool.submit(call))

    def results(self) -> list[Result]:
        """The results of all calls, in their order. Raises what the first of them raised that did."""
        with self._pool:
            return [one.result() for one in self._started]
