"""Object stores on loopback: a moto server for `s3://`, a storage emulator for `gs://`."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

BUCKET = "threadloom"


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


@contextlib.contextmanager
def s3(monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    """A bucket behind `s3://`, empty."""
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


@contextlib.contextmanager
def gs(monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    """A bucket behind `gs://`, empty."""
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
