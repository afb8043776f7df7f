"""The job that never ends: the same conversions on archives that keep growing."""
