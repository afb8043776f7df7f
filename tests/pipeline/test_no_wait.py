"""`--no_wait`: the command ends, the job goes on; refused where that cannot be."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from job_service import job_service
from product import ARCHIVES, FIVE, hashes, refused, run, threadloom

ARCHIVE = ["--input", ARCHIVES / FIVE[0]]
SERVICE = ["--runner=PortableRunner", "--job_endpoint=localhost:1"]


@pytest.mark.parametrize(
    ("more", "named"),
    [
        ([], "runner_configs"),
        (["--runner=DirectRunner"], "runner_configs"),
        ([*SERVICE, "--environment_type=LOOPBACK"], "LOOPBACK"),
        ([*SERVICE, "--max_rejected=5"], "--max_rejected"),
    ],
)
def test_refused(more: list[str], named: str, tmp_path: Path) -> None:
    said = refused(tmp_path / "out", *ARCHIVE, "--no_wait", *more, code=2)
    assert "--no_wait" in said
    assert named in said


@pytest.mark.live
def test_the_job_goes_on(tmp_path: Path) -> None:
    run(tmp_path / "expected", *ARCHIVE)
    with job_service(tmp_path) as options:
        done = threadloom("run", "--output", tmp_path / "out", *ARCHIVE, "--no_wait", *options)
        assert done.returncode == 0, done.stderr
        (line,) = done.stderr.splitlines()
        assert line.startswith("threadloom: started job ")
        assert line.endswith(f"done when {tmp_path}/out/_SUCCESS is there")
        deadline = time.monotonic() + 60
        while not (tmp_path / "out" / "_SUCCESS").exists():
            assert time.monotonic() < deadline
            time.sleep(0.1)
    assert hashes(tmp_path / "out") == hashes(tmp_path / "expected")
