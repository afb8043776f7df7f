"""What a runner says of a worker's place, as the variables that Beam's worker reads."""

from __future__ import annotations

from apache_beam.portability.api import beam_provision_api_pb2
from apache_beam.runners.worker import sdk_worker_main

from pipeline.sdk_worker import worker_environment


def test_beams_worker_finds_its_place() -> None:
    info = beam_provision_api_pb2.ProvisionInfo(runner_capabilities=["a", "b"])
    info.control_endpoint.url = "localhost:1"
    info.logging_endpoint.url = "localhost:2"
    info.pipeline_options["beam:option:job_name:v1"] = "job"
    variables = dict(worker_environment("7-1", info))
    assert variables["WORKER_ID"] == "7-1"
    assert variables["CONTROL_API_SERVICE_DESCRIPTOR"] == 'url: "localhost:1"\n'
    assert variables["LOGGING_API_SERVICE_DESCRIPTOR"] == 'url: "localhost:2"\n'
    assert variables["RUNNER_CAPABILITIES"] == "a b"
    assert "STATUS_API_SERVICE_DESCRIPTOR" not in variables
    options = sdk_worker_main._load_pipeline_options(variables["PIPELINE_OPTIONS"])
    assert options == {"job_name": "job"}
    info.status_endpoint.url = "localhost:3"
    assert worker_environment("7-1", info)["STATUS_API_SERVICE_DESCRIPTOR"] == 'url: "localhost:3"\n'
