"""Who runs beside whom: the job and its peers, the two datasets of AG-UI archives, what a start takes."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq
from check_rows import check_rows
from measuring import Contestant

HERE = Path(__file__).parent
PEERS_FOLDER = HERE / "peers"
# Node finds packages from the script's place: the script is run in a folder where they are installed.
NODE = Path(os.environ.get("THREADLOOM_CACHE", Path.home() / ".cache" / "threadloom")) / "benchmark-node"

JOB = "threadloom"
TRAINING, REPLAY = "training rows", "replay rows"
EMPTY = "empty Beam pipeline"

# The peers' scripts, and whether they can express all that the job's rows hold.
SCRIPTS = {
    "naive_beam": ("naive_beam.py", False),
    "plain_python": ("plain_python.py", True),
    "polars": ("polars_script.py", False),
    "duckdb": ("duckdb_script.py", False),
    "node": ("node/chat_package.mjs", True),
    "limit": ("limit.py", True),
}


def job_and_peers(archive: Path, names: Sequence[str]) -> list[Contestant]:
    """The job, then the peers; each peer's rows are checked against the job's after its first run."""
    job_rows: list[Path] = []

    def keep(output: Path) -> None:
        job_rows.append(output / "training")
        if "limit" in names:
            limit = [sys.executable, str(PEERS_FOLDER / "limit.py"), "--input", str(archive)]
            subprocess.run([*limit, "--finish", str(job_rows[0])], check=True)

    def peer(name: str) -> Contestant:
        script, everything = SCRIPTS[name]
        runner = _installed_node(script) if name == "node" else [sys.executable, str(PEERS_FOLDER / script)]

        def check(output: Path) -> None:
            compared = check_rows(job_rows[0], output, archive, everything=everything)
            print(f"{name}: the job's rows; role and content compared of {compared} messages", flush=True)

        return Contestant(
            name, lambda output: [*runner, "--input", str(archive), "--output", str(output)], check
        )

    return [_run(JOB, archive, "training", keep), *map(peer, names)]


def both_datasets(archive: Path) -> list[Contestant]:
    """The job's training rows and its replay rows of one archive."""
    return [
        _run(TRAINING, archive, "training", lambda output: _say_rows(TRAINING, output / "training")),
        _run(REPLAY, archive, "replay", lambda output: _say_rows(REPLAY, output / "replay")),
    ]


def starts(archive: Path) -> list[Contestant]:
    """What a tiny run and the help take beside an empty Beam pipeline."""
    return [
        Contestant(EMPTY, lambda _output: [sys.executable, str(HERE / "empty_pipeline.py")]),
        _run("threadloom run, 10 messages", archive, "training"),
        Contestant("threadloom --help", lambda _output: [sys.executable, "-m", "pipeline", "--help"]),
    ]


def _run(
    name: str, archive: Path, dataset: str, after: Callable[[Path], None] = lambda _output: None
) -> Contestant:
    command = [sys.executable, "-m", "pipeline", "run", "--quiet", "--dataset", dataset]
    return Contestant(
        name, lambda output: [*command, "--input", str(archive), "--output", str(output)], after
    )


def _say_rows(name: str, folder: Path) -> None:
    counts = pq.read_table(folder, columns=["message_count"])["message_count"]
    print(f"{name}: {len(counts)} rows of {pc.sum(counts)} messages", flush=True)


def _installed_node(script: str) -> list[str]:
    """The command of the Node peer; installs its packages into the cache where they are not yet."""
    source = PEERS_FOLDER / script
    wanted, installed = source.parent / "package.json", NODE / "package.json"
    node = shutil.which("node")
    if node is None:
        raise SystemExit("the peer `node` needs Node 20 or later")
    complete = NODE / "node_modules" / ".package-lock.json"
    if not complete.exists() or wanted.read_bytes() != installed.read_bytes():
        NODE.mkdir(parents=True, exist_ok=True)
        shutil.copy(wanted, NODE)
        subprocess.run(["npm", "install", "--no-package-lock", "--prefix", str(NODE)], check=True)
    shutil.copy(source, NODE)
    return [node, "--max-semi-space-size=64", str(NODE / source.name)]
