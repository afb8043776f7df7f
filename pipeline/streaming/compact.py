"""`threadloom compact`: what batch would have written of all that a streaming job has read.

The commits hold every record once, as it was read. So this is the batch graph itself, with those files for
an archive: what a session's rows were, and how often one was given, does not matter to it.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import os
import uuid
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa
import pyarrow.parquet as pq
from apache_beam.io.filesystem import CompressionTypes
from apache_beam.io.filesystems import FileSystems

from pipeline.beam_options import beam_options, runs_in_process
from pipeline.inputs import FileFormat, InputFile, Split
from pipeline.job_server import check_job_server
from pipeline.options import RunOptions, shards_for
from pipeline.plan import Plan, check_output, spill_folder
from pipeline.reading import Block
from pipeline.run import DONE, carried_out, quiet_beam
from pipeline.streaming.log import RECORDS_FOLDER, REJECTED, CommitLog
from pipeline.writing import ShardFiles, file_problem
from schemas.arrow import RECORDS
from schemas.errors import JobError, UsageError
from schemas.formats import Dataset, Format
from schemas.parcels import CommitManifest, StreamSource
from schemas.reasons import Reject
from schemas.records import Place, Rejected
from transforms.convert import Target
from transforms.dofns import HookSpec
from transforms.streamed import numbered, source_numbers

_ROWS_A_BLOCK = 1 << 16


def compact(arguments: argparse.Namespace, rest: Sequence[str], own_options: Sequence[str]) -> int:
    """Carries the compaction out and gives the exit code. Raises UsageError, JobError."""
    pipeline_options = beam_options(rest, own_options)
    check_job_server(pipeline_options)
    quiet_beam()
    FileSystems.set_options(pipeline_options)
    commits = list(CommitLog(arguments.source).manifests())
    if not commits:
        raise UsageError(
            f"{arguments.source!r} holds no commits: it is no output of threadloom run --streaming"
        )
    plan = compaction(
        commits,
        arguments.source,
        arguments.output,
        num_shards=arguments.num_shards,
        overwrite=arguments.overwrite,
        in_process=runs_in_process(pipeline_options),
    )
    carried_out(plan, pipeline_options, quiet=arguments.quiet, in_memory_anyway=True)
    return DONE


def compaction(
    commits: Sequence[CommitManifest],
    source: str,
    output: str,
    *,
    num_shards: int | None,
    overwrite: bool,
    in_process: bool,
) -> Plan:
    """The batch run over what the commits have logged. Raises UsageError, JobError."""
    options = _options(commits[-1], output, num_shards, overwrite=overwrite)
    sources = read_sources(commits)
    inputs = [InputFile(one.path, one.bytes, FileFormat(one.format)) for one in sources]
    shards = shards_for([(file.format, file.size) for file in inputs], num_shards)
    files = ShardFiles(output, uuid.uuid4().hex, shards)
    check_apart(source, output)
    check_output(options, [])
    logged = [
        (FileSystems.join(source, *file.path.split("/")), file.bytes)
        for commit in commits
        for file in commit.files
        if file.path.split("/")[0] in (RECORDS_FOLDER, REJECTED)
    ]
    numbers = source_numbers([file.path for file in inputs])
    check_sums(sources, [path for path, _size in logged])
    return Plan(
        options,
        inputs,
        [Split(number, path, FileFormat.PARQUET) for number, (path, _size) in enumerate(logged)],
        _targets(options, commits[-1]),
        HookSpec(options.attachment_root, options.transform_message, options.on_unsupported_attachment),
        files,
        functools.partial(blocks_of_log, numbers=numbers),
        spill_folder(files, in_process=in_process),
        sum(size for _path, size in logged),
    )


def check_apart(source: str, output: str) -> None:
    """Raises UsageError where one of the folders lies in the other."""
    one, other = (path if "://" in path else os.path.realpath(path) for path in (source, output))
    one, other = one.rstrip("/") + "/", other.rstrip("/") + "/"
    if one.startswith(other) or other.startswith(one):
        raise UsageError(
            f"compact: {output!r} and {source!r} must lie apart, what is read must stay as it is"
        )


def _options(commit: CommitManifest, output: str, num_shards: int | None, *, overwrite: bool) -> RunOptions:
    names = set(RunOptions.__struct_fields__)
    values = {name: value for name, value in commit.options.items() if name in names}
    for name in ("input", "allowed_tools"):
        values[name] = tuple(values[name])
    return RunOptions(**{**values, "output": output, "num_shards": num_shards, "overwrite": overwrite})


def _targets(options: RunOptions, commit: CommitManifest) -> list[Target]:
    return [
        Target(Dataset(name), Format(fmt), options.guard_options, options.include_names)
        for name, fmt in commit.formats.items()
    ]


def read_sources(commits: Sequence[CommitManifest]) -> list[StreamSource]:
    """What all commits together took from each source, in archive order."""
    sources: dict[str, StreamSource] = {}
    for commit in commits:
        for part in commit.sources:
            whole = sources.get(part.path)
            if whole is None:
                sources[part.path] = part
                continue
            if part.ranges is None:
                whole.bytes += part.bytes
            whole.ended += part.ended
            whole.records += part.records
            whole.messages += part.messages
    return [sources[path] for path in sorted(sources)]


def check_sums(sources: Sequence[StreamSource], logged: Sequence[str]) -> None:
    """Raises JobError unless the log holds as many records of each source as were read of it."""
    counted: Counter[str] = Counter()
    for path in logged:
        name = "source" if holds_records(path) else "source_file"
        with _opened(path) as file:
            for batch in file.iter_batches(columns=[name] if name == "source" else [name, "dataset"]):
                names = batch[name] if name == "source" else batch.filter(batch["dataset"].is_null())[name]
                counted.update({one["values"]: one["counts"] for one in names.value_counts().to_pylist()})
    for source in sources:
        if counted[source.path] != source.records:
            raise JobError(
                f"{source.path}: {source.records} records were read, the commits hold {counted[source.path]}"
            )


def holds_records(path: str) -> bool:
    """Whether a file of a commit holds records: else it holds rejects."""
    return path.rsplit("/", 2)[-2] == RECORDS_FOLDER


def blocks_of_log(split: Split, numbers: Mapping[str, int]) -> Iterator[Block]:
    """The records, or the rejects, of one file of a commit, by the numbers of their sources."""
    is_records = holds_records(split.path)
    with _opened(split.path) as file:
        rows = max(1, file.metadata.num_rows)
        size = FileSystems.match([split.path])[0].metadata_list[0].size_in_bytes
        for batch in file.iter_batches(batch_size=_ROWS_A_BLOCK):
            share = size * batch.num_rows // rows
            table = pa.Table.from_batches([batch])
            if is_records:
                yield Block(numbered(table, numbers), [], share)
            else:
                yield Block(RECORDS.empty_table(), _early_rejects(table, numbers), share)


def _early_rejects(table: pa.Table, numbers: Mapping[str, int]) -> list[Rejected]:
    """Those that concern every dataset; the others follow from the records again."""
    return [
        Rejected(
            Place(numbers[row["source_file"]], row["place"]),
            Reject(row["reason"]),
            row["detail"],
            row["thread_id"],
            row["raw"],
        )
        for row in table.filter(table["dataset"].is_null()).to_pylist()
    ]


@contextlib.contextmanager
def _opened(path: str) -> Iterator[pq.ParquetFile]:
    try:
        with FileSystems.open(path, compression_type=CompressionTypes.UNCOMPRESSED) as stream:
            yield pq.ParquetFile(stream)
    except Exception as error:  # each file system raises errors of its own
        raise JobError(f"{path} of a commit cannot be read: {file_problem(error)}") from error
