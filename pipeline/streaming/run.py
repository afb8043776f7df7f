"""`threadloom run --streaming`: options to a plan, the plan to a job, and a line a minute."""

from __future__ import annotations

import argparse
import contextlib
import signal
import sys
import time
from collections.abc import Sequence
from typing import Any, TextIO

import apache_beam as beam
from apache_beam.io.filesystems import FileSystems
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.runners.runner import PipelineResult, PipelineState

from pipeline.beam_options import beam_options, runs_in_process
from pipeline.commit import has_result
from pipeline.job_server import check_job_server
from pipeline.options import RunOptions
from pipeline.plan import checked_hooks, targets_of
from pipeline.run import DONE, named, own_error, quiet_beam, run_options
from pipeline.streaming.graph import StreamPlan, build_stream
from pipeline.streaming.log import CommitLog
from pipeline.streaming.options import LANES, StreamOptions, milliseconds, size_in_bytes
from pipeline.streaming.status import read_status
from schemas.errors import JobError, UsageError

STREAMING_CONFIGS = ("flink_streaming", "flink_streaming_local", "prism_streaming", "dataflow_streaming")
_LINE_SECONDS = 60.0
_LOOK_SECONDS = 1.0
_ENDED = (PipelineState.DONE, PipelineState.FAILED, PipelineState.CANCELLED, PipelineState.DRAINED)


def run_stream(arguments: argparse.Namespace, rest: Sequence[str], own_options: Sequence[str]) -> int:
    """Starts the job, and stays with it until it ends or is stopped. Raises UsageError, JobError."""
    pipeline_options = beam_options([*rest, "--streaming"], own_options)
    stream = stream_options(arguments)
    arguments.input = list(stream.sources)
    options = run_options(arguments)
    if runs_in_process(pipeline_options):
        configs = ", ".join(f"@runner_configs/{name}.args" for name in STREAMING_CONFIGS)
        raise UsageError(
            f"--streaming needs a runner that never ends, this process is none: add one of {configs}"
        )
    quiet_beam()
    FileSystems.set_options(pipeline_options)
    # No other runner has this option, and without checkpoints Flink would never publish a commit.
    given = pipeline_options.get_all_options()
    on_flink = given.get("checkpointing_interval") is not None
    if on_flink and not given.get("state_backend_storage_path"):
        raise UsageError("--state_backend_storage_path is needed: where checkpoints go, on all machines")
    plan = stream_plan(options, stream, on_flink=on_flink)
    check_job_server(pipeline_options)
    _check_output(options.output, goes_on=_goes_on(pipeline_options))
    job = _started(plan, pipeline_options)
    if not arguments.quiet:
        sys.stderr.write(f"threadloom: started{named(job)}; commits appear in {options.output}\n")
    if arguments.no_wait or given.get("template_location"):
        return DONE
    try:
        _stay_with(job, options.output, None if arguments.quiet else sys.stderr)
    except KeyboardInterrupt as stopped:
        with contextlib.suppress(Exception):
            job.cancel()
        commits = len(CommitLog(options.output).numbers())
        sys.stderr.write(f"threadloom: stopped; {options.output} has {commits} commits\n")
        return 128 + (stopped.args[0] if stopped.args else signal.SIGINT)
    return DONE


def stream_options(arguments: argparse.Namespace) -> StreamOptions:
    """The streaming options as given, checked. Raises UsageError."""
    values: dict[str, Any] = {
        "watch": tuple(arguments.watch or ()),
        "kafka_brokers": arguments.kafka_brokers,
        "kafka_topics": tuple(arguments.kafka_topic or ()),
        "kafka_expansion_service": arguments.kafka_expansion_service,
        "pubsub_subscription": arguments.pubsub_subscription,
        "lanes": LANES if arguments.num_shards is None else arguments.num_shards,
    }
    for option, name in (
        ("poll_every", "poll_ms"),
        ("session_gap", "gap_ms"),
        ("allowed_lateness", "lateness_ms"),
        ("commit_every", "commit_ms"),
    ):
        given = getattr(arguments, option)
        if given is not None:
            values[name] = milliseconds(option, given)
    if arguments.commit_bytes is not None:
        values["commit_bytes"] = size_in_bytes("commit_bytes", arguments.commit_bytes)
    return StreamOptions(**values)


def stream_plan(options: RunOptions, stream: StreamOptions, *, on_flink: bool = False) -> StreamPlan:
    """The plan for these options. Raises UsageError where a hook cannot be had.

    Nothing can be looked at before it comes, so the format is the one that is named, else that of the
    vocabulary that `--source` names.
    """
    targets = targets_of(options, holds_agui=options.source == "ag-ui")
    return StreamPlan(options, stream, targets, checked_hooks(options), on_flink)


def _goes_on(options: PipelineOptions) -> bool:
    """Whether the job goes on from the state of an earlier one."""
    given = options.get_all_options()
    return bool(given.get("savepoint_path") or given.get("update"))


def _check_output(output: str, *, goes_on: bool) -> None:
    try:
        if has_result(output):
            raise UsageError(f"--output {output!r} holds the result of a batch run: name another folder")
        commits = len(CommitLog(output).numbers())
    except UsageError:
        raise
    except Exception as error:  # each file system raises errors of its own
        raise JobError(f"--output {output!r} cannot be read: {error}") from None
    if commits and not goes_on:
        raise UsageError(
            f"--output {output!r} holds {commits} commits of an earlier job, and this one knows nothing of "
            "what that has read: go on from its last checkpoint (--savepoint_path), or name another folder"
        )
    if goes_on and not commits:
        raise UsageError(
            f"--output {output!r} holds no commits: a job that goes on writes where it wrote before"
        )


def _started(plan: StreamPlan, options: PipelineOptions) -> PipelineResult:
    try:
        pipeline = beam.Pipeline(options=options)
        build_stream(pipeline, plan)
        return pipeline.run()
    except Exception as error:  # runners raise whatever the failure was, wrapped in their own way
        raise own_error(error) from error


def _stay_with(job: PipelineResult, output: str, lines: TextIO | None) -> None:
    """Prints a line a minute until the job ends. Raises JobError."""
    printed = time.monotonic()
    try:
        while (state := job.state) not in _ENDED:
            time.sleep(_LOOK_SECONDS)
            if lines is not None and time.monotonic() - printed >= _LINE_SECONDS:
                printed = time.monotonic()
                _print_line(output, lines)
    except Exception as error:  # whatever the runner's client raises when nobody answers
        raise JobError("the job server does not answer any more; the job itself may go on") from error
    if state == PipelineState.FAILED:
        raise JobError("the runner ended the job as FAILED: its log says why")
    if lines is not None:
        lines.write(f"threadloom: the runner ended the job as {state}\n")


def _print_line(output: str, lines: TextIO) -> None:
    status = read_status(output)
    told = "nothing read yet" if status is None else status.line(int(time.time() * 1000))
    lines.write(f"threadloom: {told}\n")
    lines.flush()
