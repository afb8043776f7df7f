"""Spark on loopback: Beam's job server with Spark in its process (runner_configs/job_servers)."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from servers import JOB_SERVERS, Servers, answers, free_ports, jars_of


@contextlib.contextmanager
def spark(folder: Path) -> Iterator[list[str]]:
    """A running Spark; gives the options that send a job there."""
    jars_of("spark")
    ports = free_ports(3)
    servers = Servers(folder)
    try:
        servers.start(
            "jobserver",
            [
                *(str(JOB_SERVERS / "start.sh"), "spark", "local[2]", "--job-port", str(ports[0])),
                *("--artifact-port", str(ports[1]), "--expansion-port", str(ports[2])),
                *("--artifacts-dir", str(folder / "artifacts")),
            ],
            JAVA_OPTS=f"-Djava.io.tmpdir={folder / 'tmp'}",
        )
        servers.wait(lambda: answers(ports[0]), "the job server")
        yield [
            "--runner=PortableRunner",
            f"--job_endpoint=localhost:{ports[0]}",
            "--environment_type=LOOPBACK",
        ]
    finally:
        servers.stop()
