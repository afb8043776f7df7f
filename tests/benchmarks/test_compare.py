"""The benchmark still runs, and its peers still give the job's rows."""

from __future__ import annotations

import subprocess
import sys

import pytest
from product import ROOT, environment


@pytest.mark.live
def test_the_peers_give_the_rows_of_the_job() -> None:
    peers = "naive_beam,plain_python,polars,duckdb"
    done = subprocess.run(
        [
            *(sys.executable, "benchmarks/compare.py", "--messages", "2000", "--rounds", "1"),
            *("--peers", peers),
        ],
        cwd=ROOT,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    for peer in peers.split(","):
        assert f"{peer}: the job's rows; role and content compared of " in done.stdout
        assert f"| {peer} | " in done.stdout
