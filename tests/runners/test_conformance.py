"""One archive on every runner: the SHA-256 of every data file is the same."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from flink import flink
from job_service import job_service
from prism import prism
from product import ARCHIVES, FIVE, ROOT, hashes, run, threadloom
from spark import spark

sys.path.insert(0, str(ROOT / "benchmarks"))

import archive

FIVE_ARCHIVES = [part for pattern in FIVE for part in ("--input", str(ARCHIVES / pattern))]
MESSAGES = 300_000
Runner = Callable[[Path], contextlib.AbstractContextManager[list[str]]]


@contextlib.contextmanager
def two_workers(_folder: Path) -> Iterator[list[str]]:
    yield ["--direct_running_mode=multi_processing", "--direct_num_workers=2"]


@contextlib.contextmanager
def flink_local(folder: Path) -> Iterator[list[str]]:
    with flink(folder, workers="loopback") as one:
        yield one.options()


@contextlib.contextmanager
def flink_cluster(folder: Path) -> Iterator[list[str]]:
    with flink(folder, workers="process", task_managers=2) as one:
        yield one.options()


@contextlib.contextmanager
def flink_beside_a_pool(folder: Path) -> Iterator[list[str]]:
    """A TaskManager with its worker pool, as in one of Kubernetes' pods."""
    with flink(folder, workers="pool", task_managers=1) as one:
        yield one.options()


RUNNERS: dict[str, Runner] = {
    "two workers": two_workers,
    "job service": job_service,
    "Flink local": flink_local,
    "Flink cluster": flink_cluster,
    "Flink beside a pool": flink_beside_a_pool,
    "Prism": prism,
    "Spark": spark,
}
BY_HAND = ("Flink beside a pool",)
OF_THE_LARGE_ARCHIVE = ("two workers", "job service", "Flink local", "Flink cluster")


@pytest.fixture(scope="module")
def of_five(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("five")
    run(folder / "out", *FIVE_ARCHIVES, "--dataset", "both", "--num_shards", "3")
    return hashes(folder / "out")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("made") / f"chat-{MESSAGES}.jsonl"
    archive.write(path, archive.chat_records(MESSAGES, seed=7))
    return path


@pytest.fixture(scope="module")
def of_made(made: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("made-out")
    manifest = run(folder / "out", "--input", made, "--dataset", "both")
    assert manifest["read"]["messages"] == MESSAGES
    return hashes(folder / "out")


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.cluster if name in BY_HAND else pytest.mark.live)
        for name in RUNNERS
    ],
)
def test_the_five_archives(name: str, of_five: dict[str, str], tmp_path: Path) -> None:
    with RUNNERS[name](tmp_path / "runner") as options:
        done = threadloom(
            *("run", "--output", tmp_path / "out", *FIVE_ARCHIVES),
            *("--dataset", "both", "--num_shards", "3", *options),
        )
    assert done.returncode == 0, done.stderr
    assert hashes(tmp_path / "out") == of_five


@pytest.mark.live
@pytest.mark.parametrize("name", OF_THE_LARGE_ARCHIVE)
def test_the_large_archive(name: str, made: Path, of_made: dict[str, str], tmp_path: Path) -> None:
    """As many shards as its size asks for, which is the same on every runner."""
    with RUNNERS[name](tmp_path / "runner") as options:
        done = threadloom("run", "--input", made, "--output", tmp_path / "out", "--dataset", "both", *options)
    assert done.returncode == 0, done.stderr
    assert hashes(tmp_path / "out") == of_made
