"""When a prepared commit may be published: after two finalizations, see `commits`."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from pipeline.streaming.log import CommitLog, Prepared
from schemas.errors import JobError


class Publisher:
    """Publishes the commits of one output, from any thread of a process."""

    def __init__(self, output: str) -> None:
        self._log = CommitLog(output)
        self._lock = threading.Lock()
        self._seen: set[str] = set()
        self._problem: JobError | None = None

    def published(self, entries: Sequence[Prepared]) -> int:
        """How many of these are published, from the first on. Raises JobError, also an earlier one."""
        with self._lock:
            if self._problem is not None:
                problem, self._problem = self._problem, None
                raise problem
            count = 0
            while count < len(entries) and self._log.is_published(entries[count]):
                self._log.drop_attempts(entries[count].number)
                self._seen.discard(entries[count].token)
                count += 1
            return count

    def when_finalized(self, entries: Sequence[Prepared]) -> Callable[[], None]:
        """What to do once a bundle that knew of these prepared commits is finalized.

        Those that an earlier bundle's finalization has seen already are published.
        """
        known = list(entries)
        with self._lock:
            durable = [entry for entry in known if entry.token in self._seen]

        def finalized() -> None:
            with self._lock:
                self._seen.update(entry.token for entry in known)
                try:
                    for entry in durable:
                        self._log.publish(entry)
                except JobError as error:
                    self._problem = error

        return finalized
