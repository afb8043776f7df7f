"""What a run will do, decided once before it starts: files, splits, shards, formats."""

from __future__ import annotations

import functools
import itertools
import uuid
from collections.abc import Sequence

import msgspec
from apache_beam.io.filesystems import FileSystems

from pipeline.commit import Committing, has_result
from pipeline.inputs import FileFormat, InputFile, Split, matched_files, splits_of
from pipeline.options import RunOptions, shards_for
from pipeline.read_archive import BlocksOfSplit
from pipeline.reading import blocks_of_split
from pipeline.writing import TEMPORARY, ShardFiles, file_problem
from schemas.errors import JobError, UsageError
from schemas.formats import Dataset
from schemas.records import Kind
from transforms.convert import Target
from transforms.decode import Source
from transforms.dofns import HookSpec

_PEEKED_FILES = 64
_PEEKED_BYTES = 1 << 20


class Plan(msgspec.Struct, frozen=True):
    """A run, ready to be built into a graph."""

    options: RunOptions
    inputs: list[InputFile]
    splits: list[Split]
    targets: list[Target]
    hooks: HookSpec
    files: ShardFiles
    blocks: BlocksOfSplit
    spill_folder: str | None
    # How much the splits are, as their blocks will count it.
    total_bytes: int

    @property
    def committing(self) -> Committing:
        return Committing(self.files, self.inputs, self.targets, self.options.described())


def planned(options: RunOptions, *, in_process: bool) -> Plan:
    """The plan for these options. Raises UsageError, or JobError where the output cannot be written.

    In the process, records wait for their shard in files beside a local output, not in memory.
    """
    inputs = matched_files(options.input)
    hooks = checked_hooks(options)
    shards = shards_for([(file.format, file.size) for file in inputs], options.num_shards)
    files = ShardFiles(options.output, uuid.uuid4().hex, shards)
    check_output(options, inputs)
    return Plan(
        options,
        inputs,
        splits_of(inputs),
        _targets(options, inputs),
        hooks,
        files,
        functools.partial(blocks_of_split, source=options.source_kind),
        spill_folder(files, in_process=in_process),
        sum(file.size for file in inputs),
    )


def spill_folder(files: ShardFiles, *, in_process: bool) -> str | None:
    """Where records wait for their shard: None for wherever the runner keeps them."""
    return files.temporary if in_process and "://" not in files.output else None


def checked_hooks(options: RunOptions) -> HookSpec:
    """The hooks that the options name. Raises UsageError where one cannot be had."""
    hooks = HookSpec(options.attachment_root, options.transform_message, options.on_unsupported_attachment)
    try:
        hooks.resolved()
    except ValueError as error:
        raise UsageError(str(error)) from None
    return hooks


def _targets(options: RunOptions, inputs: Sequence[InputFile]) -> list[Target]:
    needs_a_look = options.format is None and Dataset.TRAINING in options.datasets
    return targets_of(options, holds_agui=needs_a_look and _holds_agui(inputs, options.source_kind))


def targets_of(options: RunOptions, *, holds_agui: bool) -> list[Target]:
    """The datasets of the options, by what the archive holds."""
    return [
        Target(
            dataset,
            options.format_for(dataset, holds_agui=holds_agui),
            options.guard_options,
            options.include_names,
        )
        for dataset in options.datasets
    ]


def _holds_agui(inputs: Sequence[InputFile], source: Source) -> bool:
    """Whether an AG-UI record is among the first records of the archive's first files."""
    if source != "auto":
        return source == "ag-ui"
    for number, file in enumerate(inputs[:_PEEKED_FILES]):
        end = _PEEKED_BYTES if file.format is FileFormat.JSONL else None
        blocks = blocks_of_split(Split(number, file.path, file.format, 0, end), source)
        for block in itertools.islice(blocks, 1):
            if any(kind != Kind.CHAT for kind in block.table["kind"].to_pylist()):
                return True
    return False


def check_output(options: RunOptions, inputs: Sequence[InputFile]) -> None:
    """Raises UsageError where the output may not, JobError where it cannot be written to."""
    output = options.output
    for file in inputs:
        if file.path.startswith(output.rstrip("/") + "/"):
            raise UsageError(f"--input matches {file.path!r}, which lies in --output {output!r}")
    try:
        if has_result(output) and not options.overwrite:
            raise UsageError(
                f"--output {output!r} holds a result already: name another folder, or add --overwrite"
            )
        probe = FileSystems.join(output, TEMPORARY, f"probe-{uuid.uuid4().hex}")
        with FileSystems.create(probe) as stream:
            stream.write(b"probe")
        FileSystems.delete([probe])
    except UsageError:
        raise
    except Exception as error:  # each file system raises errors of its own
        raise JobError(f"--output {output!r} cannot be written: {file_problem(error)}") from None
