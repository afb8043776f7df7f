"""A real Flink on loopback: a job server with an embedded cluster, or beside a standalone one.

The job server is started as a user starts it, by runner_configs/job_servers/start.sh; a cluster from the
same jars.
"""

from __future__ import annotations

import contextlib
import json
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from servers import JOB_SERVERS, OPENS, Servers, answers, free_ports, jars_of

FLINK = "1.19.3"
LOGGING = """\
rootLogger.level = INFO
rootLogger.appenderRef.c.ref = Console
appender.c.name = Console
appender.c.type = CONSOLE
appender.c.layout.type = PatternLayout
appender.c.layout.pattern = %d{HH:mm:ss,SSS} %-5p %c{1.} - %m%n
"""


class Flink(Servers):
    """One Flink with its job server. `start_cluster` before `start_job_server` makes it standalone.

    Its SDK workers: `process` has each TaskManager start them, `pool` has a worker pool of their own start
    them, `loopback` has the submitting process be one.
    """

    def __init__(self, folder: Path, workers: str) -> None:
        super().__init__(folder)
        self.workers = workers
        self.jars = jars_of("flink") / "flink"
        ports = free_ports(7)
        self.rpc, self.rest, self.job, self.pool = ports[0], ports[1], ports[2], ports[5]
        self.conf = folder / "conf"
        self.conf.mkdir()
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
            "taskmanager.memory.task.off-heap.size": "1024m",
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
            "taskmanager.load-balance.mode": "SLOTS",
        }

    def start_cluster(self, task_managers: int = 2) -> None:
        """A JobManager, so many TaskManagers, and a worker pool if wanted, each a process of its own."""
        entry = "org.apache.flink.runtime.entrypoint.StandaloneSessionClusterEntrypoint"
        main = [entry, "--configDir", str(self.conf), "--executionMode", "cluster"]
        self._java("jobmanager", ["-Xmx1g"], main)
        for number in range(task_managers):
            self.start_task_manager(f"taskmanager{number}")
        if self.workers == "pool":
            pool = ["-m", "apache_beam.runners.worker.worker_pool_main", f"--service_port={self.pool}"]
            self.start("pool", [sys.executable, *pool])
        self.wait(lambda: self.task_managers() == task_managers, "the TaskManagers")

    def start_task_manager(self, name: str) -> None:
        sizes = ["-Xmx1152m", "-Xms256m", "-XX:MaxDirectMemorySize=1280m", "-XX:MaxMetaspaceSize=384m"]
        entry = "org.apache.flink.runtime.taskexecutor.TaskManagerRunner"
        main = [entry, "--configDir", str(self.conf), "-D", f"taskmanager.resource-id={name}"]
        self._java(name, sizes, main)

    def start_job_server(self) -> None:
        """Beam's job server, for the cluster if there is one, else with one embedded."""
        master = f"localhost:{self.rest}" if "jobmanager" in self.processes else "[local]"
        ports = ["--job-port", self.job, "--artifact-port", self.job + 1, "--expansion-port", self.job + 2]
        folders = ["--artifacts-dir", self.folder / "artifacts", "--flink-conf-dir", self.conf]
        start = [JOB_SERVERS / "start.sh", "flink", master, *ports, *folders]
        self.start("jobserver", [str(part) for part in start], JAVA_OPTS=self._logging)
        self.wait(lambda: answers(self.job), "the job server")

    def options(self) -> list[str]:
        """The runner's options for a job on this Flink."""
        options = ["--runner=PortableRunner", f"--job_endpoint=localhost:{self.job}", "--max_bundle_size=1"]
        if self.workers == "loopback":
            return [*options, "--environment_type=LOOPBACK"]
        if self.workers == "pool":
            where = ["--environment_type=EXTERNAL", f"--environment_config=localhost:{self.pool}"]
        else:
            started = json.dumps({"command": str(Path(sys.executable).parent / "threadloom-worker")})
            where = ["--environment_type=PROCESS", f"--environment_config={started}"]
        return [*options, *where, "--parallelism=2"]

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

    def wait_for_a_task(self, before: set[str]) -> None:
        """Waits until a job that is not one of those before has a task that runs."""

        def runs() -> bool:
            jobs = self.overview("jobs/overview")["jobs"]
            return any(job["jid"] not in before and job["tasks"]["running"] for job in jobs)

        self.wait(runs, "a task of the job", seconds=120)

    def sdk_workers(self) -> list[int]:
        """The SDK workers that the TaskManagers or the pool have started."""
        mine = {process.pid for process in self.processes.values()}
        found = []
        for entry in Path("/proc").iterdir():
            with contextlib.suppress(OSError, ValueError, IndexError):
                parent = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
                if parent in mine and b"java" not in (entry / "cmdline").read_bytes().split(b"\0")[0]:
                    found.append(int(entry.name))
        return found

    @property
    def _logging(self) -> str:
        return f"-Dlog4j.configurationFile=file:{self.conf}/log4j-console.properties"

    def _java(self, name: str, sizes: list[str], main: list[str]) -> None:
        command = ["java", *sizes, *OPENS, self._logging, "-cp", f"{self.jars}/*", *main]
        self.start(name, command, FLINK_CONF_DIR=str(self.conf))


@contextlib.contextmanager
def flink(folder: Path, *, workers: str, task_managers: int = 0) -> Iterator[Flink]:
    """A running Flink, embedded where it has no TaskManagers; stopped at the end, whatever happens."""
    one = Flink(folder, workers)
    try:
        if task_managers:
            one.start_cluster(task_managers)
        one.start_job_server()
        yield one
    finally:
        one.stop()
