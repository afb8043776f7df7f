"""`threadloom-worker`: one worker process of the Python SDK, as a runner with PROCESS environments starts it.

A runner's machine calls it with `--id` and `--provision_endpoint`; Beam's own boot program, which does
the same in containers, is not part of the Python package. What the job needs must be installed here:
nothing is staged.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping

import grpc
from apache_beam.portability.api import (
    beam_provision_api_pb2,
    beam_provision_api_pb2_grpc,
    endpoints_pb2,
)
from apache_beam.runners.worker import sdk_worker_main
from google.protobuf import json_format, text_format

from pipeline.allocators import LEAN, start_again_with


def main() -> None:
    """Works until the runner has no more to do. Raises grpc.RpcError where the runner is gone."""
    start_again_with(LEAN)
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--id", required=True, help="the worker's name")
    parser.add_argument("--provision_endpoint", required=True, help="where the runner says all else")
    known, _rest = parser.parse_known_args(sys.argv[1:])
    os.environ.update(worker_environment(known.id, _provision(known.id, known.provision_endpoint)))
    sdk_worker_main.main([])


def worker_environment(worker_id: str, info: beam_provision_api_pb2.ProvisionInfo) -> Mapping[str, str]:
    """The variables that Beam's worker takes its place of work from."""
    variables = {
        "WORKER_ID": worker_id,
        "PIPELINE_OPTIONS": json_format.MessageToJson(info.pipeline_options),
        "CONTROL_API_SERVICE_DESCRIPTOR": _described(info.control_endpoint),
        "LOGGING_API_SERVICE_DESCRIPTOR": _described(info.logging_endpoint),
        "RUNNER_CAPABILITIES": " ".join(info.runner_capabilities),
    }
    if info.status_endpoint.url:
        variables["STATUS_API_SERVICE_DESCRIPTOR"] = _described(info.status_endpoint)
    return variables


def _provision(worker_id: str, endpoint: str) -> beam_provision_api_pb2.ProvisionInfo:
    with grpc.insecure_channel(endpoint) as channel:
        stub = beam_provision_api_pb2_grpc.ProvisionServiceStub(channel)
        request = beam_provision_api_pb2.GetProvisionInfoRequest()
        return stub.GetProvisionInfo(request, metadata=[("worker_id", worker_id)]).info


def _described(endpoint: endpoints_pb2.ApiServiceDescriptor) -> str:
    return str(text_format.MessageToString(endpoint))


if __name__ == "__main__":
    main()
