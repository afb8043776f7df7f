"""Whether a job server is there before a job is handed to it: Beam would wait for minutes, silently."""

from __future__ import annotations

import socket

from apache_beam.options.pipeline_options import PipelineOptions, PortableOptions

from schemas.errors import JobError

_SECONDS = 5.0


def check_job_server(options: PipelineOptions) -> None:
    """Raises JobError where `--job_endpoint` names a server and nothing answers there."""
    endpoint = options.view_as(PortableOptions).job_endpoint
    if not endpoint or endpoint == "embed":
        return
    host, _, port = endpoint.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_SECONDS).close()
    except ValueError:
        raise JobError(f"--job_endpoint {endpoint!r} is not of the form HOST:PORT") from None
    except OSError as error:
        reason = error.strerror or error
        raise JobError(
            f"nothing answers at --job_endpoint {endpoint} ({reason}): the job server must run first"
        ) from None
