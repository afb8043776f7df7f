"""How the processes of a run get their memory: settings that the allocators read when a process starts.

Where measured: benchmarks/README.md. On other platforms the variables mean nothing, and harm nothing.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Mapping

# The run's own process moves large blocks all the time, and here a page that is touched for the first time
# costs as much as copying it: so pages are huge, what is freed is kept for the next block, and Arrow, Python
# and their threads share it.
FAST = {
    "ARROW_DEFAULT_MEMORY_POOL": "system",
    "GLIBC_TUNABLES": ":".join(
        f"glibc.malloc.{name}={value}"
        for name, value in {
            "hugetlb": 1,
            "mmap_threshold": 32 << 20,
            "trim_threshold": 2 << 30,
            "arena_max": 2,
        }.items()
    ),
}

# A worker lives for many bundles: by default the allocators keep what each of its threads has freed,
# half as much again as a bundle takes.
LEAN = {
    "ARROW_DEFAULT_MEMORY_POOL": "system",
    "MALLOC_ARENA_MAX": "2",
    "MALLOC_MMAP_THRESHOLD_": "1000000",
    "MALLOC_TRIM_THRESHOLD_": "1000000",
}


_COMMANDS = ("threadloom", "threadloom-worker", "__main__.py")


def start_again_with(settings: Mapping[str, str]) -> None:
    """Replaces this process by the same command under these settings; returns where that is not to be.

    So it is where they hold already (what the user has set stays as it is), where this is not a command of
    ours but a program that calls us, which would begin a second time, and where it cannot be done.
    """
    missing = {name: value for name, value in settings.items() if name not in os.environ}
    if not missing or sys.platform != "linux" or os.path.basename(sys.argv[0]) not in _COMMANDS:
        return
    with contextlib.suppress(OSError, ValueError):
        os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], {**os.environ, **missing})
