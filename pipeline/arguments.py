"""The command line of `threadloom run`: our options in groups, option files, and refusals.

No Beam here: `--help` must not wait for it.
"""

from __future__ import annotations

import argparse
import difflib
import shlex
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NoReturn

from pipeline.streaming.arguments import add_compact, add_streaming
from schemas.errors import UsageError
from schemas.formats import REPLAY_FORMATS, TRAINING_FORMATS
from transforms.providers import Provider

EPILOG = """\
examples:
  threadloom run --input 'archive/*.jsonl' --output out --dataset training
  threadloom run --input a.jsonl.gz --input b.parquet --output out --dataset both --allowed_tools get_weather
  threadloom run --input 'gs://b/a/*.jsonl' --output gs://b/out --dataset replay @runner_configs/dataflow.args

Options that are not listed are Apache Beam's (--runner, --temp_location, …). One in a file is written
@file: one or more options a line, # starts a comment.

exit codes: 0 done; 1 the job failed; 2 wrong usage; 3 done, but more was rejected than allowed
"""


class _Parser(argparse.ArgumentParser):
    """argparse that raises instead of leaving the process."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(message)


def run_parser(subparsers: argparse._SubParsersAction[_Parser]) -> None:
    """Adds `run` and its options."""
    run = subparsers.add_parser(
        "run",
        help="make datasets of an archive",
        description="Groups an archive's messages by thread, sorts them by dateSent, and writes "
        "training and replay datasets to Parquet.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    _what(run.add_argument_group("what goes in and out"))
    _how(run.add_argument_group("how it is converted"))
    _running(run.add_argument_group("how it runs"))
    add_streaming(run.add_argument_group("archives that keep growing"))


def _what(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--input",
        action="append",
        metavar="PATTERN",
        default=[],
        help="files to read: .jsonl, .jsonl.gz, .jsonl.zst, .avro, .parquet; local, gs:// or s3://; "
        "may be given several times",
    )
    group.add_argument("--output", metavar="FOLDER", default="", help="folder to write the datasets to")
    group.add_argument(
        "--dataset",
        metavar="WHICH",
        default="training",
        help="training (to fine-tune on), replay (histories to send again) or both; default: training",
    )
    group.add_argument(
        "--source",
        metavar="KIND",
        default="auto",
        help="chat-sdk, ag-ui or auto (told apart record by record); default: auto",
    )
    formats = ", ".join(item.value for item in TRAINING_FORMATS)
    replay = ", ".join(item.value for item in REPLAY_FORMATS)
    group.add_argument(
        "--format",
        metavar="NAME",
        help=f"of the training dataset: {formats} (default: messages for Chat SDK archives, trl for "
        f"AG-UI ones); of the replay dataset: {replay}",
    )
    group.add_argument("--overwrite", action="store_true", help="replace the result that the output holds")


def _how(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--include_names",
        action="store_true",
        help="put `[userName]: ` before a user's text (Chat SDK)",
    )
    group.add_argument(
        "--allowed_tools",
        metavar="NAME,NAME",
        default="",
        help="tools whose calls, where a model wrote them as text, become real calls (AG-UI)",
    )
    group.add_argument(
        "--guards",
        metavar="KIND",
        default="strict",
        help="strict: histories that providers accept; upstream: exactly what the serving side "
        "makes, faults included; default: strict",
    )
    group.add_argument(
        "--provider",
        metavar="NAME",
        help="hold replay rows (and AG-UI training rows) to one provider's own rules as well: "
        + ", ".join(Provider),
    )
    group.add_argument(
        "--keep_pending_call",
        action="store_true",
        help="keep a call that still has no result at the very end of a thread",
    )
    group.add_argument(
        "--attachment_root",
        metavar="DIR",
        help="local folder below which the paths of attachments are read; without it only data "
        "inside the records is used",
    )
    group.add_argument(
        "--transform_message",
        metavar="MODULE:FUNCTION",
        help="called with (message, record) for each Chat SDK message; gives the message to write, "
        "or None to skip it",
    )
    group.add_argument(
        "--on_unsupported_attachment",
        metavar="MODULE:FUNCTION",
        help="called with (attachment, record) for each video and audio attachment",
    )
    group.add_argument(
        "--duplicates",
        metavar="WHICH",
        default="latest",
        help="of several records with one id: latest, or keep all; default: latest",
    )


def _running(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--num_shards",
        metavar="N",
        type=int,
        help="files a dataset; default: one for each 32 MiB of archive",
    )
    group.add_argument(
        "--max_rejected",
        metavar="N|P%",
        help="exit with 3 if more records than this were rejected (the result is still written)",
    )
    group.add_argument(
        "--in_memory_anyway",
        action="store_true",
        help="start the in-process runner even if the archive is expected not to fit the memory",
    )
    group.add_argument(
        "--no_wait",
        action="store_true",
        help="end as soon as the job has started, on a runner that goes on without this process",
    )
    group.add_argument("--quiet", action="store_true", help="no progress line and no summary")


def check_parser(subparsers: argparse._SubParsersAction[_Parser]) -> None:
    """Adds `check` and its options."""
    check = subparsers.add_parser(
        "check",
        help="say which rows of a replay dataset a provider would reject",
        description="Reads a replay dataset (an output of threadloom, or any Parquet or JSON lines "
        "whose `messages` are LangChain, OpenAI or AG-UI messages) and says which rows break which "
        "rule of which provider. Exit codes: 0 none, 1 some, 2 wrong usage.",
        allow_abbrev=False,
    )
    check.add_argument("path", metavar="PATH", help="a file, a folder or a pattern")
    check.add_argument(
        "--provider", metavar="NAME", default="all", help=f"all (default), {', '.join(Provider)}"
    )
    check.add_argument(
        "--as_request",
        action="store_true",
        help="add the rules of a request that is made of the history as it is: how it may end",
    )
    check.add_argument(
        "--json", action="store_true", help="one JSON line a broken row, and one with the sums"
    )
    check.add_argument("--show", metavar="N", type=int, default=10, help="broken rows to show; default: 10")


def parser() -> argparse.ArgumentParser:
    """The parser of the whole command."""
    top = _Parser(
        prog="threadloom",
        description="Conversation archives to training and replay datasets.",
        epilog="threadloom COMMAND --help explains a command.",
        allow_abbrev=False,
    )
    subparsers = top.add_subparsers(dest="command", metavar="COMMAND", required=True, parser_class=_Parser)
    run_parser(subparsers)
    add_compact(subparsers)
    check_parser(subparsers)
    return top


def expanded(arguments: Sequence[str]) -> list[str]:
    """The arguments with every `@file` replaced by the options in it. Raises UsageError."""
    result: list[str] = []
    for argument in arguments:
        if argument.startswith("@") and len(argument) > 1:
            result += _file_arguments(argument[1:])
        else:
            result.append(argument)
    return result


def _file_arguments(path: str) -> list[str]:
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        problem = error.strerror if isinstance(error, OSError) else "not UTF-8"
        raise UsageError(f"option file {path!r} cannot be read: {problem}") from None
    try:
        return [word for line in text.splitlines() for word in shlex.split(line, comments=True)]
    except ValueError as error:
        raise UsageError(f"option file {path!r}: {error}") from None


def unknown_option(name: str, known: Iterable[str]) -> UsageError:
    """The refusal of an option that nobody knows, with the nearest name."""
    near = difflib.get_close_matches(name, sorted(known), n=1, cutoff=0.7)
    hint = f": did you mean {near[0]}?" if near else "; threadloom run --help lists the options"
    return UsageError(f"unknown option {name}{hint}")
