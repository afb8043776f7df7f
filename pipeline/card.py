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
      dtype: string
"""
_ROLES_AND_TEXT = """\
    list:
    - name: role
      dtype: string
    - name: content
      dtype: string"""
_JSON = "    list: json"


def dataset_card(manifest: Mapping[str, Any]) -> str:
    """The card: YAML that names a config for each dataset, then what it holds, in a few lines."""
    names = list(manifest["datasets"])
    lines = ["---", "configs:"]
    for number, name in enumerate([*names, "rejected"]):
        lines += [
            f"- config_name: {name}",
            "  data_files:",
            f"  - split: train\n    path: {name}/*.parquet",
        ]
        if number == 0:
            lines.append("  default: true")
    lines.append("dataset_info:")
    for name in names:
        own = manifest["datasets"][name]["format"] == Format.MESSAGES.value
        features = _FEATURES.format(messages=_ROLES_AND_TEXT if own else _JSON)
        lines += [f"- config_name: {name}", "  features:", features.rstrip()]
    lines += ["---", "", "# Conversations", "", "Written by Threadloom. One row a thread.", ""]
    lines += ["| dataset | format | rows | messages |", "|---|---|---|---|"]
    for name in names:
        dataset = manifest["datasets"][name]
        kept = dataset["messages"]["kept"]
        lines.append(f"| {name} | {dataset['format']} | {dataset['rows']} | {kept} |")
    lines += [
        "",
        f"Rejected records: {manifest['rejected']['rows']}, each with its place and reason.",
        "",
    ]
    lines += [
        "```python",
        "from datasets import load_dataset",
        f'rows = load_dataset("path/to/this/folder", "{names[0]}", split="train")',
        "```",
        "",
        "`manifest.json` says what was read and where each record went; trust a folder that has `_SUCCESS`.",
        "",
    ]
    return "\n".join(lines)
