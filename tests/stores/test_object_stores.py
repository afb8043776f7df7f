"""`s3://` and `gs://` in and out, against servers on loopback: the same bytes, the same commit."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import stores
from product import ARCHIVES, FIVE, hashes, here, run
from stores import Store

pytestmark = pytest.mark.live

IN = {"irc.jsonl": ARCHIVES / FIVE[0], "slack.jsonl": ARCHIVES / FIVE[1]}


@pytest.fixture(params=["s3", "gs"])
def store(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    with {"s3": stores.s3, "gs": stores.gs}[request.param](monkeypatch) as one:
        yield one


def test_in_and_out(store: Store, tmp_path: Path) -> None:
    for key, path in IN.items():
        store.put(f"in/{key}", path.read_bytes())
    arguments = ["run", "--input", f"{store.root}/in/*.jsonl", "--output", f"{store.root}/out"]
    more = ["--dataset", "both", "--num_shards", "2", "--quiet", *store.options]

    code, said = here(*arguments, *more)
    assert code == 0, said
    objects = {
        key.removeprefix("out/"): body for key, body in store.objects().items() if key.startswith("out/")
    }
    inputs = [argument for path in IN.values() for argument in ("--input", path)]
    run(tmp_path / "out", *inputs, "--dataset", "both", "--num_shards", "2")
    given = {
        key: hashlib.sha256(body).hexdigest() for key, body in objects.items() if key.endswith(".parquet")
    }
    assert given == hashes(tmp_path / "out")
    # Nothing waits any more, and the last object vouches for the manifest.
    assert set(objects) == {*given, "README.md", "manifest.json", "_SUCCESS"}
    assert objects["_SUCCESS"].split()[0].decode() == hashlib.sha256(objects["manifest.json"]).hexdigest()

    code, said = here(*arguments, *more)
    assert code == 2
    assert "--overwrite" in said
    code, said = here(*arguments, "--num_shards", "1", "--overwrite", "--quiet", *store.options)
    assert code == 0, said
    after = {key for key in store.objects() if key.startswith("out/")}
    assert after == {
        f"out/{name}"
        for name in (
            "training/part-00000-of-00001.parquet",
            "rejected/part-00000-of-00001.parquet",
            "README.md",
            "manifest.json",
            "_SUCCESS",
        )
    }
    assert list(json.loads(store.objects()["out/manifest.json"])["datasets"]) == ["training"]


def test_a_bucket_that_is_not_there(store: Store) -> None:
    elsewhere = store.root.replace(stores.BUCKET, "no-such-bucket")
    code, said = here("run", "--input", IN["irc.jsonl"], "--output", f"{elsewhere}/out", *store.options)
    assert code == 1
    (line,) = said.splitlines()
    assert line.startswith(f"threadloom: error: --output '{elsewhere}/out' cannot be written")
