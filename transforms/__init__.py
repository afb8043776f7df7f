"""What happens to the data: pure functions, one algorithm a module; Beam only in `dofns.py`."""
