"""`python -m pipeline`: the command `threadloom`."""

from pipeline.cli import command

raise SystemExit(command())
