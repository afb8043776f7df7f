"""Errors that a user can act on: their text is one line that says what, where and what to do."""

from __future__ import annotations


class UsageError(ValueError):
    """The options cannot be run as given (exit code 2)."""


class JobError(RuntimeError):
    """The job could not be finished (exit code 1)."""
