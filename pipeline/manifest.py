"""manifest.json: what went in, what came out, every file, and the sums."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from pipeline.inputs import InputFile
from pipeline.writing import Receipt
from schemas.errors import JobError
from schemas.formats import SCHEMA_VERSION, Dataset
from transforms.convert import Target
from transforms.ledger import imbalance, sums

UNITS = ("records", "messages")


def manifest(
    tally: Mapping[str, int],
    receipts: Sequence[Receipt],
    inputs: Sequence[InputFile],
    targets: Sequence[Target],
    options: Mapping[str, Any],
) -> dict[str, Any]:
    """The manifest of a run. Raises JobError where the sums do not add up."""
    datasets = {target.dataset.value: _dataset(tally, target) for target in targets}
    return {
        "threadloom": importlib.metadata.version("threadloom"),
        "schema_version": SCHEMA_VERSION,
        "options": dict(options),
        "inputs": [{"path": file.path, "bytes": file.size, "format": file.format.value} for file in inputs],
        "read": {unit: tally.get(f"read/{unit}", 0) for unit in UNITS},
        "datasets": datasets,
        "rejected": {"rows": _rows(receipts, "rejected/")},
        "files": [
            {
                "path": receipt.name,
                "rows": receipt.rows,
                "bytes": receipt.size,
                "sha256": receipt.sha256,
            }
            for receipt in receipts
        ],
    }


def _dataset(tally: Mapping[str, int], target: Target) -> dict[str, Any]:
    name = target.dataset
    prefix = f"{name.value}/repairs/"
    described: dict[str, Any] = {
        "format": target.format.value,
        "rows": tally.get(f"{name.value}/rows", 0),
    }
    for unit in UNITS:
        described[unit] = _balanced(sums(tally, name, unit), name, unit)
    described["repairs"] = {
        key.removeprefix(prefix): count for key, count in sorted(tally.items()) if key.startswith(prefix)
    }
    return described


def _balanced(ledger: dict[str, Any], dataset: Dataset, unit: str) -> dict[str, Any]:
    missing = imbalance(ledger)
    if missing:
        raise JobError(
            f"the {dataset.value} dataset's {unit} do not add up: {ledger['read']} read, "
            f"{ledger['read'] - missing} accounted for; nothing was committed"
        )
    return ledger


def _rows(receipts: Sequence[Receipt], prefix: str) -> int:
    return sum(receipt.rows for receipt in receipts if receipt.name.startswith(prefix))


def manifest_bytes(content: Mapping[str, Any]) -> bytes:
    """The manifest as it is written: indented JSON."""
    return msgspec.json.format(msgspec.json.encode(content), indent=2) + b"\n"
