"""`threadloom check`: which rows of a replay dataset break which rule, by provider.

Rows stream through: what is kept is counts and a few examples. No Beam, unless a path names an
object store.
"""

from __future__ import annotations

import argparse
import contextlib
import glob
import json
import os
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import IO, Any, NamedTuple

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from schemas.errors import JobError, UsageError
from schemas.violations import Broken, Violation
from transforms.check.history import broken_rules
from transforms.providers import RULES, Provider

NONE_BROKEN, SOME_BROKEN = 0, 1
_BATCH_ROWS = 256
_ENDINGS = (".parquet", ".jsonl", ".ndjson")


class CheckedRow(NamedTuple):
    """One history: where it stands, and its messages, or why they cannot be read."""

    file: str
    row: int
    thread_id: str | None
    messages: list[Any] | None
    problem: str = ""


def check(arguments: argparse.Namespace) -> int:
    """Checks the rows, prints the report, gives the exit code. Raises UsageError, JobError."""
    providers = chosen_providers(arguments.provider)
    files = dataset_files(arguments.path)
    report = Report(providers, show=arguments.show, as_json=arguments.json)
    for row in dataset_rows(files):
        report.rows += 1
        for provider in providers:
            broken = _broken(row, provider, as_request=arguments.as_request)
            if broken:
                report.add(row, provider, broken)
    report.finish()
    return SOME_BROKEN if report.broken_rows else NONE_BROKEN


def _broken(row: CheckedRow, provider: Provider, *, as_request: bool) -> list[Broken]:
    if row.messages is None:
        return [Broken(Violation.UNREADABLE_MESSAGE, 0, row.problem)]
    return broken_rules(row.messages, RULES[provider], as_request=as_request)


def chosen_providers(name: str) -> list[Provider]:
    """The providers that `--provider` names. Raises UsageError."""
    if name == "all":
        return list(Provider)
    if name not in tuple(Provider):
        raise UsageError(f"--provider {name!r} is not one of all, {', '.join(Provider)}")
    return [Provider(name)]


def dataset_files(path: str) -> list[str]:
    """The files of a path: a file, a pattern, an output of ours, or a folder. Raises UsageError."""
    if "://" in path:
        found = _remote_files(path)
    elif os.path.isdir(path):
        replay = os.path.join(path, "replay")
        folder = replay if os.path.isdir(replay) else path
        found = [os.path.join(base, name) for base, _folders, names in os.walk(folder) for name in names]
    else:
        found = glob.glob(path, recursive=True)
    files = sorted(name for name in found if name.lower().endswith(_ENDINGS))
    if not files:
        raise UsageError(f"{path!r} holds no file that ends in {', '.join(_ENDINGS)}")
    return files


def _remote_files(path: str) -> list[str]:
    from apache_beam.io.filesystems import FileSystems  # a second that local paths need not wait

    patterns = [path, path.rstrip("/") + "/**"]
    return [meta.path for found in FileSystems.match(patterns) for meta in found.metadata_list]


@contextlib.contextmanager
def _opened(path: str) -> Iterator[IO[bytes]]:
    if "://" not in path:
        with open(path, "rb") as local:
            yield local
        return
    from apache_beam.io.filesystems import FileSystems

    with FileSystems.open(path) as remote:
        yield remote


def dataset_rows(files: Iterable[str]) -> Iterator[CheckedRow]:
    """The rows of the files, one after the other. Raises JobError where a file cannot be read."""
    for path in files:
        try:
            with _opened(path) as stream:
                read = _parquet_rows if path.lower().endswith(".parquet") else _line_rows
                yield from read(path, stream)
        except (OSError, pa.ArrowException) as error:
            raise JobError(f"{path} cannot be read: {str(error).splitlines()[0]}") from None


