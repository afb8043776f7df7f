"""What others read: datasets, langchain-core, DuckDB, Polars; and archives that others wrote."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import duckdb
import fastavro
import polars
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from commit_logs import commit_all
from langchain_core.messages import messages_from_dict
from product import ARCHIVES, FIVE, ROOT, chat, rows, run, write_lines

from schemas.avro import NAMES, avro_schema

INPUTS = [argument for pattern in FIVE for argument in ("--input", ARCHIVES / pattern)]


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("read-back") / "out"
    run(folder, *INPUTS, "--dataset", "both", "--num_shards", "3")
    return folder


@pytest.fixture(scope="module")
def load(tmp_path_factory: pytest.TempPathFactory) -> Any:
    import datasets

    cache = tmp_path_factory.mktemp("cache")

    def loaded(folder: Path, name: str | None = None) -> Any:
        # `datasets` names its cache after the folder: a copy under another name is another dataset.
        return datasets.load_dataset(str(folder), name, split="train", cache_dir=str(cache))

    return loaded


def test_load_dataset_gives_real_objects_with_absent_keys_absent(output: Path, load: Any) -> None:
    training = load(output)
    ours = {row["thread_id"]: row for row in rows(output, "training")}
    assert training.num_rows == len(ours)
    with_calls = 0
    for row in training:
        assert row["messages"] == ours[row["thread_id"]]["messages"]
        for message in row["messages"]:
            assert None not in message.values()
            for call in message.get("tool_calls", []):
                with_calls += 1
                assert isinstance(call["function"]["arguments"], dict)
            assert message.keys() <= {"role", "content", "tool_calls", "tool_call_id", "name"}
    assert with_calls > 300


def test_load_dataset_reads_every_config(output: Path, load: Any) -> None:
    manifest = json.loads((output / "manifest.json").read_text())
    assert load(output, "replay").num_rows == manifest["datasets"]["replay"]["rows"]
    assert load(output, "rejected").num_rows == manifest["rejected"]["rows"]


def test_others_read_what_streaming_writes(tmp_path: Path, load: Any) -> None:
    archives = [str(ARCHIVES / pattern) for pattern in FIVE]
    commit_all(tmp_path / "stream-out", archives, rows=True)
    training = load(tmp_path / "stream-out")
    ours = {(row["thread_id"], row["session"]): row for row in rows(tmp_path / "stream-out", "training")}
    assert training.num_rows == len(ours) > 500
    for row in training:
        assert row["messages"] == ours[row["thread_id"], row["session"]]["messages"]
        assert row["version"] == 1
    replay = load(tmp_path / "stream-out", "replay")
    assert [message["type"] for message in replay[0]["messages"]]
    # The query of README, over an output with one version of each session.
    (query,) = re.findall(r"```sql\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    latest = duckdb.sql(query.replace("stream/replay", f"{tmp_path}/stream-out/replay")).fetchall()
    assert len(latest) == replay.num_rows


def test_load_dataset_reads_roles_and_texts(tmp_path: Path, load: Any) -> None:
    archive = write_lines(tmp_path / "a.jsonl", [chat(1, "é"), chat(2, thread="t2")])
    run(tmp_path / "chat-out", "--input", archive, "--num_shards", "5")
    training = load(tmp_path / "chat-out")
    assert sorted(row["messages"][0]["content"] for row in training) == ["hello", "é"]
    assert training[0]["sent_at"][0].year == 2024
    # `datasets` cannot load a split without rows: the card names none.
    assert "rejected" not in (tmp_path / "chat-out" / "README.md").read_text().split("---")[1]


def test_messages_from_dict_takes_every_replay_row(output: Path) -> None:
    for row in rows(output, "replay"):
        messages = messages_from_dict(row["messages"])
        assert [message.type for message in messages] == [one["type"] for one in row["messages"]]
        for message, one in zip(messages, row["messages"], strict=True):
            assert message.content == one["data"]["content"]
            assert getattr(message, "tool_calls", []) == one["data"].get("tool_calls", [])


def test_duckdb_and_polars_open_the_files(output: Path) -> None:
    manifest = json.loads((output / "manifest.json").read_text())
    for name, dataset in manifest["datasets"].items():
        pattern = f"{output}/{name}/*.parquet"
        query = f"select count(*), sum(message_count), min(first_sent) from '{pattern}'"
        counted = duckdb.sql(query).fetchall()
        assert counted[0][:2] == (dataset["rows"], dataset["messages"]["kept"])
        assert counted[0][2].year == 2004
        frame = polars.read_parquet(pattern)
        assert frame.height == dataset["rows"]
        assert frame["messages"].list.len().sum() == dataset["messages"]["kept"]


def test_the_files_are_parquet_as_the_ecosystem_likes_it(output: Path) -> None:
    for path in output.rglob("*.parquet"):
        file = pq.ParquetFile(path)
        assert file.schema_arrow.metadata[b"threadloom.schema_version"] == b"1"
        if path.parent.name != "rejected":
            formats = {b"training": b"trl", b"replay": b"langchain"}
            assert file.schema_arrow.metadata[b"threadloom.format"] == formats[path.parent.name.encode()]
        for group in range(file.metadata.num_row_groups):
            column = file.metadata.row_group(group).column(0)
            assert column.compression == "ZSTD"
            assert column.is_stats_set


MESSAGES = [chat(number, f"text {number}", thread=f"t{number % 2}") for number in range(6)]
MESSAGES[2]["links"] = [{"url": "https://e.test", "title": "T"}]
MESSAGES[3]["attachments"] = [{"type": "file", "mimeType": "text/plain", "name": "n", "data": "aGk="}]
CALL = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}
AGUI = [
    {"threadId": "t", "id": "u", "role": "user", "content": "hi"},
    {"threadId": "t", "id": "a", "role": "assistant", "toolCalls": [CALL]},
    {"threadId": "t", "id": "r", "role": "tool", "content": "ok", "toolCallId": "c1"},
]


def in_avro(record: dict[str, Any]) -> dict[str, Any]:
    """Dates as the instants that a timestamp column holds."""
    from datetime import datetime

    if "metadata" not in record:
        return record
    sent = datetime.fromisoformat(record["metadata"]["dateSent"])
    return {**record, "metadata": {"dateSent": sent}}


@pytest.mark.parametrize("kind", ["chat_message", "agui_message", "agui_history"])
def test_avro_and_parquet_archives_give_what_json_lines_give(tmp_path: Path, kind: str) -> None:
    records: list[dict[str, Any]] = MESSAGES if kind == "chat_message" else AGUI
    if kind == "agui_history":
        messages = [{key: value for key, value in one.items() if key != "threadId"} for one in AGUI]
        records = [{"threadId": "t", "messages": messages, "tools": [{"name": "f"}]}]
    write_lines(tmp_path / "a.jsonl", records)
    flat = [in_avro(record) for record in records]
    if kind == "agui_history":
        flat = [{**record, "tools": json.dumps(record["tools"])} for record in records]
    with open(tmp_path / "a.avro", "wb") as stream:
        fastavro.writer(stream, fastavro.parse_schema(avro_schema(kind)), flat)
    names = {name: None for record in flat for name in record}
    pq.write_table(pa.Table.from_pylist([{**names, **one} for one in flat]), tmp_path / "a.parquet")
    read = {}
    for ending in ("jsonl", "avro", "parquet"):
        run(tmp_path / ending, "--input", tmp_path / f"a.{ending}", "--dataset", "both")
        read[ending] = rows(tmp_path / ending, "training"), rows(tmp_path / ending, "replay")
        assert rows(tmp_path / ending, "rejected") == []
    assert read["jsonl"] == read["avro"] == read["parquet"]
    assert sum(row["message_count"] for row in read["avro"][0]) == (6 if kind == "chat_message" else 3)


def test_the_schemas_hold_what_the_cases_hold() -> None:
    for name in NAMES:
        assert fastavro.parse_schema(avro_schema(name))["type"] == "record"


def test_an_archive_on_another_file_system(tmp_path: Path) -> None:
    """Beam's file systems are the only way in and out: an url does as well as a path."""
    shutil.copy(ARCHIVES / FIVE[1], tmp_path / "a.jsonl")
    manifest = run(tmp_path / "out", "--input", f"{tmp_path}/*.jsonl")
    assert manifest["read"]["records"] == 158
