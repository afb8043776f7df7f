"""Each file of runner_configs/ is read by the real options, and says when to use it and how it was tested."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import apache_beam
import pytest
import yaml
from flink import FLINK
from prism import VERSION as PRISM

from pipeline.arguments import expanded, parser
from pipeline.beam_options import beam_options, runs_in_process
from schemas.errors import UsageError

FOLDER = Path(__file__).parent.parent.parent / "runner_configs"
FILES = sorted(FOLDER.glob("*.args"))


def options_of(path: Path):  # type: ignore[no-untyped-def]
    _own, rest = parser().parse_known_args(expanded(["run", f"@{path}"]))
    return beam_options(rest, [])


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_option_is_known(path: Path) -> None:
    given = options_of(path).get_all_options(drop_default=True)
    assert given["runner"] in ("FnApiRunner", "PortableRunner", "DataflowRunner")
    assert runs_in_process(options_of(path)) == path.name.startswith("in_process")


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_it_says_what_it_is_for(path: Path) -> None:
    first = path.read_text().splitlines()[:3]
    said = ("# When to use it: ", "# What must run first: ", "# What was tested: ")
    assert [line[: len(start)] for line, start in zip(first, said, strict=True)] == list(said)
    assert all(len(line) > len(start) + 5 for line, start in zip(first, said, strict=True))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_it_names_the_versions_that_are_tested(path: Path) -> None:
    said = " ".join(line for line in path.read_text().splitlines() if line.startswith("#"))
    for name, version in {"Flink": FLINK, "Prism": PRISM, "prism@": f"v{PRISM}", "Spark": spark()}.items():
        for found in re.findall(rf"{name} ?(v?\d+\.\d+\.\d+)", said):
            assert found == version


def spark() -> str:
    pom = ElementTree.parse(FOLDER / "job_servers" / "spark.pom.xml")
    return maven_versions(pom)["spark-streaming_2.12"]


def maven_versions(pom: ElementTree.ElementTree) -> dict[str, str]:
    space = "{http://maven.apache.org/POM/4.0.0}" if pom.getroot().tag.startswith("{") else ""
    return {
        one.findtext(f"{space}artifactId"): one.findtext(f"{space}version")
        for one in pom.iter(f"{space}dependency")
    }


def test_versions_are_those_that_are_installed() -> None:
    assert apache_beam.__version__ == PRISM
    runner = maven_versions(ElementTree.parse(FOLDER / "job_servers" / "flink.pom.xml"))
    assert f"beam-runners-flink-{FLINK.rpartition('.')[0]}" in runner
    fetch = (FOLDER / "job_servers" / "fetch_jars.sh").read_text()
    assert f"apache-flink-libraries=={FLINK} " in fetch


def test_kubernetes_fits_its_options_and_the_tested_flink() -> None:
    cluster, server, service = yaml.safe_load_all((FOLDER / "flink_kubernetes" / "cluster.yaml").read_text())
    spec = cluster["spec"]
    assert spec["image"] == f"flink:{FLINK}-java17"
    assert spec["flinkVersion"] == "v" + "_".join(FLINK.split(".")[:2])
    slots = int(spec["flinkConfiguration"]["taskmanager.numberOfTaskSlots"])
    _flink, pool = spec["taskManager"]["podTemplate"]["spec"]["containers"]
    given = options_of(FOLDER / "flink_kubernetes.args").get_all_options(drop_default=True)
    assert given["environment_type"] == "EXTERNAL"
    assert given["environment_config"] == f"localhost:{pool['ports'][0]['containerPort']}"
    assert given["parallelism"] == slots * spec["taskManager"]["replicas"]
    assert pool["image"] == "threadloom-worker:0.1.0"
    (job_server,) = server["spec"]["template"]["spec"]["containers"]
    runner = maven_versions(ElementTree.parse(FOLDER / "job_servers" / "flink.pom.xml"))
    minor = FLINK.rpartition(".")[0]
    assert (
        job_server["image"] == f"apache/beam_flink{minor}_job_server:{runner[f'beam-runners-flink-{minor}']}"
    )
    ports = {port["name"]: port["port"] for port in service["spec"]["ports"]}
    assert given["job_endpoint"] == f"localhost:{ports['jobs']}"
    assert given["artifact_endpoint"] == f"localhost:{ports['artifacts']}"
    assert {port["containerPort"] for port in job_server["ports"]} == set(ports.values())


def test_files_that_the_project_names_are_there() -> None:
    root = FOLDER.parent
    for path in [root / "README.md", root / "pipeline" / "memory.py"]:
        for word in path.read_text().replace('"', " ").replace("`", " ").split():
            if word.startswith("@runner_configs/"):
                assert (root / word[1:].rstrip(",.;:")).exists(), word


def test_the_readme_has_a_row_for_each_target() -> None:
    rows = [line.split("|") for line in (FOLDER.parent / "README.md").read_text().splitlines() if "|" in line]
    named = {row[2].strip().split(",")[0].strip("` ") for row in rows if len(row) == 7}
    assert {path.stem for path in FILES} <= named


def test_an_unknown_key_is_refused(tmp_path: Path) -> None:
    options = tmp_path / "my.args"
    options.write_text("--runner=PortableRunner\n--job_endpont=localhost:8099\n")
    with pytest.raises(UsageError, match="did you mean --job_endpoint"):
        options_of(options)
