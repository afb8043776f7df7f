"""`s3://` and `gs://` in and out, against servers on loopback: the same bytes, the same commit."""

from __future__ import annotations

import hashlib
import json
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from product import ARCHIVES, FIVE, hashes, here, run

pytestmark = pytest.mark.live

BUCKET = "threadloom"
IN = {"irc.jsonl": ARCHIVES / FIVE[0], "slack.jsonl": ARCHIVES / FIVE[1]}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def served(command: list[str], port: int) -> subprocess.Popen[bytes]:
    """A server that answers on that port of loopback."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for _ in range(300):
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.1)
        else:
            return process
    process.kill()
    raise AssertionError(f"{command} does not answer on port {port}")


class Store:
    """One object store: its scheme, the options that reach it, and its objects."""

    def __init__(
        self, scheme: str, options: list[str], put: Callable[[str, bytes], Any], objects: Callable[[], Any]
    ) -> None:
        self.root = f"{scheme}://{BUCKET}"
        self.options = options
        self.put = put
        self.objects = objects


@pytest.fixture
def s3(monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    import boto3

    port = free_port()
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "none")
    server = served([sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)], port)
    try:
        endpoint = f"http://127.0.0.1:{port}"
        client = boto3.client("s3", endpoint_url=endpoint, region_name="us-east-1")
        client.create_bucket(Bucket=BUCKET)

        def objects() -> dict[str, bytes]:
            keys = [item["Key"] for item in client.list_objects_v2(Bucket=BUCKET).get("Contents", [])]
            return {key: client.get_object(Bucket=BUCKET, Key=key)["Body"].read() for key in keys}

        yield Store(
            "s3",
            [f"--s3_endpoint_url={endpoint}", "--s3_region_name=us-east-1", "--s3_access_key_id=none",
             "--s3_secret_access_key=none"],
            lambda key, body: client.put_object(Bucket=BUCKET, Key=key, Body=body),
            objects,
        )  # fmt: skip
    finally:
        server.terminate()
        server.wait(timeout=10)


@pytest.fixture
def gs(monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    from google.auth.credentials import AnonymousCredentials
    from google.cloud import storage

    port = free_port()
    endpoint = f"http://127.0.0.1:{port}"
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", endpoint)
    monkeypatch.setenv("NO_GCE_CHECK", "True")
    monkeypatch.setenv("GOOGLE_CLOUD_PROJECT", "none")
    emulator = Path(sys.executable).parent / "gcp-storage-emulator"
    server = served(
        [str(emulator), "start", "--host=127.0.0.1", f"--port={port}", "--in-memory",
         f"--default-bucket={BUCKET}"],
        port,
    )  # fmt: skip
    try:
        bucket = storage.Client(project="none", credentials=AnonymousCredentials()).bucket(BUCKET)
        yield Store(
            "gs",
            ["--no_auth"],
            lambda key, body: bucket.blob(key).upload_from_string(body),
            lambda: {blob.name: blob.download_as_bytes() for blob in bucket.list_blobs()},
        )
    finally:
        server.terminate()
        server.wait(timeout=10)


@pytest.mark.parametrize("name", ["s3", "gs"])
def test_in_and_out(name: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    store: Store = request.getfixturevalue(name)
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


@pytest.mark.parametrize("name", ["s3", "gs"])
def test_a_bucket_that_is_not_there(name: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    store: Store = request.getfixturevalue(name)
    elsewhere = store.root.replace(BUCKET, "no-such-bucket")
    code, said = here("run", "--input", IN["irc.jsonl"], "--output", f"{elsewhere}/out", *store.options)
    assert code == 1
    (line,) = said.splitlines()
    assert line.startswith(f"threadloom: error: --output '{elsewhere}/out' cannot be written")
