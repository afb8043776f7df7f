"""The shape of the project: imports run one way, and only the thin modules know Beam."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGES = ("schemas", "transforms", "pipeline")
MODULES = sorted(path for name in PACKAGES for path in (ROOT / name).rglob("*.py"))
BEAM_MODULES = {"transforms/dofns.py"}


def imported(path: Path) -> set[str]:
    """The top-level names of all that a module imports."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            assert not node.level, f"{path}: relative import"
            names.add(node.module.split(".")[0])
    return names


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_run_one_way(path: Path) -> None:
    package = path.relative_to(ROOT).parts[0]
    later = set(PACKAGES[PACKAGES.index(package) + 1 :])
    assert not imported(path) & later
    name = path.relative_to(ROOT).as_posix()
    if "apache_beam" in imported(path):
        assert package == "pipeline" or name in BEAM_MODULES


def test_pure_modules_load_without_beam() -> None:
    pure = [
        path.relative_to(ROOT).with_suffix("").as_posix().replace("/", ".")
        for path in MODULES
        if path.relative_to(ROOT).parts[0] != "pipeline"
        and path.relative_to(ROOT).as_posix() not in BEAM_MODULES
        and path.name != "__init__.py"
    ]
    code = (
        "import importlib, sys\n"
        f"for name in {pure!r}: importlib.import_module(name)\n"
        "assert not any(name.startswith('apache_beam') for name in sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)


def test_help_does_not_wait_for_beam() -> None:
    code = (
        "import sys\nfrom pipeline.cli import main\n"
        "try: main(['run', '--help'])\nexcept SystemExit: pass\n"
        "assert not any(name.startswith('apache_beam') for name in sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)


def test_setup_lists_every_package() -> None:
    text = (ROOT / "setup.py").read_text()
    for folder in {path.parent for path in MODULES}:
        assert f'"{folder.relative_to(ROOT).as_posix().replace("/", ".")}"' in text


def test_types_and_lint() -> None:
    for tool in (["mypy"], ["ruff", "check", "."], ["ruff", "format", "--check", "."]):
        done = subprocess.run(
            [sys.executable, "-m", *tool], cwd=ROOT, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
