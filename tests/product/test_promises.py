"""The same bytes, whatever runs the job; and all or nothing, whatever stops it."""

from __future__ import annotations

import hashlib
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from job_service import job_service
from product import (
    ARCHIVES,
    FIVE,
    chat,
    command,
    environment,
    hashes,
    manifest,
    refused,
    rows,
    run,
    threadloom,
    write_lines,
)

import pipeline.commit
from transforms.dofns import OrderShard

ALL_INPUTS = [argument for pattern in FIVE for argument in ("--input", ARCHIVES / pattern)]


@pytest.fixture(scope="module")
def made_archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files that several splits and blocks are made of, some records of which are bad."""
    folder = tmp_path_factory.mktemp("made")
    rng = random.Random(5)
    for part in range(3):
        records: list[Any] = []
        for number in range(4000):
            text = "x" * rng.randrange(400)
            records.append(chat(number, text, thread=f"t{rng.randrange(200)}"))
            if rng.random() < 0.01:
                records.append(b"rubbish")
            if rng.random() < 0.05:
                records[-1] = {
                    "threadId": f"a{rng.randrange(50)}",
                    "id": f"m{part}-{number}",
                    "role": rng.choice(["user", "assistant"]),
                    "content": text,
                }
        write_lines(folder / f"part{part}.jsonl", records)
    return folder


@pytest.fixture(scope="module")
def expected(made_archive: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    output = tmp_path_factory.mktemp("expected") / "out"
    run(output, "--input", made_archive / "*.jsonl", "--dataset", "both", "--num_shards", "4")
    return hashes(output)


class TestTheSameBytes:
    def arguments(self, archive: Path) -> list[object]:
        return ["--input", archive / "*.jsonl", "--dataset", "both", "--num_shards", "4"]

    def test_twice_in_a_row(self, made_archive: Path, expected: Any, tmp_path: Path) -> None:
        run(tmp_path / "out", *self.arguments(made_archive))
        assert hashes(tmp_path / "out") == expected
        assert len(expected) == 12

    def test_files_listed_in_another_order(self, made_archive: Path, expected: Any, tmp_path: Path) -> None:
        inputs = [
            argument for part in (2, 0, 1, 2) for argument in ("--input", made_archive / f"part{part}.jsonl")
        ]
        run(tmp_path / "out", *inputs, "--dataset", "both", "--num_shards", "4")
        assert hashes(tmp_path / "out") == expected

    def test_two_workers(self, made_archive: Path, expected: Any, tmp_path: Path) -> None:
        done = threadloom(
            "run",
            "--output",
            tmp_path / "out",
            *self.arguments(made_archive),
            "--direct_running_mode=multi_processing",
            "--direct_num_workers=2",
        )
        assert done.returncode == 0, done.stderr
        assert hashes(tmp_path / "out") == expected

    def test_splits_of_another_size(
        self, made_archive: Path, expected: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("pipeline.inputs.splits_of.__defaults__", (10_007,))
        monkeypatch.setattr("pipeline.reading.BLOCK_BYTES", 4_099)
        run(tmp_path / "out", *self.arguments(made_archive))
        assert hashes(tmp_path / "out") == expected

    def test_the_five_archives_by_two_workers(self, tmp_path: Path) -> None:
        run(tmp_path / "one", *ALL_INPUTS, "--dataset", "both", "--num_shards", "2")
        done = threadloom(
            "run",
            "--output",
            tmp_path / "two",
            *ALL_INPUTS,
            *("--dataset", "both", "--num_shards", "2"),
            *("--direct_running_mode", "multi_processing", "--direct_num_workers", "2"),
        )
        assert done.returncode == 0, done.stderr
        assert hashes(tmp_path / "one") == hashes(tmp_path / "two")

    def test_the_manifest_names_every_file_and_its_hash(self, made_archive: Path, tmp_path: Path) -> None:
        content = run(tmp_path / "out", *self.arguments(made_archive))
        assert {file["path"]: file["sha256"] for file in content["files"]} == hashes(tmp_path / "out")
        for file in content["files"]:
            assert (tmp_path / "out" / file["path"]).stat().st_size == file["bytes"]


@pytest.mark.live
def test_the_same_bytes_from_workers_behind_a_job_service(
    made_archive: Path, expected: dict[str, str], tmp_path: Path
) -> None:
    with job_service(tmp_path) as options:
        done = threadloom(
            "run",
            "--output",
            tmp_path / "out",
            *("--input", made_archive / "*.jsonl", "--dataset", "both", "--num_shards", "4"),
            *options,
        )
    assert done.returncode == 0, done.stderr
    assert hashes(tmp_path / "out") == expected


def state(output: Path) -> dict[str, bytes]:
    """What a reader sees: every file but those that wait for a commit."""
    return {
        str(path.relative_to(output)): path.read_bytes()
        for path in output.rglob("*")
        if path.is_file() and "_temporary" not in path.parts
    }


class TestAllOrNothing:
    """A run that is killed leaves no result, and the earlier one as it was."""

    ARGUMENTS = ("--dataset", "both", "--num_shards", "4", "--quiet")

    @pytest.mark.parametrize("share", [0.2, 0.45, 0.6, 0.75, 0.9])
    def test_kill_9(self, made_archive: Path, tmp_path: Path, share: float) -> None:
        arguments = ["--input", f"{made_archive}/*.jsonl", *self.ARGUMENTS]
        started = time.monotonic()
        assert threadloom("run", "--output", tmp_path / "whole", *arguments).returncode == 0
        usual = time.monotonic() - started

        earlier = tmp_path / "earlier"
        run(earlier, "--input", ARCHIVES / FIVE[0])
        before = state(earlier)
        for output, extra in ((tmp_path / "new", ()), (earlier, ("--overwrite",))):
            process = subprocess.Popen(
                command("run", "--output", str(output), *arguments, *extra),
                env=environment(),
                start_new_session=True,
            )
            time.sleep(usual * share)
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            whole = (output / "_SUCCESS").exists() and hashes(output) == hashes(tmp_path / "whole")
            if output == earlier:
                assert whole or state(earlier) == before
            else:
                assert whole or not state(output)
            again = run(output, *arguments, *(("--overwrite",) if whole else extra))
            assert again["read"]["records"] > 0
            assert hashes(output) == hashes(tmp_path / "whole")
            assert not (output / "_temporary").exists()

    def test_a_full_disk(self, made_archive: Path, tmp_path: Path) -> None:
        """The kernel refuses to let a file grow, as it does on a full disk."""

        def no_growth() -> None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))

        done = subprocess.run(
            command(
                "run",
                *("--input", f"{made_archive}/*.jsonl", "--output", str(tmp_path / "out")),
                *self.ARGUMENTS,
            ),
            env={**environment(), "PYTHONDONTWRITEBYTECODE": "1"},
            preexec_fn=no_growth,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 1
        (line,) = done.stderr.splitlines()
        assert line.startswith("threadloom: error: cannot write ")
        assert line.endswith("File too large")
        assert not (tmp_path / "out").exists()

    def test_overwrite_leaves_nothing_of_the_earlier_result(self, tmp_path: Path) -> None:
        archive = write_lines(tmp_path / "a.jsonl", [chat(number) for number in range(9)])
        output = tmp_path / "out"
        run(output, "--input", archive, "--dataset", "both", "--num_shards", "8")
        run(output, "--input", archive, "--num_shards", "2", "--overwrite")
        assert sorted(hashes(output)) == [
            "rejected/part-00000-of-00002.parquet",
            "rejected/part-00001-of-00002.parquet",
            "training/part-00000-of-00002.parquet",
            "training/part-00001-of-00002.parquet",
        ]
        assert not (output / "replay").exists()
        assert set(manifest(output)["datasets"]) == {"training"}

    def test_a_run_that_is_refused_leaves_the_earlier_result(self, tmp_path: Path) -> None:
        archive = write_lines(tmp_path / "a.jsonl", [chat(1)])
        run(tmp_path / "out", "--input", archive)
        before = state(tmp_path / "out")
        refused(tmp_path / "out", "--input", tmp_path / "none.jsonl", "--overwrite", code=2)
        assert state(tmp_path / "out") == before


def test_more_rejected_than_allowed(tmp_path: Path) -> None:
    archive = write_lines(tmp_path / "a.jsonl", [chat(1), b"rubbish", chat(2), chat(3)])
    for limit, code in (("0", 3), ("1", 0), ("24%", 3), ("25%", 0)):
        shutil.rmtree(tmp_path / "out", ignore_errors=True)
        content = run(tmp_path / "out", "--input", archive, "--max_rejected", limit, code=code)
        assert content["datasets"]["training"]["records"]["rejected"] == {"not_json": 1}
        assert len(rows(tmp_path / "out", "training")) == 1


def test_options_from_a_file(tmp_path: Path) -> None:
    archive = write_lines(tmp_path / "a.jsonl", [chat(1)])
    options = tmp_path / "my.args"
    options.write_text(f"# what goes in\n--input {archive}\n--include_names  # with names\n--num_shards=2\n")
    run(tmp_path / "out", f"@{options}")
    (row,) = rows(tmp_path / "out", "training")
    assert row["messages"] == [{"role": "user", "content": "[sam]: hello"}]
    assert json.loads((tmp_path / "out" / "manifest.json").read_text())["options"]["num_shards"] == 2


def test_what_waits_for_its_shard_is_gone_at_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the process records wait in files below the output; a failed run takes them away as well."""
    archive = write_lines(tmp_path / "a.jsonl", [chat(number) for number in range(50)])
    waiting: list[int] = []
    order = OrderShard.process

    def seen(self: OrderShard, element: Any) -> Any:
        waiting.append(len(list((tmp_path / "out").glob("_temporary/*/shuffle-*.arrow"))))
        return order(self, element)

    monkeypatch.setattr(OrderShard, "process", seen)
    run(tmp_path / "out", "--input", archive, "--num_shards", "2")
    assert waiting == [1, 1]
    assert not (tmp_path / "out" / "_temporary").exists()

    def taken_away(self: OrderShard, element: Any) -> Any:
        shutil.rmtree(tmp_path / "out" / "_temporary")
        return order(self, element)

    monkeypatch.setattr(OrderShard, "process", taken_away)
    said = refused(tmp_path / "out", "--input", archive, "--overwrite", code=1)
    assert "cannot read back" in said
    assert "another run" in said
    assert not (tmp_path / "out" / "_temporary").exists()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_who_is_stopped_leaves_nothing(number: signal.Signals, made_archive: Path, tmp_path: Path) -> None:
    arguments = ["run", "--output", str(tmp_path / "out"), "--input", str(made_archive / "*.jsonl")]
    process = subprocess.Popen(
        command(*arguments, "--num_shards", "40"), env=environment(), text=True, stderr=subprocess.PIPE
    )
    while not any((tmp_path / "out").glob("_temporary/*/training*")):
        assert process.poll() is None
        time.sleep(0.001)
    process.send_signal(number)
    _out, said = process.communicate(timeout=60)
    assert process.returncode == 128 + number, said
    assert said.splitlines()[-1] == "threadloom: error: stopped; nothing was committed"
    assert not (tmp_path / "out").exists()


