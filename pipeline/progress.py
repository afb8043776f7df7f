"""How far a run is: workers on this machine send what they have read, one process prints the line.

The reports are datagrams on a local socket, so that they cross process borders, cost a worker next
to nothing, and are lost without harm when nobody listens. Counts that matter are in the ledger.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import struct
import sys
import tempfile
import threading
import time
from types import TracebackType
from typing import TextIO

import msgspec

_REPORT = struct.Struct("!qq")
_TERMINAL_SECONDS = 0.5
_PLAIN_SECONDS = 10.0


class Progress(msgspec.Struct, frozen=True):
    """Where reports go: the path of a local socket, or None for nowhere."""

    address: str | None = None

    def report(self, records: int, size: int, *, wake: bool = False) -> None:
        """Sends that so many more records and bytes were read. Never raises, never waits."""
        if self.address is None or not (records or size or wake):
            return
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as out:
            out.setblocking(False)
            out.sendto(_REPORT.pack(records, size), self.address)


class ProgressLine:
    """Listens for reports and prints a line: in place on a terminal, now and then elsewhere."""

    def __init__(self, total_bytes: int, stream: TextIO = sys.stderr) -> None:
        self._total = total_bytes
        self._stream = stream
        self._live = stream.isatty()
        self._folder = tempfile.mkdtemp(prefix="threadloom-")
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._records = self._bytes = 0

    def __enter__(self) -> Progress:
        address = os.path.join(self._folder, "progress")
        self._socket.bind(address)
        self._socket.settimeout(_TERMINAL_SECONDS)
        self._thread.start()
        return Progress(address)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stopped.set()
        Progress(os.path.join(self._folder, "progress")).report(0, 0, wake=True)
        self._thread.join(timeout=2)
        self._socket.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _listen(self) -> None:
        start = shown = time.monotonic()
        every = _TERMINAL_SECONDS if self._live else _PLAIN_SECONDS
        while not self._stopped.is_set():
            with contextlib.suppress(TimeoutError):
                records, size = _REPORT.unpack(self._socket.recv(_REPORT.size))
                self._records += records
                self._bytes += size
            now = time.monotonic()
            if now - shown >= every:
                shown = now
                self._print(now - start)
        if self._live:
            self._stream.write("\r\x1b[K")
            self._stream.flush()

    def _print(self, seconds: float) -> None:
        line = progress_text(self._records, self._bytes, self._total, seconds)
        self._stream.write(f"\r\x1b[K{line}" if self._live else f"{line}\n")
        self._stream.flush()


def progress_text(records: int, size: int, total: int, seconds: float) -> str:
    """Records, bytes, rate and time left, in a line."""
    share = min(size / total, 1.0) if total else 1.0
    rate = records / seconds if seconds else 0.0
    if share >= 1.0:
        left = "sorting, converting and writing"
    elif size:
        left = f"about {seconds * (1 - share) / share:.0f} s left to read"
    else:
        left = "starting"
    megabytes = f"{size / 1e6:,.1f} of {total / 1e6:,.1f} MB ({share:.0%})"
    return f"threadloom: {records:,} records, {megabytes}, {rate:,.0f} records/s, {left}"
