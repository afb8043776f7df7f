"""Commits: whole or not there, in order, once; and what `compact` makes of them."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from apache_beam.io.filesystems import FileSystems
from commit_logs import commit_all, preparing, read_parcels
from product import ARCHIVES, FIVE, chat, hashes, here, manifest, run, write_lines

from pipeline.streaming.log import CommitLog, Prepared, prepared
from pipeline.streaming.publisher import Publisher
from schemas.errors import JobError

FIVE_PATTERNS = [str(ARCHIVES / pattern) for pattern in FIVE]
INPUTS = [part for pattern in FIVE_PATTERNS for part in ("--input", pattern)]


@pytest.fixture
def archive(tmp_path: Path) -> str:
    folder = tmp_path / "in"
    folder.mkdir()
    write_lines(folder / "a.jsonl", [chat(1), b"{", chat(2)])
    write_lines(folder / "b.jsonl", [chat(3, thread="t2")])
    return str(folder / "*.jsonl")


def two_commits(output: Path, archive: str) -> tuple[Prepared, Prepared]:
    what, parcels = preparing(output, [archive]), list(read_parcels([archive]))
    return prepared(what, 1, parcels[:1], 0), prepared(what, 2, parcels[1:], 0)


def test_a_commit_is_not_there_until_it_is_published(tmp_path: Path, archive: str) -> None:
    output = tmp_path / "out"
    first, _second = two_commits(output, archive)
    log = CommitLog(str(output))
    assert list(log.manifests()) == []
    assert not log.is_published(first)
    assert {path.name for path in output.iterdir()} == {"_temporary"}
    log.publish(first)
    (written,) = log.manifests()
    assert log.is_published(first)
    assert [(source.path.rpartition("/")[2], source.records) for source in written.sources] == [
        ("a.jsonl", 3)
    ]
    assert written.rows == {"records": 2, "rejected": 1}
    for file in written.files:
        assert pq.read_metadata(output / file.path).num_rows == file.rows


def test_commits_are_published_in_order(tmp_path: Path, archive: str) -> None:
    first, second = two_commits(tmp_path / "out", archive)
    log = CommitLog(str(tmp_path / "out"))
    log.publish(second)
    assert log.numbers() == []
    log.publish(first)
    log.publish(second)
    assert log.numbers() == [1, 2]


@pytest.mark.parametrize("step", range(8))
@pytest.mark.parametrize("operation", ["rename", "create"])
def test_a_publishing_that_breaks_off_is_gone_on_with(
    tmp_path: Path, archive: str, step: int, operation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = tmp_path / "out"
    log = CommitLog(str(output))
    whole, calls = getattr(FileSystems, operation), 0

    def breaks(*arguments: Any, **more: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == step + 1:
            raise OSError("the disk is gone")
        return whole(*arguments, **more)

    first, second = two_commits(output, archive)
    monkeypatch.setattr(FileSystems, operation, breaks)
    for entry in (first, second):
        for _attempt in range(3):
            with contextlib.suppress(JobError):
                log.publish(entry)
            # What is published is whole, whatever happened.
            for path in output.glob("_commits/*.json"):
                for file in json.loads(path.read_text())["files"]:
                    assert (output / file["path"]).exists()
    assert [commit.commit for commit in log.manifests()] == [1, 2]
    log.drop_attempts(1)
    log.drop_attempts(2)
    assert not list((output / "_temporary").iterdir())


def test_another_job_is_noticed(tmp_path: Path, archive: str) -> None:
    output = tmp_path / "out"
    log = CommitLog(str(output))
    log.publish(two_commits(output, archive)[0])
    other = prepared(preparing(output, [archive]), 1, read_parcels([archive]), 1)
    with pytest.raises(JobError, match="another job's"):
        log.publish(other)


def test_a_gap_in_the_log_is_noticed(tmp_path: Path, archive: str) -> None:
    commit_all(tmp_path / "out", [archive], commits=2)
    (tmp_path / "out" / "_commits" / "00000001.json").unlink()
    code, said = here("compact", tmp_path / "out", tmp_path / "dest")
    assert code == 1
    assert "has gaps" in said


def test_it_takes_two_finalizations_to_publish(tmp_path: Path, archive: str) -> None:
    entries = list(two_commits(tmp_path / "out", archive))
    publisher, log = Publisher(str(tmp_path / "out")), CommitLog(str(tmp_path / "out"))
    first = publisher.when_finalized(entries)
    # Asked for before the first finalization came: not of a later checkpoint.
    too_soon = publisher.when_finalized(entries)
    first()
    too_soon()
    assert log.numbers() == []
    publisher.when_finalized(entries)()
    assert log.numbers() == [1, 2]
    assert publisher.published(entries) == 2


def test_what_fails_when_a_commit_is_published_fails_the_job(tmp_path: Path, archive: str) -> None:
    entries = list(two_commits(tmp_path / "out", archive))[:1]
    publisher = Publisher(str(tmp_path / "out"))
    publisher.when_finalized(entries)()
    for path in (tmp_path / "out" / "_temporary").iterdir():
        path.unlink()
    publisher.when_finalized(entries)()
    with pytest.raises(JobError, match="is gone"):
        publisher.published(entries)


@pytest.mark.parametrize("commits", [1, 3])
def test_compact_gives_what_batch_gives(tmp_path: Path, commits: int) -> None:
    commit_all(tmp_path / "out", FIVE_PATTERNS, commits)
    code, said = here("compact", tmp_path / "out", tmp_path / "dest")
    assert code == 0, said
    run(tmp_path / "batch", *INPUTS, "--dataset", "both", "--format", "messages")
    assert hashes(tmp_path / "dest") == hashes(tmp_path / "batch")
    compacted, batch = manifest(tmp_path / "dest"), manifest(tmp_path / "batch")
    for name in ("inputs", "read", "datasets", "rejected", "files"):
        assert compacted[name] == batch[name]
    assert (tmp_path / "dest" / "README.md").read_text() == (tmp_path / "batch" / "README.md").read_text()


def test_compact_with_so_many_shards(tmp_path: Path) -> None:
    commit_all(tmp_path / "out", FIVE_PATTERNS)
    assert here("compact", tmp_path / "out", tmp_path / "dest", "--num_shards", 5)[0] == 0
    run(tmp_path / "batch", *INPUTS, "--dataset", "both", "--num_shards", 5, "--format", "messages")
    assert hashes(tmp_path / "dest") == hashes(tmp_path / "batch")


def test_compact_counts_what_it_is_given(tmp_path: Path, archive: str) -> None:
    """A commit's file with a record too many, or too few, is not taken for what was read."""
    output = tmp_path / "out"
    commit_all(output, [archive], commits=1)
    (path,) = (output / "_records").iterdir()
    records = pq.read_table(path)
    pq.write_table(records.slice(1), path)
    code, said = here("compact", output, tmp_path / "dest")
    assert code == 1
    assert "records were read, the commits hold" in said
    assert not (tmp_path / "dest" / "_SUCCESS").exists()


