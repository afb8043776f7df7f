"""Starts the job of a flex template and ends: what the template's launcher calls with its parameters.

A template gives every parameter as `--name=value`, once, also the switches and those left empty.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from pipeline.arguments import parser
from pipeline.cli import main

OPTIONS = Path(__file__).parent.parent / "dataflow_flex.args"


def command_line(parameters: Sequence[str]) -> list[str]:
    """The arguments of `threadloom` for the template's parameters; Dataflow's own pass as they are."""
    return ["run", f"@{OPTIONS}", *(argument for given in parameters for argument in _arguments(given))]


def _arguments(parameter: str) -> Iterator[str]:
    name, given, value = parameter.partition("=")
    if not given:
        yield parameter
    elif name == "--input":
        for pattern in value.split():
            yield f"--input={pattern}"
    elif name in _switches() and value.lower() in ("true", "false"):
        if value.lower() == "true":
            yield name
    elif value:
        yield parameter


def _switches() -> set[str]:
    """The options of ours that take no value."""
    commands = parser()._subparsers._group_actions[0].choices  # type: ignore[union-attr]
    actions = commands["run"]._actions  # type: ignore[index]
    return {
        name
        for action in actions
        if isinstance(action, argparse._StoreTrueAction)
        for name in action.option_strings
    }


if __name__ == "__main__":
    raise SystemExit(main(command_line(sys.argv[1:])))
