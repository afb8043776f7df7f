"""The job as Dataflow would get it, translated offline: the staged pipeline and the job's JSON."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import stores
from product import ARCHIVES, FIVE, ROOT, here
from stores import Store

from pipeline.arguments import expanded, parser
from pipeline.beam_options import beam_options
from pipeline.streaming.arguments import STREAM_ONLY

CONFIGS = ROOT / "runner_configs"
IMAGE = "threadloom-worker:0.1.0"
GROUP_BY_KEY = "beam:transform:group_by_key:v1"


def launcher() -> ModuleType:
    spec = importlib.util.spec_from_file_location("launcher", CONFIGS / "dataflow_flex" / "launcher.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def gs(monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    with stores.gs(monkeypatch) as one:
        one.put("in/irc.jsonl", (ARCHIVES / FIVE[0]).read_bytes())
        one.put("in/slack.jsonl", (ARCHIVES / FIVE[1]).read_bytes())
        yield one


def where(store: Store) -> list[str]:
    """What a user adds to the file of options; the template location makes Beam stage and not submit."""
    return [
        *("--project=none", "--region=europe-west1", f"--sdk_container_image={IMAGE}", *store.options),
        *(f"--temp_location={store.root}/tmp", f"--staging_location={store.root}/staging"),
        f"--template_location={store.root}/job.json",
    ]


def staged(store: Store) -> tuple[dict[str, Any], Any]:
    """The job's JSON and the pipeline that was staged beside it."""
    from apache_beam.portability.api import beam_runner_api_pb2

    objects = store.objects()
    (name,) = [name for name in objects if name.endswith("/pipeline.pb")]
    return json.loads(objects["job.json"]), beam_runner_api_pb2.Pipeline.FromString(objects[name])


@pytest.mark.live
@pytest.mark.parametrize("file", ["dataflow.args", "dataflow_flex.args"])
def test_translation(file: str, gs: Store) -> None:
    arguments = ["--input", f"{gs.root}/in/*.jsonl", "--output", f"{gs.root}/out", "--dataset", "both"]
    if file == "dataflow.args":
        code, said = here("run", *arguments, f"@{CONFIGS / file}", *where(gs))
    else:
        parameters = [f"--input={gs.root}/in/irc.jsonl {gs.root}/in/slack.jsonl", f"--output={gs.root}/out"]
        line = launcher().command_line([*parameters, "--dataset=both", "--include_names=false", *where(gs)])
        code, said = here(*line)
    assert code == 0, said
    assert "threadloom: started" in said
    job, pipeline = staged(gs)

    assert job["type"] == "JOB_TYPE_BATCH"
    (pool,) = job["environment"]["workerPools"]
    assert [image["containerImage"] for image in pool["sdkHarnessContainerImages"]] == [IMAGE]
    assert pool["diskSizeGb"] == 50
    assert pool["numThreadsPerWorker"] == 2
    assert job["environment"]["debugOptions"]["enableHotKeyLogging"] is True
    # Nothing of this process travels: no pickled __main__, no packages.
    assert [package["name"] for package in pool["packages"]] == ["submission_environment_dependencies.txt"]

    # One GroupByKey for each shuffle, and no other.
    transforms = pipeline.components.transforms.values()
    grouping = sorted(one.unique_name for one in transforms if one.spec.urn == GROUP_BY_KEY)
    assert grouping == [
        "Commit/Together",
        "Group into threads/Group by shard",
        "Read archive/Spread splits/ReshufflePerKey/GroupByKey",
        "Write rejected/Group rejects by shard",
    ]
    names = {one.unique_name for one in transforms}
    assert {"Convert for training", "Write training/Write shard", "Write replay/Write shard"} <= names
    assert all(one.is_bounded == 2 for one in pipeline.components.pcollections.values())
    images = [
        IMAGE.encode() in environment.payload for environment in pipeline.components.environments.values()
    ]
    assert images == [True]
    # The plan was made where the files are: both are split, and nothing was written but a probe.
    assert not [name for name in gs.objects() if name.startswith("out/")]


@pytest.mark.live
def test_translation_of_a_job_that_never_ends(gs: Store) -> None:
    subscription = "projects/a-project/subscriptions/chat"
    what = ["--streaming", f"--pubsub_subscription={subscription}", f"--output={gs.root}/out"]
    code, said = here("run", *what, "--dataset=both", f"@{CONFIGS / 'dataflow_streaming.args'}", *where(gs))
    assert code == 0, said
    job, pipeline = staged(gs)
    assert job["type"] == "JOB_TYPE_STREAMING"
    assert "enable_streaming_engine" in job["environment"]["experiments"]
    (pool,) = job["environment"]["workerPools"]
    assert [image["containerImage"] for image in pool["sdkHarnessContainerImages"]] == [IMAGE]
    assert [package["name"] for package in pool["packages"]] == ["submission_environment_dependencies.txt"]

    transforms = pipeline.components.transforms.values()
    (read,) = [one for one in transforms if one.spec.urn == "beam:transform:pubsub_read:v1"]
    assert subscription.encode() in read.spec.payload
    # No shuffle but by state: a lane's sessions, and the commits.
    assert not [one.unique_name for one in transforms if one.spec.urn == GROUP_BY_KEY]
    keyed = {one.unique_name for one in transforms if _has_state(one)}
    assert keyed == {
        "Commit/Gather and commit",
        "Group into sessions/Close sessions/ParDo(_CloseByWatermark)",
    }
    assert not [name for name in gs.objects() if name.startswith("out/")]


