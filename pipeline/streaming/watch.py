"""A watched prefix: files that appear under a pattern, each read once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import apache_beam as beam
import msgspec
from apache_beam.coders import BytesCoder
from apache_beam.io.filesystems import FileSystems
from apache_beam.pvalue import PBegin, PCollection
from apache_beam.transforms.userstate import ReadModifyWriteStateSpec

from pipeline.inputs import SPLIT_BYTES, InputFile, Split, format_of, splits_of
from pipeline.streaming.ticks import NowAndThen
from schemas.errors import UsageError


class FileSplit(msgspec.Struct, frozen=True):
    """A range of a file that is to be read, how large the file is, and in how many ranges it is read."""

    split: Split
    size: int
    ranges: int


class _Seen(msgspec.Struct, array_like=True):
    """A file as it was at the last look; `taken` once it was handed on."""

    size: int
    changed: float
    taken: bool


class _Looks(msgspec.Struct):
    """The files that were seen, and when the last look was."""

    last_ms: int = 0
    seen: dict[str, _Seen] = {}


class WatchFiles(beam.PTransform):  # type: ignore[misc]
    """-> FileSplit … of every file that appears. A file is taken when two looks have found it the same."""

    def __init__(self, patterns: Sequence[str], poll_ms: int, *, on_flink: bool) -> None:
        super().__init__()
        self._look = _LookForFiles(patterns, poll_ms)
        self._now_and_then = NowAndThen(poll_ms, on_flink=on_flink)

    def expand(self, begin: PBegin) -> PCollection:
        return (
            begin
            | "Look now and then" >> self._now_and_then
            | "One who looks" >> beam.Map(_one_who_looks).with_output_types(tuple[int, int])
            | "Look for files" >> beam.ParDo(self._look).with_output_types(FileSplit)
            | "Spread files" >> beam.Reshuffle()
        )


def _one_who_looks(now_ms: int) -> tuple[int, int]:
    return 0, now_ms


class _LookForFiles(beam.DoFn):  # type: ignore[misc]
    """What was seen is in the state, and so in every checkpoint: a file is taken once, restarts included."""

    SEEN = ReadModifyWriteStateSpec("seen", BytesCoder())

    def __init__(self, patterns: Sequence[str], poll_ms: int) -> None:
        self._patterns = list(patterns)
        self._poll_ms = poll_ms

    def process(
        self,
        element: tuple[int, int],
        state: Any = beam.DoFn.StateParam(SEEN),
    ) -> Iterator[FileSplit]:
        packed = state.read()
        looks = _Looks() if packed is None else _DECODER.decode(packed)
        # Several sources may say that it is time: two looks at one moment would find every file the same.
        if element[1] - looks.last_ms < self._poll_ms // 2:
            return
        looks.last_ms = element[1]
        taken = newly_settled(looks.seen, _found(self._patterns))
        state.write(msgspec.msgpack.encode(looks))
        for file in taken:
            splits = splits_of([file], SPLIT_BYTES)
            for split in splits:
                yield FileSplit(split, file.size, len(splits))


_DECODER = msgspec.msgpack.Decoder(_Looks)


def _found(patterns: Sequence[str]) -> dict[str, tuple[int, float]]:
    """Size and time of change of every file there is now."""
    return {
        meta.path: (meta.size_in_bytes, meta.last_updated_in_seconds or 0.0)
        for result in FileSystems.match(list(patterns))
        for meta in result.metadata_list
    }


def newly_settled(seen: dict[str, _Seen], found: dict[str, tuple[int, float]]) -> list[InputFile]:
    """The files that are as they were at the last look, and were not taken yet; notes what is there.

    A file whose ending names no format (a writer's temporary name, say) is left alone.
    """
    settled: list[InputFile] = []
    for path in sorted(found):
        size, changed = found[path]
        before = seen.get(path)
        if before is not None and before.taken:
            continue
        if before is None or (before.size, before.changed) != (size, changed):
            seen[path] = _Seen(size, changed, taken=False)
            continue
        before.taken = True
        try:
            settled.append(InputFile(path, size, format_of(path)))
        except UsageError:
            continue
    return settled
