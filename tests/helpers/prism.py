"""Prism, Beam's reference runner, on loopback: built from its Go module, once, into a cache."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

from servers import CACHE, Servers, answers, free_ports

VERSION = "2.77.0"
MODULE = f"github.com/apache/beam/sdks/v2/go/cmd/prism@v{VERSION}"


@contextlib.contextmanager
def prism(folder: Path) -> Iterator[list[str]]:
    """A running Prism; gives the options that send a job there."""
    binary = _built()
    (port,) = free_ports(1)
    servers = Servers(folder)
    try:
        servers.start("prism", [str(binary), f"--job_port={port}", "--serve_http=false"])
        servers.wait(lambda: answers(port), "prism")
        yield ["--runner=PortableRunner", f"--job_endpoint=localhost:{port}", "--environment_type=LOOPBACK"]
    finally:
        servers.stop()


def _built() -> Path:
    binary = CACHE / f"prism-{VERSION}" / "prism"
    if not binary.exists():
        place = {"GOBIN": str(binary.parent)}
        subprocess.run(["go", "install", MODULE], env={**os.environ, **place}, check=True)
    return binary
