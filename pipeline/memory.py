"""Whether an archive fits the in-process runner, before it starts.

A thread is never split, and nothing is known yet of how large the largest is: so the estimate is for an
archive that is mostly one thread. Measured (benchmarks/README.md): such a one takes 4 bytes of memory for
each byte of unpacked Chat SDK archive and 8 of AG-UI; a usual one half a byte and 3, beside the base. Six are
taken. With an output on an object store the whole shuffle is in memory as well.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path

from pipeline.inputs import InputFile
from pipeline.options import INFLATION
from schemas.errors import UsageError

BASE_BYTES = 300 << 20
BYTES_A_BYTE = 6
_CGROUP_FILES = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


def estimated_bytes(inputs: Sequence[InputFile]) -> int:
    """Peak memory of a run over these files in the in-process runner."""
    unpacked = sum(file.size * INFLATION.get(file.format, 1) for file in inputs)
    return BASE_BYTES + BYTES_A_BYTE * unpacked


def available_bytes() -> int | None:
    """Memory that this process may still take: of the machine, or of its container if that is less."""
    limits: list[int] = []
    with contextlib.suppress(OSError, ValueError, StopIteration):
        lines = Path("/proc/meminfo").read_text().splitlines()
        line = next(line for line in lines if line.startswith("MemAvailable:"))
        limits.append(int(line.split()[1]) << 10)
    for path in _CGROUP_FILES:
        with contextlib.suppress(OSError, ValueError):
            limits.append(int(Path(path).read_text()))
    return min(limits, default=None)


def check_memory(inputs: Sequence[InputFile], available: int | None) -> None:
    """Raises UsageError, with what to do, where the run is expected not to fit."""
    needed = estimated_bytes(inputs)
    if available is not None and needed > available:
        raise UsageError(
            f"the in-process runner could need {_gib(needed)} of memory for this archive, if it is mostly "
            f"one thread, and {_gib(available)} are there: run it with @runner_configs/flink_local.args or "
            "@runner_configs/flink_cluster.args, or add --in_memory_anyway"
        )


def _gib(size: int) -> str:
    return f"{size / (1 << 30):.1f} GiB"
