"""The streaming mode on a Flink cluster with checkpoints: a watched folder and a real Kafka, parts killed."""

from __future__ import annotations

import itertools
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from flink import Flink, flink
from kafka import kafka
from product import hashes, manifest, rejects, run, threadloom, write_lines
from streaming_job import Stream, Talk, commits, committed_rows, drop, latest_rows

pytestmark = pytest.mark.live

GAP_SECONDS = 6
HOW = [
    f"--session_gap={GAP_SECONDS}s",
    "--allowed_lateness=8s",
    "--commit_every=5s",
    "--poll_every=1s",
    "@runner_configs/flink_streaming.args",
    "--checkpointing_interval=2000",
]


def job(cluster: Flink, output: Path, *arguments: str) -> Stream:
    checkpoints = f"--state_backend_storage_path=file://{output.parent}/checkpoints"
    given = [*cluster.options(), "--max_bundle_size=2000", "--parallelism=1", checkpoints]
    return Stream(output, [*HOW, *given, *arguments])


def last_checkpoint(output: Path) -> str:
    whole = (output.parent / "checkpoints").glob("*/chk-*/_metadata")
    return f"--savepoint_path=file://{max(whole, key=lambda path: path.stat().st_mtime).parent}"


def lose_a_task_manager(cluster: Flink) -> None:
    cluster.kill("taskmanager0")
    cluster.start_task_manager("taskmanager0")


def lose_everything(cluster: Flink) -> None:
    """The whole cluster at once, as when the power fails; and a new one."""
    for name in ("jobserver", "jobmanager", "taskmanager0"):
        cluster.kill(name)
    cluster.start_cluster(1)
    cluster.start_job_server()


def check_rows(output: Path, talk: Talk) -> None:
    """Nothing lost, nothing twice, and every row one session."""
    ids = [one["id"] for one in talk.said if isinstance(one, dict)]
    for dataset in ("training", "replay"):
        rows = latest_rows(output, dataset)
        found = Counter(message_id for row in rows for message_id in row["message_ids"])
        assert found == Counter(ids)
        for row in rows:
            moments = [sent.timestamp() for sent in row["sent_at"]]
            assert all(b - a < GAP_SECONDS for a, b in itertools.pairwise(moments))
        # Some came late: their sessions were given again.
        assert {1, 2} <= {row["version"] for row in committed_rows(output, dataset)}


def live_through_it(
    cluster: Flink,
    output: Path,
    what: list[str],
    talk: Talk,
    send: Callable[[], None],
    *losses: Callable[[Flink], None],
) -> None:
    """Runs the job while people talk and parts are lost, at last all; a new job goes on from there."""

    def send_until(commit: int) -> None:
        """Talks on until so many commits are published, and some seconds longer."""
        deadline = time.monotonic() + 150
        while len(commits(output)) < commit:
            assert time.monotonic() < deadline, stream.log.read_text()[-3000:]
            send_for(1)
        send_for(8)

    def send_for(seconds: int) -> None:
        for _ in range(seconds):
            send()
            time.sleep(1)

    stream = job(cluster, output, *what)
    try:
        send_until(commit=2)
        for lose in losses:
            lose(cluster)
            send_until(commit=len(commits(output)) + 2)
        lose_everything(cluster)
        stream.process.wait(timeout=60)
        send_for(3)
        stream = job(cluster, output, *what, last_checkpoint(output))
        send_until(commit=len(commits(output)) + 1)
        stream.wait_for(len(talk.said), talk.messages)
    finally:
        stream.stop()
    check_rows(output, talk)
    done = threadloom("compact", output, output.parent / "compacted")
    assert done.returncode == 0, done.stderr


def test_a_watched_folder(tmp_path: Path) -> None:
    folder, talk, numbers = tmp_path / "in", Talk(1), itertools.count()
    folder.mkdir()
    pattern = str(folder / "*.jsonl")

    def send() -> None:
        drop(folder, f"part{next(numbers):04d}.jsonl", talk.go_on(150))

    with flink(tmp_path / "flink", workers="process", task_managers=1) as cluster:
        live_through_it(cluster, tmp_path / "out", ["--watch", pattern], talk, send, lose_a_task_manager)
    run(tmp_path / "batch", "--input", pattern, "--dataset", "both")
    assert hashes(tmp_path / "compacted") == hashes(tmp_path / "batch")
    assert manifest(tmp_path / "compacted") == manifest(tmp_path / "batch")


def test_kafka(tmp_path: Path) -> None:
    talk = Talk(2)
    with (
        kafka(tmp_path / "kafka") as broker,
        flink(tmp_path / "flink", workers="process", task_managers=1) as cluster,
    ):
        broker.create("chat", partitions=3)
        what = ["--kafka_topic=chat", *broker.options()]
        live_through_it(
            cluster,
            tmp_path / "out",
            what,
            talk,
            lambda: broker.produce("chat", talk.go_on(150), partitions=3),
        )
    run(tmp_path / "batch", "--input", write_lines(tmp_path / "all.jsonl", talk.said), "--dataset", "both")
    compacted, batch = hashes(tmp_path / "compacted"), hashes(tmp_path / "batch")
    for dataset in ("training", "replay"):
        assert of_dataset(compacted, dataset) == of_dataset(batch, dataset)
    # A message of a broker has another place than a line of a file, and so has its reject.
    refused = rejects(tmp_path / "compacted")
    assert sorted(one["raw"] for one in refused) == sorted(one["raw"] for one in rejects(tmp_path / "batch"))
    assert {one["source_file"].rpartition("/")[0] for one in refused} == {"kafka://chat"}


def of_dataset(files: dict[str, str], dataset: str) -> dict[str, str]:
    return {name: sha256 for name, sha256 in files.items() if name.startswith(f"{dataset}/")}
