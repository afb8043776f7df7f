"""The end of a run in a few lines: sums that add up, and where to look next."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def summary(manifest: Mapping[str, Any], output: str, seconds: float) -> str:
    """What was read, where it went, by reason, and what to open next."""
    read = manifest["read"]
    files = len(manifest["inputs"])
    lines = [
        f"read {_count(read['records'], 'record')} ({_count(read['messages'], 'message')}) "
        f"from {_count(files, 'file')} in {seconds:.1f} s"
    ]
    for name, dataset in manifest["datasets"].items():
        messages = dataset["messages"]
        shown = _count(dataset["rows"], "row")
        lines.append(f"{name}: {shown}, format {dataset['format']}")
        lines.append(f"  {_sum(messages, 'messages')}")
        lines += _reasons("left out", messages["left_out"])
        lines += _reasons("rejected", messages["rejected"])
        lines += _reasons("repairs", dataset["repairs"])
    lines.append(f"next: {_next(manifest, output)}")
    return "\n".join(lines)


def rejected_records(manifest: Mapping[str, Any]) -> int:
    """How many records were rejected: in the dataset where most were."""
    most: int = max(sum(dataset["records"]["rejected"].values()) for dataset in manifest["datasets"].values())
    return most


def _sum(ledger: Mapping[str, Any], unit: str) -> str:
    left_out, rejected = sum(ledger["left_out"].values()), sum(ledger["rejected"].values())
    return (
        f"{ledger['read']:,} {unit} read = {ledger['kept']:,} kept + "
        f"{ledger['superseded']:,} superseded + {left_out:,} left out + {rejected:,} rejected"
    )


def _reasons(title: str, reasons: Mapping[str, int]) -> list[str]:
    if not reasons:
        return []
    shown = ", ".join(f"{count:,} {reason}" for reason, count in reasons.items())
    return [f"    {title}: {shown}"]


def _next(manifest: Mapping[str, Any], output: str) -> str:
    hint = f"{output}/README.md loads it"
    if manifest["rejected"]["rows"]:
        return f"{hint}; {output}/rejected has each reject with its file, place and reason"
    return f"{hint}; {output}/manifest.json has every file and sum"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
