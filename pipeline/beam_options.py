"""What is left of the command line is Beam's: checked against the options that Beam really has."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn

from apache_beam.options.pipeline_options import PipelineOptions

from pipeline.arguments import unknown_option
from pipeline.flink_options import FlinkServerOptions
from schemas.errors import UsageError

IN_PROCESS = "FnApiRunner"


class _BeamParser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(message)


def beam_options(arguments: Sequence[str], own: Iterable[str]) -> PipelineOptions:
    """Beam's options. Raises UsageError for one that neither Beam nor we know."""
    parser = _beam_parser()
    known, unknown = parser.parse_known_args(list(arguments))
    names = set(parser._option_string_actions) | set(own)
    for argument in unknown:
        if argument.startswith("-"):
            raise unknown_option(argument.split("=", 1)[0], names)
        raise UsageError(f"unexpected argument {argument!r}: options start with --")
    if getattr(known, "direct_running_mode", None) == "multi_threading":
        raise UsageError(
            "--direct_running_mode multi_threading loses records in Beam 2.77: "
            "use in_memory or multi_processing"
        )
    # DirectRunner, and no runner named, would first try to download another one.
    chosen = [] if known.runner not in (None, "DirectRunner") else [f"--runner={IN_PROCESS}"]
    # A service runner would pickle `__main__` by default: there is nothing in it.
    return PipelineOptions([*arguments, *chosen, "--no_save_main_session"])


def _beam_parser() -> argparse.ArgumentParser:
    """A parser of every option of every PipelineOptions class that Beam has loaded."""
    parser = _BeamParser(add_help=False, allow_abbrev=False)
    classes = sorted({*_subclasses(PipelineOptions), FlinkServerOptions}, key=lambda cls: cls.__name__)
    for cls in classes:
        add = cls.__dict__.get("_add_argparse_args")
        if add is None:
            continue
        draft = _BeamParser(add_help=False, allow_abbrev=False, conflict_handler="resolve")
        add.__func__(cls, draft) if isinstance(add, classmethod) else add(draft)
        for action in draft._actions:
            if not any(name in parser._option_string_actions for name in action.option_strings):
                parser._add_action(action)
    return parser


def _subclasses(cls: Any) -> set[Any]:
    found: set[Any] = set()
    for sub in cls.__subclasses__():
        found |= {sub} | _subclasses(sub)
    return found


def runs_in_process(options: PipelineOptions) -> bool:
    """Whether the run uses the in-process runner."""
    return str(options.get_all_options().get("runner")) == IN_PROCESS
