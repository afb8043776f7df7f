"""Beam's portable job service on loopback, with the workers in a process of their own."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from product import environment


@contextlib.contextmanager
def job_service(folder: Path) -> Iterator[list[str]]:
    """A running job service; gives the options that send a job there."""
    port_file = folder / "port"
    service = subprocess.Popen(
        [
            *(sys.executable, "-m", "apache_beam.runners.portability.local_job_service_main"),
            *(f"--port_file={port_file}", f"--staging_dir={folder / 'staging'}"),
        ],
        env=environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield [
            "--runner=PortableRunner",
            f"--job_endpoint=localhost:{_port(port_file)}",
            "--environment_type=beam:env:harness_subprocess_python:v1",
            f"--environment_config={sys.executable} -m apache_beam.runners.worker.sdk_worker_main",
        ]
    finally:
        service.terminate()
        service.wait(timeout=30)


def _port(port_file: Path) -> int:
    for _ in range(300):
        if port_file.exists() and port_file.read_text().strip():
            return int(port_file.read_text())
        time.sleep(0.1)
    raise AssertionError("the job service gave no port within 30 s")
