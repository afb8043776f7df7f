"""What dies in the middle of a job on a Flink cluster: it ends right all the same, or fails clean."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from flink import Flink, flink
from product import chat, command, environment, hashes, manifest, run, write_lines

MESSAGES, SHARDS = 60_000, 30
WHAT = ["--dataset", "both", "--num_shards", str(SHARDS)]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A seeded archive that takes the cluster some seconds, a hot thread among its threads."""
    folder = tmp_path_factory.mktemp("made")
    rng = random.Random(11)
    for part in range(4):
        records = [
            chat(number, "x" * rng.randrange(300), thread=f"t{int(rng.paretovariate(0.4)) % 500}")
            | {"id": f"m{part}-{number}"}
            for number in range(MESSAGES // 4)
        ]
        write_lines(folder / f"part{part}.jsonl", records)
    return folder


@pytest.fixture(scope="module")
def expected(made: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("expected")
    run(folder / "out", "--input", made / "*.jsonl", *WHAT)
    return hashes(folder / "out")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Flink]:
    with flink(tmp_path_factory.mktemp("cluster") / "flink", workers="process", task_managers=2) as one:
        yield one


def started(cluster: Flink, output: Path, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        command("run", "--output", str(output), *WHAT, *arguments, *cluster.options()),
        env=environment(),
        text=True,
        stderr=subprocess.PIPE,
    )


# The moments, as the output folder shows them.
MOMENTS: dict[str, Callable[[Path], bool]] = {
    "reads": lambda output: True,
    "writes": lambda output: len(list(output.glob("_temporary/*/*.parquet"))) > SHARDS // 2,
    "commits": lambda output: any(output.glob("*/part-*.parquet")),
}


def wait_for(moment: str, output: Path, job: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 180
    while not MOMENTS[moment](output):
        assert job.poll() is None, "the job was over before anything died"
        assert time.monotonic() < deadline
        time.sleep(0.001)


def lose_a_task_manager(cluster: Flink) -> None:
    cluster.kill("taskmanager0")
    cluster.start_task_manager("taskmanager0")


def lose_both_task_managers(cluster: Flink) -> None:
    for name in ("taskmanager0", "taskmanager1"):
        cluster.kill(name)
    for name in ("taskmanager0", "taskmanager1"):
        cluster.start_task_manager(name)


def lose_the_sdk_workers(cluster: Flink) -> None:
    # Where nothing is read yet they are only being started.
    cluster.wait(lambda: bool(cluster.sdk_workers()), "an SDK worker")
    for worker in cluster.sdk_workers():
        os.kill(worker, signal.SIGKILL)


BY_HAND = pytest.mark.cluster
IN_CI = pytest.mark.live


@pytest.mark.parametrize(
    ("moment", "lose"),
    [
        pytest.param("reads", lose_the_sdk_workers, marks=IN_CI),
        pytest.param("writes", lose_a_task_manager, marks=IN_CI),
        pytest.param("commits", lose_both_task_managers, marks=IN_CI),
        pytest.param("reads", lose_a_task_manager, marks=BY_HAND),
        pytest.param("writes", lose_the_sdk_workers, marks=BY_HAND),
        pytest.param("commits", lose_the_sdk_workers, marks=BY_HAND),
    ],
    ids=lambda value: value if isinstance(value, str) else value.__name__,
)
def test_while_it(
    moment: str,
    lose: Callable[[Flink], None],
    made: Path,
    tmp_path: Path,
    expected: dict[str, str],
    cluster: Flink,
) -> None:
    before = cluster.job_ids()
    job = started(cluster, tmp_path / "out", "--input", str(made / "*.jsonl"))
    cluster.wait_for_a_task(before)
    wait_for(moment, tmp_path / "out", job)
    lose(cluster)
    _out, said = job.communicate(timeout=400)
    if job.returncode:
        assert "threadloom: error:" in said
        assert not (tmp_path / "out" / "_SUCCESS").exists()
        job = started(cluster, tmp_path / "out", "--input", str(made / "*.jsonl"))
        _out, said = job.communicate(timeout=400)
        assert job.returncode == 0, said
    assert hashes(tmp_path / "out") == expected
    assert manifest(tmp_path / "out")["read"]["records"] == MESSAGES
    assert not (tmp_path / "out" / "_temporary").exists()
