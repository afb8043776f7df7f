"""How time and memory grow: with the archive, and with the size of its threads. Draws benchmarks/growth.png.

    python benchmarks/growth.py

Archives of 100,000 to 3,000,000 messages; and 1,000,000 messages in threads of 1 to 1,000,000 messages each.
Made where they are missing, below benchmarks/data. Prints the table that the plot shows: wall and CPU
microseconds a message and bytes of peak memory a message, start and base process included.
"""

from __future__ import annotations

import argparse
import re
import tempfile
from pathlib import Path
from typing import NamedTuple

import contestants
import matplotlib
from compare import DATA, made_archive
from measuring import Figures, measured

matplotlib.use("Agg")
import matplotlib.pyplot as plt

SIZES = [100_000, 300_000, 1_000_000, 3_000_000]
THREAD_SIZES = [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000]
OF_THREADS = 1_000_000
_THREAD_ID = re.compile(rb'"threadId":"[^"]*"')


class Point(NamedTuple):
    """One archive: what grows, its messages, and what the job took."""

    at: int
    messages: int
    figures: Figures

    @property
    def per_message(self) -> tuple[float, float, float]:
        """Wall and CPU microseconds, and bytes of peak memory."""
        wall, cpu, peak = self.figures
        return wall / self.messages * 1e6, cpu / self.messages * 1e6, peak * (1 << 20) / self.messages


def of_threads(size: int) -> Path:
    """The archive of 1,000,000 messages with that many in each thread, in the order of their numbers."""
    path = DATA / f"threads-{size}.jsonl"
    if not path.exists():
        unfinished = path.with_suffix(".unfinished")
        with open(made_archive("chat", OF_THREADS), "rb") as lines, open(unfinished, "wb") as out:
            for number, line in enumerate(lines):
                out.write(_THREAD_ID.sub(b'"threadId":"slack:C1:%d"' % (number // size), line, count=1))
        unfinished.rename(path)
    return path


def point(at: int, messages: int, archive: Path) -> Point:
    """The better of two runs of the job: what else the machine does only adds."""
    (job,) = contestants.job_and_peers(archive, [])
    with tempfile.TemporaryDirectory(prefix="threadloom-benchmark-") as folder:
        runs = [measured(job.command(Path(folder) / str(run))) for run in range(2)]
    return Point(at, messages, min(runs, key=lambda one: one.wall))


def printed(title: str, points: list[Point]) -> list[Point]:
    print(f"| {title} | wall us | CPU us | peak bytes | (a message) |\n|---|---|---|---|---|", flush=True)
    for one in points:
        wall, cpu, peak = one.per_message
        print(f"| {one.at:,} | {wall:.2f} | {cpu:.2f} | {peak:,.0f} | |", flush=True)
    return points


def drawn(by_size: list[Point], by_thread: list[Point], path: Path) -> None:
    figure, axes = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
    labels = ("messages in the archive", "messages in each thread (1,000,000 in all)")
    for axis, points, label in zip(axes, (by_size, by_thread), labels, strict=True):
        at = [one.at for one in points]
        axis.plot(at, [one.per_message[0] for one in points], "o-", color="tab:blue", label="wall, µs")
        axis.plot(at, [one.per_message[1] for one in points], "s--", color="tab:cyan", label="CPU, µs")
        axis.set(xscale="log", xlabel=label, ylabel="µs a message")
        axis.set_ylim(bottom=0)
        axis.grid(alpha=0.3)
        memory = axis.twinx()
        peaks = [one.per_message[2] / 1024 for one in points]
        memory.plot(at, peaks, "^:", color="tab:red", label="peak memory, KiB")
        memory.set_ylabel("KiB a message", color="tab:red")
        memory.set_ylim(bottom=0)
        lines = [*axis.get_lines(), *memory.get_lines()]
        axis.legend(lines, [line.get_label() for line in lines], loc="best", fontsize=8)
    figure.savefig(path, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--plot", type=Path, default=Path(__file__).parent / "growth.png")
    options = parser.parse_args()
    by_size = [point(size, size, made_archive("chat", size)) for size in SIZES]
    printed("messages", by_size)
    by_thread = [point(size, OF_THREADS, of_threads(size)) for size in THREAD_SIZES]
    printed("messages in each thread", by_thread)
    drawn(by_size, by_thread, options.plot)


if __name__ == "__main__":
    main()
