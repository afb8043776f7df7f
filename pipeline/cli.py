"""The command `threadloom`."""

from __future__ import annotations

import argparse
import contextlib
import gc
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence

from pipeline.arguments import expanded, parser, unknown_option
from pipeline.streaming.arguments import check_streaming
from schemas.errors import JobError, UsageError

FAILED, USAGE = 1, 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command and gives its exit code: 0 done, 1 failed, 2 wrong usage, 3 too many rejects."""
    try:
        return _command(sys.argv[1:] if arguments is None else arguments)
    except UsageError as error:
        _say(error)
        return USAGE
    except JobError as error:
        _say(error)
        return FAILED
    except KeyboardInterrupt as stopped:
        _say("stopped; nothing was committed")
        return 128 + (stopped.args[0] if stopped.args else signal.SIGINT)
    except BrokenPipeError:
        # Whoever read the report has seen enough of it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED


def _command(arguments: Sequence[str]) -> int:
    top = parser()
    known, rest = top.parse_known_args(expanded(arguments))
    if known.command == "check":
        if rest:
            raise unknown_option(rest[0], _own_options("check"))
        from pipeline.checking import check  # Arrow takes a while to import: not for --help

        return check(known)
    # A hook is found where the command is run, behind all that is installed.
    if os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())
    # Beam and its clients log on import and while they run; what matters to a user is raised.
    logging.basicConfig(level=logging.ERROR, format="%(name)s: %(message)s")
    return _run(known, rest)


def _run(known: argparse.Namespace, rest: Sequence[str]) -> int:
    # Threads that work ahead or behind come back for short moments: at Python's 5 ms they would mostly wait.
    sys.setswitchinterval(0.001)
    # An import makes objects that stay: a garbage collector that looks at them takes a quarter of its time.
    gc.disable()
    try:
        command = _loaded(known)
    finally:
        gc.freeze()
        gc.enable()
    with _stopped_cleanly():
        return command(known, rest, _own_options(known.command))


def _loaded(known: argparse.Namespace) -> Callable[[argparse.Namespace, Sequence[str], Sequence[str]], int]:
    """What runs the command. Beam takes a second to import: not for --help."""
    if known.command == "compact":
        from pipeline.streaming.compact import compact

        return compact
    check_streaming(known)
    if known.streaming:
        from pipeline.streaming.run import run_stream

        return run_stream
    from pipeline.run import run

    return run


@contextlib.contextmanager
def _stopped_cleanly() -> Iterator[None]:
    """Who ends a run politely gets what Ctrl-C does: the run's files are taken away first."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, _frame: object) -> None:
        raise KeyboardInterrupt(number)

    # What nohup has made deaf stays deaf.
    heard = [one for one in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(one) is signal.SIG_DFL]
    for number in heard:
        signal.signal(number, stop)
    try:
        yield
    finally:
        for number in heard:
            signal.signal(number, signal.SIG_DFL)


def _own_options(command: str) -> list[str]:
    commands = parser()._subparsers._group_actions[0].choices  # type: ignore[union-attr]
    actions = commands[command]._actions  # type: ignore[index]
    return [name for action in actions for name in action.option_strings]


def _say(message: object) -> None:
    line = " ".join(str(message).split())
    sys.stderr.write(f"threadloom: error: {line}\n")
