"""`threadloom run`: options to a plan, the plan to a graph, the graph to a result."""

from __future__ import annotations

import argparse
import contextlib
import logging
import re
import sys
import time
from collections.abc import Iterator, Sequence
from typing import Any

import apache_beam as beam
import msgspec
from apache_beam.io.filesystems import FileSystems
from apache_beam.options.pipeline_options import PipelineOptions, PortableOptions
from apache_beam.runners.runner import PipelineResult

from pipeline.beam_options import beam_options, runs_in_process
from pipeline.commit import MANIFEST, SUCCESS, discard, read_bytes
from pipeline.graph import build
from pipeline.job_server import check_job_server
from pipeline.memory import available_bytes, check_memory
from pipeline.options import RunOptions, parsed_limit
from pipeline.plan import Plan, planned
from pipeline.progress import Progress, ProgressLine
from pipeline.summary import rejected_records, summary
from pipeline.writing import ShardFiles
from schemas.errors import JobError, UsageError

DONE, TOO_MANY_REJECTED = 0, 3
_OWN_ERROR = re.compile(r"(?:JobError|UsageError): (.*)$", re.MULTILINE)
_WHERE = re.compile(r" \[while running .*")
_STATE = re.compile(r"^Pipeline \S+ failed in state [A-Z]+: ")


def run(arguments: argparse.Namespace, rest: Sequence[str], own_options: Sequence[str]) -> int:
    """Runs the job and gives the exit code. Raises UsageError, JobError."""
    pipeline_options = beam_options(rest, own_options)
    options = run_options(arguments)
    check_no_wait(arguments, pipeline_options)
    check_job_server(pipeline_options)
    quiet_beam()
    FileSystems.set_options(pipeline_options)
    plan = planned(options, in_process=runs_in_process(pipeline_options))
    if leaves_at_once(arguments, pipeline_options):
        with _discarded_on_failure(plan.files):
            job = started_job(plan, pipeline_options, Progress())
        if not arguments.quiet:
            sys.stderr.write(f"threadloom: started{named(job)}; done when {_success(options)} is there\n")
        return DONE
    manifest = carried_out(
        plan, pipeline_options, quiet=arguments.quiet, in_memory_anyway=arguments.in_memory_anyway
    )
    return _verdict(options, manifest)


def quiet_beam() -> None:
    """A failure is one line of ours; Beam would log its traceback first, once a stage."""
    # (Its portable runner logs to the root logger.)
    for name in (None, "apache_beam"):
        logging.getLogger(name).setLevel(logging.CRITICAL)


def carried_out(
    plan: Plan, options: PipelineOptions, *, quiet: bool, in_memory_anyway: bool
) -> dict[str, Any]:
    """Runs the plan to its end, says so, and gives the manifest. Raises UsageError, JobError."""
    started = time.monotonic()
    with _discarded_on_failure(plan.files):
        if runs_in_process(options) and not in_memory_anyway:
            check_memory(plan.inputs, available_bytes())
        with _progress(plan, options, quiet=quiet) as progress:
            execute(plan, options, progress)
    manifest = committed_manifest(plan.files.output)
    if not quiet:
        sys.stderr.write(summary(manifest, plan.files.output, time.monotonic() - started) + "\n")
    return manifest


def _verdict(options: RunOptions, manifest: dict[str, Any]) -> int:
    """The exit code of a job that is done."""
    limit = parsed_limit(options.max_rejected)
    rejected, read = rejected_records(manifest), manifest["read"]["records"]
    if limit.is_exceeded(rejected, read):
        sys.stderr.write(
            f"threadloom: {rejected} of {read} records were rejected, more than --max_rejected "
            f"{options.max_rejected} allows: see {options.output}/rejected\n"
        )
        return TOO_MANY_REJECTED
    return DONE


@contextlib.contextmanager
def _discarded_on_failure(files: ShardFiles) -> Iterator[None]:
    try:
        yield
    except BaseException:
        with contextlib.suppress(Exception):
            discard(files)
        raise


def _success(options: RunOptions) -> str:
    return str(FileSystems.join(options.output, SUCCESS))


def run_options(arguments: argparse.Namespace) -> RunOptions:
    """The options as given, checked. Raises UsageError."""
    values = {name: getattr(arguments, name) for name in RunOptions.__struct_fields__}
    values["input"] = tuple(values["input"])
    values["allowed_tools"] = tuple(
        name.strip() for name in values["allowed_tools"].split(",") if name.strip()
    )
    return RunOptions(**values)


def check_no_wait(arguments: argparse.Namespace, options: PipelineOptions) -> None:
    """Raises UsageError where the command cannot end before its job does."""
    if not arguments.no_wait:
        return
    if runs_in_process(options):
        raise UsageError("--no_wait needs a runner that goes on without this process: see runner_configs/")
    if options.view_as(PortableOptions).environment_type == "LOOPBACK":
        raise UsageError(
            "--no_wait would take --environment_type LOOPBACK its workers: they are this process"
        )
    if arguments.max_rejected is not None:
        raise UsageError("--max_rejected is counted at the end of the job: --no_wait ends before")


def leaves_at_once(arguments: argparse.Namespace, options: PipelineOptions) -> bool:
    """Whether the command ends when the job has started, or when its template is written."""
    return bool(arguments.no_wait or options.get_all_options().get("template_location"))


def started_job(plan: Plan, options: PipelineOptions, progress: Progress) -> PipelineResult:
    """The plan's graph, handed to the runner. Raises JobError."""
    try:
        pipeline = beam.Pipeline(options=options)
        build(pipeline, plan, progress)
        return pipeline.run()
    except Exception as error:  # runners raise whatever the failure was, wrapped in their own way
        raise own_error(error) from error


def own_error(error: Exception) -> BaseException:
    """What a runner's error is to us: a job that failed, or one that was stopped."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, KeyboardInterrupt):
            return cause
        cause = cause.__cause__ or cause.__context__
    return JobError(readable(error))


def execute(plan: Plan, options: PipelineOptions, progress: Progress) -> None:
    """Runs the plan's graph to its end. Raises JobError."""
    result = started_job(plan, options, progress)
    try:
        state = result.wait_until_finish()
    except BaseException as error:
        # Where the job runs elsewhere it would go on, and commit after all.
        with contextlib.suppress(Exception):
            result.cancel()
        if isinstance(error, Exception):
            raise own_error(error) from error
        raise
    if str(state) not in ("DONE", "None"):
        raise JobError(f"the runner ended the job as {state}")


def named(job: PipelineResult) -> str:
    """The name that the runner has given the job, where it has one that one can look for."""
    name = job.job_id() if getattr(job, "has_job", False) else getattr(job, "_job_id", None)
    return f" job {name}" if name else ""


def readable(error: BaseException) -> str:
    """A runner's error in one line: our own message where there is one, else its last line."""
    text = _WHERE.sub("", str(error))
    own = _OWN_ERROR.findall(text)
    if own:
        return str(own[-1])
    if isinstance(error, JobError):
        return text
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return _STATE.sub("", lines[-1]) if lines else type(error).__name__


def committed_manifest(output: str) -> dict[str, Any]:
    """The manifest that the job committed."""
    content: dict[str, Any] = msgspec.json.decode(read_bytes(FileSystems.join(output, MANIFEST)))
    return content


@contextlib.contextmanager
def _progress(plan: Plan, options: PipelineOptions, *, quiet: bool) -> Iterator[Progress]:
    if quiet or not runs_in_process(options):
        yield Progress()
        return
    with ProgressLine(plan.total_bytes) as progress:
        yield progress