def _has_state(transform: Any) -> bool:
    from apache_beam.portability.api import beam_runner_api_pb2

    if transform.spec.urn != "beam:transform:pardo:v1":
        return False
    return bool(beam_runner_api_pb2.ParDoPayload.FromString(transform.spec.payload).state_specs)


def metadata() -> dict[str, Any]:
    content: dict[str, Any] = json.loads((CONFIGS / "dataflow_flex" / "metadata.json").read_text())
    return content


def own_options() -> dict[str, Any]:
    run = parser()._subparsers._group_actions[0].choices["run"]  # type: ignore
    return {action.dest: action for action in run._actions if action.dest != "help"}


# Options that a started job no longer heeds, or that only the in-process runner does; and those of a job that
# never ends, for which there is no template.
NOT_IN_A_TEMPLATE = {"no_wait", "max_rejected", "in_memory_anyway", "quiet", "streaming", *STREAM_ONLY}


def test_the_template_has_our_options_and_no_others() -> None:
    given = {parameter["name"]: parameter for parameter in metadata()["parameters"]}
    assert set(given) == set(own_options()) - NOT_IN_A_TEMPLATE
    for name, parameter in given.items():
        action = own_options()[name]
        assert parameter["helpText"].startswith(action.help), name
        assert parameter["isOptional"] == (name not in ("input", "output"))
        switch = action.nargs == 0
        assert (parameter.get("paramType") == "BOOLEAN") == switch, name


def test_the_template_names_the_choices_that_we_have() -> None:
    from pipeline.options import RunOptions
    from schemas.errors import UsageError

    enums = {
        parameter["name"]: [option["value"] for option in parameter["enumOptions"]]
        for parameter in metadata()["parameters"]
        if parameter.get("paramType") == "ENUM"
    }
    assert set(enums) == {"dataset", "source", "format", "guards", "provider", "duplicates"}
    for name, values in enums.items():
        for value in values:
            dataset = "replay" if value == "langchain" else "training"
            RunOptions(**{"input": ("a",), "output": "b", "dataset": dataset, name: value})
        with pytest.raises(UsageError) as refusal:
            RunOptions(**{"input": ("a",), "output": "b", "dataset": "training", name: "none-of-them"})
        offered = str(refusal.value).split(": ")[-1].split(", ")
        assert set(offered) <= set(values), name


def test_the_launcher_gives_what_the_command_takes() -> None:
    line = launcher().command_line(
        [
            *("--input=gs://b/a/*.jsonl gs://b/c.jsonl.gz", "--output=gs://b/out", "--dataset=both"),
            *(
                "--include_names=true",
                "--keep_pending_call",
                "--overwrite=false",
                "--format=",
                "--num_shards=7",
                "--guards=strict",
            ),
            *("--allowed_tools=a,b", "--project=p", "--region=r", "--job_name=j", "--temp_location=gs://b/t"),
        ]
    )
    known, rest = parser().parse_known_args(expanded(line))
    assert known.input == ["gs://b/a/*.jsonl", "gs://b/c.jsonl.gz"]
    assert (known.output, known.dataset, known.num_shards) == ("gs://b/out", "both", 7)
    assert (known.include_names, known.overwrite, known.no_wait) == (True, False, True)
    assert known.keep_pending_call is True
    assert known.format is None
    given = beam_options(rest, []).get_all_options(drop_default=True)
    assert (given["runner"], given["project"], given["job_name"]) == ("DataflowRunner", "p", "j")


def test_a_switch_that_is_neither_true_nor_false_is_refused() -> None:
    line = launcher().command_line(["--input=a", "--output=b", "--include_names=perhaps"])
    code, said = here(*line)
    assert code == 2
    assert "--include_names" in said


def test_the_containers_are_those_that_are_tested() -> None:
    import apache_beam
    from packaging.requirements import Requirement

    worker = (CONFIGS / "worker" / "Dockerfile").read_text()
    assert f"FROM apache/beam_python3.11_sdk:{apache_beam.__version__}\n" in worker
    lines = (CONFIGS / "worker" / "requirements.txt").read_text().splitlines()
    pinned = {one.name: one for one in map(Requirement, lines[1:])}
    ours = [Requirement(one) for one in install_requires()]
    assert set(pinned) == {one.name for one in ours}
    for one in ours:
        (pin,) = pinned[one.name].specifier
        assert pin.operator == "=="
        assert one.specifier.contains(pin.version), one.name
    assert str(pinned["apache-beam"].specifier) == f"=={apache_beam.__version__}"
    assert pinned["apache-beam"].extras == {"aws", "gcp"}
    flex = (CONFIGS / "dataflow_flex" / "Dockerfile").read_text()
    (entry,) = [line.split("=", 1)[1] for line in flex.splitlines() if "PYTHON_PY_FILE" in line]
    assert (ROOT / Path(entry).relative_to("/opt/threadloom")).exists()


def install_requires() -> list[str]:
    import ast

    for node in ast.walk(ast.parse((ROOT / "setup.py").read_text())):
        if isinstance(node, ast.keyword) and node.arg == "install_requires":
            return list(ast.literal_eval(node.value))
    raise AssertionError("setup.py has no install_requires")
