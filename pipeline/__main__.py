"""The command `threadloom`, and `python -m pipeline`: a process with the allocators set for a run."""

from __future__ import annotations

import os
import sys

from pipeline.allocators import FAST, start_again_with


def command() -> int:
    """The command's exit code; see `pipeline.cli.main`."""
    if sys.argv[1:2] == ["run"]:
        start_again_with(FAST)
    from pipeline.cli import main  # not before: all that is imported by then is imported twice

    code = main()
    if code > 128:
        # Stopped in the middle of the runner's work: its own threads may never notice.
        sys.stderr.flush()
        os._exit(code)
    return code


if __name__ == "__main__":
    raise SystemExit(command())