def _parquet_rows(path: str, stream: IO[bytes]) -> Iterator[CheckedRow]:
    file = pq.ParquetFile(stream)
    names = file.schema_arrow.names
    if "messages" not in names:
        raise JobError(f"{path} has no column `messages`, but {', '.join(names[:10])}")
    columns = [name for name in ("thread_id", "messages") if name in names]
    number = 0
    for batch in file.iter_batches(batch_size=_BATCH_ROWS, columns=columns):
        for row in batch.to_pylist():
            yield _row(path, number, row)
            number += 1


def _line_rows(path: str, stream: IO[bytes]) -> Iterator[CheckedRow]:
    for number, line in enumerate(stream):
        if not line.strip():
            continue
        try:
            value = json.loads(line)
        except (ValueError, RecursionError) as error:
            yield CheckedRow(path, number, None, None, f"not JSON: {error}")
            continue
        yield _row(path, number, {"messages": value} if isinstance(value, list) else value)


def _row(path: str, number: int, row: Any) -> CheckedRow:
    messages = row.get("messages") if isinstance(row, dict) else None
    thread_id = (row.get("thread_id") or row.get("threadId")) if isinstance(row, dict) else None
    known = thread_id if isinstance(thread_id, str) else None
    if isinstance(messages, str):
        with contextlib.suppress(ValueError, RecursionError):
            messages = json.loads(messages)
    if not isinstance(messages, list):
        return CheckedRow(path, number, known, None, "the row has no list `messages`")
    return CheckedRow(path, number, known, [_without_nulls(message) for message in messages])


def _without_nulls(message: Any) -> Any:
    """A struct column cannot leave a key out: null says that it is absent."""
    if isinstance(message, dict):
        return {key: value for key, value in message.items() if value is not None}
    return message


class Report:
    """Counts what was broken; prints a line a broken row as it comes, and the table at the end."""

    def __init__(self, providers: list[Provider], *, show: int, as_json: bool) -> None:
        self.rows = 0
        self.broken_rows = 0
        self._providers = providers
        self._left_to_show = show
        self._as_json = as_json
        self._broken: Counter[Provider] = Counter()
        self._rules: dict[Provider, Counter[str]] = {provider: Counter() for provider in providers}

    def add(self, row: CheckedRow, provider: Provider, broken: list[Broken]) -> None:
        """One row that breaks rules of one provider."""
        self.broken_rows += 1
        self._broken[provider] += 1
        self._rules[provider].update(one.violation.value for one in broken)
        if self._as_json:
            self._print_json(
                {
                    "file": row.file,
                    "row": row.row,
                    "thread_id": row.thread_id,
                    "provider": provider.value,
                    "broken": [msgspec.to_builtins(one) for one in broken],
                }
            )
        elif self._left_to_show > 0:
            self._left_to_show -= 1
            where = f"{row.file} row {row.row}" + (f" ({row.thread_id})" if row.thread_id else "")
            first = broken[0]
            more = f", and {len(broken) - 1} more" if len(broken) > 1 else ""
            print(f"{provider}: {where}: message {first.at}: {first.violation}: {first.detail}{more}")

    def finish(self) -> None:
        """Prints the sums."""
        if self._as_json:
            providers = {
                provider.value: {
                    "broken_rows": self._broken[provider],
                    "rules": dict(self._rules[provider].most_common()),
                }
                for provider in self._providers
            }
            self._print_json({"rows": self.rows, "providers": providers})
            return
        if self.broken_rows and self._left_to_show <= 0:
            print("… (--show N shows more, --json all)")
        lines = [("provider", "rows", "broken", "rules broken")]
        for provider in self._providers:
            rules = self._rules[provider].most_common()
            shown = ", ".join(f"{rule} {count}" for rule, count in rules) or "none"
            lines.append((provider.value, f"{self.rows:,}", f"{self._broken[provider]:,}", shown))
        widths = [max(len(line[column]) for line in lines) for column in range(3)]
        for name, rows, broken, rules_shown in lines:
            print(f"{name:<{widths[0]}}  {rows:>{widths[1]}}  {broken:>{widths[2]}}  {rules_shown}")

    def _print_json(self, value: Any) -> None:
        sys.stdout.write(msgspec.json.encode(value).decode() + "\n")