def test_compact_leaves_what_it_reads_alone(
    tmp_path: Path, archive: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit_all(tmp_path / "out", [archive])
    monkeypatch.chdir(tmp_path)
    (tmp_path / "link").symlink_to(tmp_path / "out")
    for output in ("out", "./out", tmp_path / "out", "out/dest", "link", "."):
        code, said = here("compact", "out", output)
        assert code == 2, output
        assert "must lie apart" in said


def test_compact_of_what_is_no_streaming_output(tmp_path: Path) -> None:
    code, said = here("compact", tmp_path, tmp_path.parent / "dest")
    assert code == 2
    assert "holds no commits" in said


def test_compact_refuses_to_overwrite(tmp_path: Path, archive: str) -> None:
    commit_all(tmp_path / "out", [archive])
    assert here("compact", tmp_path / "out", tmp_path / "dest")[0] == 0
    code, said = here("compact", tmp_path / "out", tmp_path / "dest")
    assert code == 2
    assert "--overwrite" in said
    assert here("compact", tmp_path / "out", tmp_path / "dest", "--overwrite")[0] == 0


def test_an_output_below_a_folder_of_any_name(tmp_path: Path, archive: str) -> None:
    output = tmp_path / "_records" / "job"
    commit_all(output, [archive])
    assert here("compact", output, tmp_path / "dest")[0] == 0
