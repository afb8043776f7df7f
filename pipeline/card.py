"""README.md of an output: the dataset card that lets `datasets.load_dataset` find each dataset."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from schemas.formats import Format

_FEATURES = """\
  - name: thread_id
    dtype: string
  - name: messages
{messages}
  - name: message_ids
    list: string
  - name: sent_at
    list: timestamp[ms, tz=UTC]
  - name: message_count
    dtype: int32
  - name: first_sent
    dtype: timestamp[ms, tz=UTC]
  - name: last_sent
    dtype: timestamp[ms, tz=UTC]
  - name: tools
    dtype: string
  - name: repairs
    list:
    - name: message_id
      dtype: string
    - name: reason
      dtype: string
    - name: detail
      dtype: string"""
_VERSION_AND_SESSION = """
  - name: version
    dtype: int32
  - name: session
    dtype: int32"""
_ROLES_AND_TEXT = """\
    list:
    - name: role
      dtype: string
    - name: content
      dtype: string"""
_JSON = "    list: json"
_REJECTED = "rejected"


def dataset_card(manifest: Mapping[str, Any]) -> str:
    """The card: YAML that names a config for each dataset, then what it holds, in a few lines."""
    datasets = manifest["datasets"]
    rows = {name: dataset["rows"] for name, dataset in datasets.items()}
    rows[_REJECTED] = manifest["rejected"]["rows"]
    # `datasets` cannot load a split without rows, so it is not told of one.
    present = [name for name, count in rows.items() if count]
    lines = ["---"]
    if present:
        lines += ["configs:", *(line for name in present for line in _config(name, present[0]))]
    described = [name for name in present if name in datasets]
    if described:
        lines.append("dataset_info:")
        for name in described:
            lines += _features(name, datasets[name]["format"])
    lines += ["---", "", "# Conversations", "", "Written by Threadloom. One row a thread.", ""]
    lines += ["| dataset | format | rows | messages |", "|---|---|---|---|"]
    for name, dataset in datasets.items():
        kept = dataset["messages"]["kept"]
        lines.append(f"| {name} | {dataset['format']} | {dataset['rows']} | {kept} |")
    lines += ["", f"Rejected records: {rows[_REJECTED]}, each with its place and reason.", ""]
    if described:
        lines += _snippet(described[0])
    lines += [
        "`manifest.json` says what was read and where each record went; trust a folder that has `_SUCCESS`.",
        "",
    ]
    return "\n".join(lines)


def stream_card(formats: Mapping[str, str]) -> str:
    """The card of a job that never ends; `formats` by dataset."""
    first = next(iter(formats))
    lines = ["---", "configs:", *(line for name in formats for line in _config(name, first)), "dataset_info:"]
    for name, fmt in formats.items():
        lines += _features(name, fmt)
        lines[-1] += _VERSION_AND_SESSION
    lines += [
        "---",
        "",
        "# Conversations that go on",
        "",
        "Written by Threadloom. One row a session and version:",
    ]
    lines += [
        "of each thread and session the row with the highest version counts, where it has messages.",
        "",
        *_snippet(first),
        "`_commits/` says which files are whole, and what was read for them; `threadloom compact` makes one",
        "row a thread of all that is there.",
        "",
    ]
    return "\n".join(lines)


def _features(name: str, fmt: str) -> list[str]:
    own = fmt == Format.MESSAGES.value
    features = _FEATURES.format(messages=_ROLES_AND_TEXT if own else _JSON)
    return [f"- config_name: {name}", "  features:", features]


def _config(name: str, first: str) -> list[str]:
    lines = [
        f"- config_name: {name}",
        "  data_files:",
        "  - split: train",
        f"    path: {name}/*.parquet",
    ]
    return [*lines, "  default: true"] if name == first else lines


def _snippet(name: str) -> list[str]:
    return [
        "```python",
        "from datasets import load_dataset",
        f'rows = load_dataset("path/to/this/folder", "{name}", split="train")',
        "```",
        "",
    ]
