"""Servers that a test starts on loopback: jars, ports, logs; each is stopped by the id that started it."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from product import ROOT, environment

CACHE = Path(os.environ.get("THREADLOOM_CACHE", Path.home() / ".cache" / "threadloom"))
JOB_SERVERS = ROOT / "runner_configs" / "job_servers"
_OPENED = (
    "java.lang java.lang.invoke java.lang.reflect java.util java.util.concurrent "
    "java.util.concurrent.atomic java.nio java.net java.io java.text java.time java.math sun.nio.ch "
    "sun.nio.cs sun.security.action sun.util.calendar"
)
# Java 17 keeps these to itself, and Flink reaches into them.
OPENS = [f"--add-opens=java.base/{name}=ALL-UNNAMED" for name in _OPENED.split()]


def jars_of(name: str) -> Path:
    """The folder of a job server's jars, flink or spark, filled if it is not."""
    fetch = [str(JOB_SERVERS / "fetch_jars.sh"), name]
    fetched = subprocess.run(fetch, env={**os.environ, "PYTHON": sys.executable}, check=True, stdout=-1)
    return Path(fetched.stdout.decode().strip())


def free_ports(count: int) -> list[int]:
    """So many free ports in a row."""
    for base in range(21_000, 60_000, 37):
        with contextlib.ExitStack() as held, contextlib.suppress(OSError):
            for port in range(base, base + count):
                probe = held.enter_context(socket.socket())
                probe.bind(("127.0.0.1", port))
            return list(range(base, base + count))
    raise AssertionError("no free ports")


def answers(port: int) -> bool:
    """Whether something listens on that port of loopback."""
    with contextlib.suppress(OSError):
        socket.create_connection(("localhost", port), timeout=1).close()
        return True
    return False


class Servers:
    """Some processes, their logs in one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        (folder / "tmp").mkdir(parents=True)

    def start(self, name: str, command: list[str], **variables: str) -> None:
        # Workers are started by name: the environment that runs the tests must come first.
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        log = open(self.folder / f"{name}.log", "wb")  # noqa: SIM115 (the process keeps it)
        self.processes[name] = subprocess.Popen(
            command,
            cwd=self.folder,
            env={**environment(), "PATH": path, **variables},
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    def wait(self, ready: Callable[[], bool], what: str, seconds: int = 90) -> None:
        """Until it is ready. Raises AssertionError where a server ends before, or it takes too long."""
        for _ in range(seconds * 5):
            if ready():
                return
            for name, process in self.processes.items():
                if process.poll() not in (None, -signal.SIGKILL):
                    log = (self.folder / f"{name}.log").read_text()[-2000:]
                    raise AssertionError(f"{name} ended with {process.returncode}:\n{log}")
            time.sleep(0.2)
        raise AssertionError(f"{what} did not come up within {seconds} s")

    def kill(self, name: str) -> None:
        """kill -9, as a machine that is lost."""
        self.processes[name].kill()
        self.processes[name].wait()

    def stop(self) -> None:
        for process in reversed(self.processes.values()):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
        for process in self.processes.values():
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout=10)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
