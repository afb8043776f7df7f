"""Hypothesis looks in new places on each run; in CI a failure must be one that can be had again."""

from __future__ import annotations

import os

from hypothesis import settings

settings.register_profile("ci", derandomize=True)
if os.environ.get("CI"):
    settings.load_profile("ci")
