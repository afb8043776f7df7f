"""A real Flink on loopback: a job server with an embedded cluster, or beside a standalone one.

Jars come from Maven (tests/flink/pom.xml) and from the PyPI package apache-flink-libraries, once, into
a cache. Every process has ports and folders of its own, and is stopped by the id that started it.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tarfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from product import ROOT, environment

FLINK = "1.19.3"
CACHE = Path(os.environ.get("THREADLOOM_CACHE", Path.home() / ".cache" / "threadloom")) / f"flink-{FLINK}"
POM = ROOT / "tests" / "flink" / "pom.xml"
_OPENED = (
    "java.lang java.lang.invoke java.lang.reflect java.util java.util.concurrent "
    "java.util.concurrent.atomic java.nio java.net java.io java.text java.time java.math sun.nio.ch"
)
# Java 17 keeps these to itself, and Flink and Beam reach into them.
OPENS = [f"--add-opens=java.base/{name}=ALL-UNNAMED" for name in _OPENED.split()]
LOGGING = """\
rootLogger.level = INFO
rootLogger.appenderRef.c.ref = Console
appender.c.name = Console
appender.c.type = CONSOLE
appender.c.layout.type = PatternLayout
appender.c.layout.pattern = %d{HH:mm:ss,SSS} %-5p %c{1.} - %m%n
"""


def jars() -> tuple[Path, Path]:
    """The folders of the runner's jars and of Flink's own, filled if they are not."""
    runner, flink = CACHE / "runner", CACHE / "flink"
    CACHE.mkdir(parents=True, exist_ok=True)
    if not (CACHE / "runner.done").exists():
        shutil.rmtree(runner, ignore_errors=True)
        copy = ["mvn", "-q", "-B", "-f", str(POM), "dependency:copy-dependencies"]
        subprocess.run([*copy, "-DincludeScope=runtime", f"-DoutputDirectory={runner}"], check=True)
        (CACHE / "runner.done").touch()
    if not (CACHE / "flink.done").exists():
        package = [f"apache-flink-libraries=={FLINK}", "--no-deps", "-d", str(CACHE)]
        subprocess.run([sys.executable, "-m", "pip", "download", "-q", *package], check=True)
        (archive,) = CACHE.glob("apache?flink?libraries*.tar.gz")
        flink.mkdir(exist_ok=True)
        with tarfile.open(archive) as packed:
            for member in packed:
                if member.isfile() and "/deps/lib/" in member.name:
                    member.name = Path(member.name).name
                    packed.extract(member, flink, filter="data")
        archive.unlink()
        (CACHE / "flink.done").touch()
    return runner, flink


def free_ports(count: int) -> list[int]:
    """So many free ports in a row."""
    for base in range(21_000, 60_000, 37):
        with contextlib.ExitStack() as held, contextlib.suppress(OSError):
            for port in range(base, base + count):
                probe = held.enter_context(socket.socket())
                probe.bind(("127.0.0.1", port))
            return list(range(base, base + count))
    raise AssertionError("no free ports")


class Flink:
    """One Flink with its job server. `start_cluster` before `start_job_server` makes it standalone."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.runner, self.flink = jars()
        ports = free_ports(7)
        self.rpc, self.rest, self.job, self.pool = ports[0], ports[1], ports[2], ports[5]
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.conf = folder / "conf"
        self.conf.mkdir(parents=True)
        (folder / "tmp").mkdir()
        (self.conf / "log4j-console.properties").write_text(LOGGING)
        (self.conf / "config.yaml").write_text(json.dumps(self._settings()))

    def _settings(self) -> dict[str, Any]:
        """Flat keys; JSON is YAML. A TaskManager wants every size given."""
        return {
            "jobmanager.rpc.address": "localhost",
            "jobmanager.rpc.port": self.rpc,
            "jobmanager.bind-host": "localhost",
            "jobmanager.memory.process.size": "1600m",
            "taskmanager.host": "localhost",
            "taskmanager.bind-host": "localhost",
            "taskmanager.rpc.port": "0",
            "taskmanager.numberOfTaskSlots": 2,
            "taskmanager.cpu.cores": 1.0,
            "taskmanager.memory.framework.heap.size": "128m",
            "taskmanager.memory.framework.off-heap.size": "128m",
            "taskmanager.memory.task.heap.size": "1024m",
            "taskmanager.memory.task.off-heap.size": "64m",
            "taskmanager.memory.managed.size": "512m",
            "taskmanager.memory.network.min": "128m",
            "taskmanager.memory.network.max": "128m",
            "taskmanager.memory.jvm-metaspace.size": "384m",
            "taskmanager.memory.jvm-overhead.min": "192m",
            "taskmanager.memory.jvm-overhead.max": "192m",
            "rest.address": "localhost",
            "rest.bind-address": "localhost",
            "rest.port": self.rest,
            "rest.bind-port": str(self.rest),
            "blob.server.port": "0",
            "heartbeat.interval": 2000,
            "heartbeat.timeout": 10000,
            "restart-strategy.type": "fixed-delay",
            # One TaskManager that dies can cost several: its tasks fail one after the other.
            "restart-strategy.fixed-delay.attempts": 15,
            "restart-strategy.fixed-delay.delay": "2s",
            "io.tmp.dirs": str(self.folder / "tmp"),
        }

    def start_cluster(self, task_managers: int = 2) -> None:
        """A JobManager, so many TaskManagers, and a worker pool, each a process of its own."""
        entry = "org.apache.flink.runtime.entrypoint.StandaloneSessionClusterEntrypoint"
        main = [entry, "--configDir", str(self.conf), "--executionMode", "cluster"]
        self._java("jobmanager", ["-Xmx1g"], [self.flink], main)
        for number in range(task_managers):
            self.start_task_manager(f"taskmanager{number}")
        pool = ["-m", "apache_beam.runners.worker.worker_pool_main", f"--service_port={self.pool}"]
        self._start("pool", [sys.executable, *pool])
        self._wait(lambda: self.task_managers() == task_managers, "the TaskManagers")

    def start_task_manager(self, name: str) -> None:
        sizes = ["-Xmx1152m", "-Xms256m", "-XX:MaxDirectMemorySize=320m", "-XX:MaxMetaspaceSize=384m"]
        entry = "org.apache.flink.runtime.taskexecutor.TaskManagerRunner"
        main = [entry, "--configDir", str(self.conf), "-D", f"taskmanager.resource-id={name}"]
        self._java(name, sizes, [self.flink], main)

    def start_job_server(self) -> None:
        """Beam's job server, for the cluster if there is one, else with one embedded."""
        master = f"localhost:{self.rest}" if "jobmanager" in self.processes else "[local]"
        ports = ["--job-port", self.job, "--artifact-port", self.job + 1, "--expansion-port", self.job + 2]
        entry = "org.apache.beam.runners.flink.FlinkJobServerDriver"
        main = [
            *(entry, "--job-host", "localhost", *map(str, ports)),
            *("--artifacts-dir", str(self.folder / "artifacts"), "--flink-master", master),
            *("--flink-conf-dir", str(self.conf)),
        ]
        self._java("jobserver", ["-Xmx2g"], [self.flink, self.runner], main)
        self._wait(lambda: _answers(self.job), "the job server")

    def options(self) -> list[str]:
        """The runner's options for a job on this Flink."""
        options = ["--runner=PortableRunner", f"--job_endpoint=localhost:{self.job}"]
        if "pool" in self.processes:
            environment_of_pool = [
                "--environment_type=EXTERNAL",
                f"--environment_config=localhost:{self.pool}",
            ]
            return [*options, *environment_of_pool, "--parallelism=2"]
        return [*options, "--environment_type=LOOPBACK"]

    def overview(self, path: str) -> Any:
        with urllib.request.urlopen(f"http://localhost:{self.rest}/{path}", timeout=5) as answer:
            return json.load(answer)

    def task_managers(self) -> int:
        with contextlib.suppress(OSError, ValueError):
            return len(self.overview("taskmanagers")["taskmanagers"])
        return 0

    def job_ids(self) -> set[str]:
        """The jobs that the cluster knows."""
        return {job["jid"] for job in self.overview("jobs/overview")["jobs"]}

    def wait_for_share(self, before: set[str], share: float) -> None:
        """Waits until a job that is not one of those before runs, and that share of its tasks is done."""

        def reached() -> bool:
            for job in self.overview("jobs/overview")["jobs"]:
                tasks = job["tasks"]
                if job["jid"] not in before and tasks["running"] + tasks["finished"]:
                    return bool(tasks["finished"] >= share * tasks["total"])
            return False

        self._wait(reached, "that share of the job", seconds=120)

    def kill(self, name: str) -> None:
        """kill -9, as a machine that is lost."""
        self.processes[name].kill()
        self.processes[name].wait()

    def sdk_workers(self) -> list[int]:
        """The worker processes that the pool has started."""
        pool = self.processes["pool"].pid
        found = []
        for entry in Path("/proc").iterdir():
            with contextlib.suppress(OSError, ValueError, IndexError):
                parent = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
                if parent == pool:
                    found.append(int(entry.name))
        return found

    def stop(self) -> None:
        for process in reversed(self.processes.values()):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
        for process in self.processes.values():
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout=10)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)

    def _java(self, name: str, sizes: list[str], folders: list[Path], main: list[str]) -> None:
        # With Flink's own dist in front, the runner's copies of its parts are not looked at.
        entries = [f"{folder}/*" for folder in folders]
        if name == "jobserver":
            first = [*self.flink.glob("flink-dist-*.jar"), *self.flink.glob("log4j-*.jar")]
            entries = [*map(str, first), f"{self.runner}/*"]
        logging = f"-Dlog4j.configurationFile=file:{self.conf}/log4j-console.properties"
        self._start(name, ["java", *sizes, *OPENS, logging, "-cp", ":".join(entries), *main])

    def _start(self, name: str, command: list[str]) -> None:
        log = open(self.folder / f"{name}.log", "wb")  # noqa: SIM115 (the process keeps it)
        self.processes[name] = subprocess.Popen(
            command,
            cwd=self.folder,
            env={
                **environment(),
                "FLINK_CONF_DIR": str(self.conf),
                # The worker pool starts its workers as plain `python`.
                "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            },
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    def _wait(self, ready: Any, what: str, seconds: int = 90) -> None:
        for _ in range(seconds * 5):
            if ready():
                return
            for name, process in self.processes.items():
                if process.poll() not in (None, -signal.SIGKILL):
                    log = (self.folder / f"{name}.log").read_text()[-2000:]
                    raise AssertionError(f"{name} ended with {process.returncode}:\n{log}")
            time.sleep(0.2)
        raise AssertionError(f"{what} did not come up within {seconds} s")


def _answers(port: int) -> bool:
    with contextlib.suppress(OSError):
        socket.create_connection(("localhost", port), timeout=1).close()
        return True
    return False


@contextlib.contextmanager
def flink(folder: Path, *, standalone: bool) -> Iterator[Flink]:
    """A running Flink; stopped at the end, whatever happens."""
    one = Flink(folder)
    try:
        if standalone:
            one.start_cluster()
        one.start_job_server()
        yield one
    finally:
        one.stop()
