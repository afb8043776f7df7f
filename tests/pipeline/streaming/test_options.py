"""The options of `--streaming`: read, bounded, and refused with the option's name."""

from __future__ import annotations

from pathlib import Path

import pytest
from product import here

from pipeline.streaming.options import StreamOptions, milliseconds, size_in_bytes
from pipeline.streaming.run import STREAMING_CONFIGS
from schemas.errors import UsageError

CONFIGS = Path(__file__).parent.parent.parent.parent / "runner_configs"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        *(("90", 90_000), ("90s", 90_000), ("1.5h", 5_400_000), ("30 min", 1_800_000), ("30m", 1_800_000)),
        *(("2d", 172_800_000), ("500ms", 500), (" 1 H ", 3_600_000), ("0", 0)),
    ],
)
def test_durations(text: str, expected: int) -> None:
    assert milliseconds("session_gap", text) == expected


@pytest.mark.parametrize(
    "text", ["", "s", "-5", "1e3", "nan", "inf", "5 weeks", "٣m", "1.", ".5", "0.4ms", "9" * 400]
)
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(UsageError, match="--session_gap"):
        milliseconds("session_gap", text)


@pytest.mark.parametrize(("text", "expected"), [("1000", 1000), ("64MiB", 64 << 20), ("1 gib", 1 << 30)])
def test_sizes(text: str, expected: int) -> None:
    assert size_in_bytes("commit_bytes", text) == expected


@pytest.mark.parametrize("text", ["", "MB", "1.5MiB", "-1", "9" * 5000, "1e9"])
def test_what_is_no_size(text: str) -> None:
    with pytest.raises(UsageError, match="--commit_bytes"):
        size_in_bytes("commit_bytes", text)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "reads one source, and none is given"),
        (["--watch", "a/*", "--kafka_topic", "t", "--kafka_brokers", "b:1"], "several is given"),
        (["--kafka_topic", "t"], "go together"),
        (["--kafka_brokers", "b:1"], "go together"),
        (["--watch", ""], "--watch '' is no pattern"),
        (["--pubsub_subscription", "chat"], "--pubsub_subscription 'chat' is not of the form"),
        (["--watch", "a/*", "--session_gap", "0"], "--session_gap of 0 ms is not between"),
        (["--watch", "a/*", "--session_gap", "9999d"], "--session_gap"),
        (["--watch", "a/*", "--commit_every", "10ms"], "--commit_every of 10 ms"),
        (["--watch", "a/*", "--commit_bytes", "0"], "--commit_bytes 0"),
        (["--watch", "a/*", "--input", "b"], "name it with --watch"),
        (["--watch", "a/*", "--overwrite"], "--overwrite"),
        (["--watch", "a/*", "--max_rejected", "1"], "--max_rejected"),
        (["--watch", "a/*", "--num_shards", "0"], "--num_shards 0"),
    ],
)
def test_what_cannot_be_streamed(tmp_path: Path, arguments: list[str], said: str) -> None:
    code, told = here("run", "--streaming", "--output", tmp_path / "out", *arguments)
    assert code == 2
    assert said in told
    assert len(told.splitlines()) == 1


@pytest.mark.parametrize("option", ["--watch=a", "--session_gap=5", "--kafka_topic=t", "--commit_every=5"])
def test_what_only_streaming_has(tmp_path: Path, option: str) -> None:
    code, told = here("run", "--input", "a", "--output", tmp_path / "out", option)
    assert code == 2
    assert f"{option.partition('=')[0]} is for --streaming" in told


@pytest.mark.parametrize("runner", [[], ["--runner=DirectRunner"], ["--direct_num_workers=2"]])
def test_the_process_itself_cannot(tmp_path: Path, runner: list[str]) -> None:
    code, told = here("run", "--streaming", "--watch", "a/*", "--output", tmp_path / "out", *runner)
    assert code == 2
    for name in STREAMING_CONFIGS:
        assert f"runner_configs/{name}.args" in told
        assert (CONFIGS / f"{name}.args").exists()
    assert not (tmp_path / "out").exists()


def test_a_cluster_needs_a_place_for_its_checkpoints(tmp_path: Path) -> None:
    """Said before the job server is looked for, and before anything is written."""
    what = ["--streaming", "--watch", "a/*", "--output", tmp_path / "out"]
    code, told = here("run", *what, f"@{CONFIGS / 'flink_streaming.args'}")
    assert code == 2
    assert "--state_backend_storage_path is needed" in told


def test_defaults_are_those_that_are_told() -> None:
    options = StreamOptions(watch=("a/*",))
    assert (options.gap_ms, options.lateness_ms) == (1_800_000, 0)
    assert (options.commit_ms, options.commit_bytes) == (600_000, 128 << 20)
