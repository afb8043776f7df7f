"""A real Kafka on loopback, one broker, and Beam's expansion service with the connector beside it."""

from __future__ import annotations

import contextlib
import json
import subprocess
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from servers import CACHE, ROOT, Servers, answers, free_ports

POM = Path(__file__).parent / "broker.pom.xml"
START = ROOT / "runner_configs" / "kafka" / "start.sh"


class Kafka(Servers):
    """One broker, and the expansion service, which a user starts by runner_configs/kafka/start.sh."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.port, self.controller, self.expansion = free_ports(3)
        self.jars = _jars()
        self.settings = folder / "server.properties"
        self.settings.write_text("\n".join(f"{name}={value}" for name, value in self._settings().items()))

    @property
    def address(self) -> str:
        return f"localhost:{self.port}"

    def _settings(self) -> dict[str, Any]:
        return {
            "process.roles": "broker,controller",
            "node.id": 1,
            "controller.quorum.voters": f"1@localhost:{self.controller}",
            "listeners": f"PLAINTEXT://localhost:{self.port},CONTROLLER://localhost:{self.controller}",
            "advertised.listeners": f"PLAINTEXT://localhost:{self.port}",
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "log.dirs": str(self.folder / "data"),
            "offsets.topic.replication.factor": 1,
            "transaction.state.log.replication.factor": 1,
            "transaction.state.log.min.isr": 1,
            "group.initial.rebalance.delay.ms": 0,
            "auto.create.topics.enable": "false",
        }

    def start_broker(self) -> None:
        classes = f"{self.jars}/*"
        tool = ["java", "-cp", classes, "kafka.tools.StorageTool"]
        made = subprocess.run([*tool, "random-uuid"], check=True, capture_output=True, text=True)
        identity = made.stdout.split()[-1]
        formatting = [*tool, "format", "-t", identity, "-c", str(self.settings)]
        subprocess.run(formatting, check=True, capture_output=True)
        self.start("broker", ["java", "-Xmx512m", "-cp", classes, "kafka.Kafka", str(self.settings)])
        self.wait(lambda: answers(self.port), "the broker")

    def start_expansion_service(self) -> None:
        self.start("expansion", [str(START), str(self.expansion)])
        self.wait(lambda: answers(self.expansion), "the expansion service")

    def create(self, topic: str, partitions: int) -> None:
        from confluent_kafka.admin import AdminClient, NewTopic

        admin = AdminClient({"bootstrap.servers": self.address})
        for made in admin.create_topics([NewTopic(topic, partitions, 1)]).values():
            made.result(30)

    def produce(self, topic: str, records: Sequence[dict[str, Any] | bytes], partitions: int) -> None:
        """Sends them, those of a thread to one partition, and waits until the broker has them."""
        from confluent_kafka import Producer

        producer = Producer({"bootstrap.servers": self.address, "linger.ms": 5})
        for record in records:
            value = record if isinstance(record, bytes) else json.dumps(record).encode()
            key = b"" if isinstance(record, bytes) else str(record["threadId"]).encode()
            producer.produce(topic, value, partition=zlib.crc32(key) % partitions)
            producer.poll(0)
        assert producer.flush(30) == 0

    def options(self) -> list[str]:
        return [f"--kafka_brokers={self.address}", f"--kafka_expansion_service=localhost:{self.expansion}"]


def _jars() -> Path:
    """The broker's jars, fetched once."""
    folder = CACHE / f"broker-{zlib.crc32(POM.read_bytes())}"
    if not (folder / "done").exists():
        fetch = ["mvn", "-q", "-B", "-f", str(POM), "dependency:copy-dependencies", "-DincludeScope=runtime"]
        subprocess.run([*fetch, f"-DoutputDirectory={folder}"], check=True, capture_output=True)
        (folder / "done").touch()
    return folder


@contextlib.contextmanager
def kafka(folder: Path) -> Iterator[Kafka]:
    """A running Kafka with the connector's expansion service; stopped at the end, whatever happens."""
    one = Kafka(folder)
    try:
        one.start_broker()
        one.start_expansion_service()
        yield one
    finally:
        one.stop()
