"""Each file of runner_configs/ is read by the real options, and says when to use it and how it was tested."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.arguments import expanded, parser
from pipeline.beam_options import beam_options, runs_in_process
from schemas.errors import UsageError

FOLDER = Path(__file__).parent.parent.parent / "runner_configs"
FILES = sorted(FOLDER.glob("*.args"))


def options_of(path: Path):  # type: ignore[no-untyped-def]
    _known, rest = parser().parse_known_args(expanded(["run", f"@{path}"]))
    return beam_options(rest, [])


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_option_is_known(path: Path) -> None:
    given = options_of(path).get_all_options(drop_default=True)
    assert given["runner"] in ("FnApiRunner", "PortableRunner")
    assert runs_in_process(options_of(path)) == path.name.startswith("in_process")


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_it_says_what_it_is_for(path: Path) -> None:
    comments = [line for line in path.read_text().splitlines() if line.startswith("#")]
    for said in ("When to use it: ", "What must run first: ", "What was tested: "):
        assert sum(said in line for line in comments) == 1


def test_files_that_the_project_names_are_there() -> None:
    root = FOLDER.parent
    for path in [root / "README.md", root / "pipeline" / "memory.py"]:
        for word in path.read_text().replace('"', " ").replace("`", " ").split():
            if word.startswith("@runner_configs/"):
                assert (root / word[1:].rstrip(",.;:")).exists(), word


def test_an_unknown_key_is_refused(tmp_path: Path) -> None:
    options = tmp_path / "my.args"
    options.write_text("--runner=PortableRunner\n--job_endpont=localhost:8099\n")
    with pytest.raises(UsageError, match="did you mean --job_endpoint"):
        options_of(options)