def test_a_run_under_nohup_goes_on(made_archive: Path, tmp_path: Path) -> None:
    arguments = ["run", "--output", str(tmp_path / "out"), "--input", str(made_archive / "*.jsonl")]
    pipes: Any = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
    process = subprocess.Popen(["nohup", *command(*arguments)], env=environment(), text=True, **pipes)
    while not any((tmp_path / "out").glob("_temporary/*/training*")):
        assert process.poll() is None
        time.sleep(0.001)
    process.send_signal(signal.SIGHUP)
    _out, said = process.communicate(timeout=60)
    assert process.returncode == 0, said
    assert (tmp_path / "out" / "_SUCCESS").exists()


def test_two_runs_into_one_output_never_vouch_for_each_others_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While the first waits with its commit, a second run comes to its end."""
    archive = write_lines(tmp_path / "a.jsonl", [chat(number) for number in range(20)])
    output = tmp_path / "out"
    publish = pipeline.commit._publish
    others: list[bool] = []

    def after_another_run(*arguments: Any) -> None:
        if not others:
            others.append(True)
            run(output, "--input", archive, "--include_names", "--overwrite")
        publish(*arguments)

    monkeypatch.setattr("pipeline.commit._publish", after_another_run)
    said = refused(output, "--input", archive, code=1)
    assert "another run" in said
    assert (output / "_SUCCESS").exists()
    committed = manifest(output)
    assert committed["options"]["include_names"] is True
    for file in committed["files"]:
        assert hashlib.sha256((output / file["path"]).read_bytes()).hexdigest() == file["sha256"]


def test_a_run_that_is_refused_leaves_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = write_lines(tmp_path / "a.jsonl", [chat(1)])
    monkeypatch.setattr("pipeline.run.available_bytes", lambda: 1 << 20)
    refused(tmp_path / "out", "--input", archive, code=2)
    assert not (tmp_path / "out").exists()
