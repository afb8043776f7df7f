"""The same job on a real Flink: the same bytes, also when a part of it dies in the middle."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from flink import Flink, flink
from product import ARCHIVES, FIVE, chat, command, environment, hashes, manifest, run, write_lines

sys.path.insert(0, str(Path(__file__).parent.parent.parent / "benchmarks"))

FIVE_INPUTS = [part for pattern in FIVE for part in ("--input", str(ARCHIVES / pattern))]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A seeded archive that takes the cluster some seconds: 60,000 messages, a hot thread among them."""
    folder = tmp_path_factory.mktemp("made")
    rng = random.Random(11)
    for part in range(4):
        records = [
            chat(number, "x" * rng.randrange(300), thread=f"t{int(rng.paretovariate(0.4)) % 500}")
            | {"id": f"m{part}-{number}"}
            for number in range(15_000)
        ]
        write_lines(folder / f"part{part}.jsonl", records)
    return folder


@pytest.fixture(scope="module")
def expected(made: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, str]]:
    folder = tmp_path_factory.mktemp("expected")
    run(folder / "five", *FIVE_INPUTS, "--dataset", "both", "--num_shards", "3")
    run(folder / "made", "--input", made / "*.jsonl", "--dataset", "both", "--num_shards", "5")
    return {"five": hashes(folder / "five"), "made": hashes(folder / "made")}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Flink]:
    with flink(tmp_path_factory.mktemp("cluster"), standalone=True) as one:
        yield one


def started(on: Flink, output: Path, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        command("run", "--output", str(output), "--dataset", "both", *arguments, *on.options()),
        env=environment(),
        text=True,
        stderr=subprocess.PIPE,
    )


def finished(job: subprocess.Popen[str]) -> None:
    _out, said = job.communicate(timeout=300)
    assert job.returncode == 0, said


@pytest.mark.live
def test_embedded(tmp_path: Path, expected: Any) -> None:
    with flink(tmp_path / "flink", standalone=False) as one:
        finished(started(one, tmp_path / "out", *FIVE_INPUTS, "--num_shards", "3"))
    assert hashes(tmp_path / "out") == expected["five"]


@pytest.mark.cluster
def test_cluster(cluster: Flink, made: Path, tmp_path: Path, expected: Any) -> None:
    finished(started(cluster, tmp_path / "five", *FIVE_INPUTS, "--num_shards", "3"))
    assert hashes(tmp_path / "five") == expected["five"]
    finished(started(cluster, tmp_path / "made", "--input", str(made / "*.jsonl"), "--num_shards", "5"))
    assert hashes(tmp_path / "made") == expected["made"]


@pytest.mark.cluster
@pytest.mark.parametrize("share", [0.0, 0.3, 0.6])
@pytest.mark.parametrize("victim", ["TaskManager", "SDK worker"])
def test_what_dies_in_the_middle(
    victim: str, share: float, made: Path, tmp_path: Path, expected: Any, cluster: Flink
) -> None:
    """Killed when that share of the job's tasks is done, the job restarts and ends right, or fails clean."""
    arguments = ["--input", str(made / "*.jsonl"), "--num_shards", "5"]
    before = cluster.job_ids()
    job = started(cluster, tmp_path / "out", *arguments)
    cluster.wait_for_share(before, share)
    if victim == "TaskManager":
        cluster.kill("taskmanager0")
        cluster.start_task_manager("taskmanager0")
    else:
        for worker in cluster.sdk_workers()[:1]:
            os.kill(worker, signal.SIGKILL)
    assert job.poll() is None, "the job was over before anything died"
    _out, said = job.communicate(timeout=400)
    if job.returncode:
        assert "threadloom: error:" in said
        assert not (tmp_path / "out" / "_SUCCESS").exists()
        finished(started(cluster, tmp_path / "out", *arguments))
    assert hashes(tmp_path / "out") == expected["made"]
    assert manifest(tmp_path / "out")["read"]["records"] == 60_000
    assert not (tmp_path / "out" / "_temporary").exists()
