"""The job beside its peers: each in turn, several rounds, in one run; prints ratios.

    python benchmarks/compare.py --messages 1000000 --rounds 3 [--peers polars,duckdb]
    python benchmarks/compare.py --messages 300000 --agui      replay rows beside training rows
    python benchmarks/compare.py --rounds 5 --start            what a start takes

Makes the archives that are missing (`archive.py`, below benchmarks/data). After its first run each
peer's rows are checked against the job's (`check_rows.py`), and a difference ends the comparison.
Only the ratios of one run mean something; a core is a second of CPU.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import archive
import contestants
from measuring import in_turn, table

DATA = Path(__file__).parent / "data"
SEED = 7


def made_archive(kind: str, messages: int) -> Path:
    """The archive of so many messages, made where it is missing."""
    path = DATA / f"{kind}-{messages}.jsonl"
    if not path.exists():
        make = archive.agui_records if kind == "agui" else archive.chat_records
        unfinished = path.with_suffix(".unfinished")
        archive.write(unfinished, make(messages, SEED))
        unfinished.rename(path)
    return path


def peer_names(value: str) -> list[str]:
    names = value.split(",")
    for name in names:
        if name not in contestants.SCRIPTS:
            raise argparse.ArgumentTypeError(f"{name!r} is none of {', '.join(contestants.SCRIPTS)}")
    return names


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--messages", type=int, default=300_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--peers", type=peer_names, default=list(contestants.SCRIPTS))
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument("--agui", action="store_true")
    mode.add_argument("--start", action="store_true")
    options = parser.parse_args()
    messages: int | None = options.messages
    if options.start:
        messages, everyone = None, contestants.starts(made_archive("chat", 10))
    elif options.agui:
        everyone = contestants.both_datasets(made_archive("agui", options.messages))
    else:
        everyone = contestants.job_and_peers(made_archive("chat", options.messages), options.peers)
    figures = in_turn(everyone, options.rounds)
    print("\n" + table(figures, everyone[0].name, messages))


if __name__ == "__main__":
    main()
