"""How the processes of a run get their memory: settings that the allocators read when a process starts.

Where measured: benchmarks/README.md. On other platforms the variables mean nothing, and harm nothing.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence

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


def start_again_with(settings: Mapping[str, str], command: Sequence[str]) -> None:
    """Replaces this process by the command, under these settings; returns where they hold already.

    What the user has set stays as it is.
    """
    missing = {name: value for name, value in settings.items() if name not in os.environ}
    if missing and sys.platform == "linux":
        os.execve(sys.executable, [sys.executable, *command], {**os.environ, **missing})
