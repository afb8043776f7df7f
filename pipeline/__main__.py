"""The command `threadloom`, and `python -m pipeline`: a process with the allocators set for a run."""

from __future__ import annotations

import sys

from pipeline.allocators import FAST, start_again_with


def command() -> int:
    """The command's exit code; see `pipeline.cli.main`."""
    if sys.argv[1:2] == ["run"]:
        start_again_with(FAST, sys.orig_argv[1:])
    from pipeline.cli import main  # not before: all that is imported by then is imported twice

    return main()


if __name__ == "__main__":
    raise SystemExit(command())
