"""The options of a run, checked where they are made: messages name the option, the value, the bound."""

from __future__ import annotations

import math
from typing import Any, cast, get_args

import msgspec

from schemas.errors import UsageError
from schemas.formats import REPLAY_FORMATS, TRAINING_FORMATS, Dataset, Format
from transforms.decode import Source
from transforms.guards.rules import GuardOptions, Guards
from transforms.providers import Provider
from transforms.threads import Duplicates

SHARD_BYTES = 32 << 20
MAX_SHARDS = 10_000
# What compressed files hold, roughly, for the number of shards.
INFLATION = {"jsonl.gz": 6, "jsonl.zst": 6, "avro": 2, "parquet": 4}


class Limit(msgspec.Struct, frozen=True):
    """`--max_rejected`: a number of records, or a share of those read (in percent)."""

    count: int | None = None
    percent: float | None = None

    def is_exceeded(self, rejected: int, read: int) -> bool:
        """Whether so many rejects of so many records are more than allowed."""
        if self.count is not None:
            return rejected > self.count
        if self.percent is not None:
            return rejected * 100 > self.percent * read
        return False


class RunOptions(msgspec.Struct, frozen=True):
    """What `threadloom run` was asked for. Raises UsageError where it cannot be."""

    input: tuple[str, ...]
    output: str
    dataset: str
    source: str = "auto"
    format: str | None = None
    include_names: bool = False
    allowed_tools: tuple[str, ...] = ()
    guards: str = "strict"
    provider: str | None = None
    keep_pending_call: bool = False
    attachment_root: str | None = None
    transform_message: str | None = None
    on_unsupported_attachment: str | None = None
    duplicates: str = "latest"
    num_shards: int | None = None
    max_rejected: str | None = None
    overwrite: bool = False

    def __post_init__(self) -> None:
        if not self.input:
            raise UsageError("--input is needed: one or more patterns of archive files")
        if not self.output:
            raise UsageError("--output is needed: the folder to write to")
        if set(self.output) & set("*?["):
            raise UsageError(f"--output {self.output!r} is one folder: it cannot hold *, ? or [")
        _one_of("dataset", self.dataset, ("training", "replay", "both"))
        _one_of("source", self.source, get_args(Source))
        _one_of("guards", self.guards, tuple(Guards))
        if self.provider is not None:
            _one_of("provider", self.provider, tuple(Provider))
            if self.guards != Guards.STRICT:
                raise UsageError("--provider adds to the strict guards: --guards upstream leaves no room")
        _one_of("duplicates", self.duplicates, get_args(Duplicates))
        if self.num_shards is not None and not 1 <= self.num_shards <= MAX_SHARDS:
            raise UsageError(f"--num_shards {self.num_shards} is not between 1 and {MAX_SHARDS}")
        if self.transform_message and self.source == "ag-ui":
            raise UsageError("--transform_message is for Chat SDK messages: --source ag-ui has none")
        self._check_format()
        parsed_limit(self.max_rejected)

    def _check_format(self) -> None:
        if self.format is None:
            return
        if self.dataset == "replay":
            _one_of("format", self.format, REPLAY_FORMATS, "of --dataset replay")
        else:
            _one_of("format", self.format, TRAINING_FORMATS, f"of --dataset {self.dataset}")

    @property
    def datasets(self) -> tuple[Dataset, ...]:
        if self.dataset == "both":
            return Dataset.TRAINING, Dataset.REPLAY
        return (Dataset(self.dataset),)

    @property
    def source_kind(self) -> Source:
        return cast(Source, self.source)

    @property
    def duplicates_kind(self) -> Duplicates:
        return cast(Duplicates, self.duplicates)

    @property
    def guard_options(self) -> GuardOptions:
        provider = None if self.provider is None else Provider(self.provider)
        return GuardOptions(
            Guards(self.guards), frozenset(self.allowed_tools), self.keep_pending_call, provider
        )

    def format_for(self, dataset: Dataset, *, holds_agui: bool) -> Format:
        """The dataset's format: as asked for, else the default of the archive's vocabulary."""
        if dataset is Dataset.REPLAY:
            return Format.LANGCHAIN
        if self.format is not None:
            return Format(self.format)
        return Format.TRL if holds_agui else Format.MESSAGES

    def described(self) -> dict[str, Any]:
        """The options for the manifest: those that bear on what the data files hold."""
        kept: dict[str, Any] = msgspec.to_builtins(self)
        del kept["overwrite"], kept["output"]
        return kept


def parsed_limit(value: str | None) -> Limit:
    """`--max_rejected` as a limit: `N` or `P%`. Raises UsageError."""
    if value is None:
        return Limit()
    text = value.strip()
    try:
        if text.endswith("%"):
            percent = float(text[:-1])
            if 0 <= percent <= 100:
                return Limit(percent=percent)
        elif int(text) >= 0:
            return Limit(count=int(text))
    except ValueError:
        pass
    raise UsageError(f"--max_rejected {value!r} is neither a number from 0 up nor a share like 2%")


def shards_for(sizes_by_format: list[tuple[str, int]], asked: int | None) -> int:
    """How many shards: as asked for, else one for each 32 MiB of (unpacked) archive, at least one."""
    if asked is not None:
        return asked
    total = sum(size * INFLATION.get(kind, 1) for kind, size in sizes_by_format)
    return max(1, min(MAX_SHARDS, math.ceil(total / SHARD_BYTES)))


def _one_of(option: str, value: str, allowed: tuple[str, ...], where: str = "") -> None:
    if value not in allowed:
        choices = ", ".join(allowed)
        raise UsageError(f"--{option} {value!r} is not one {where or 'of the choices'}: {choices}")
