"""Traces: the tracer of requests, and the exporter of its spans. Both are imported only with the flag."""

import logging
import os
from typing import TYPE_CHECKING, Final

from mockube.apiserver.config.command_line import Config

from .environment import ServerEnvironment

if TYPE_CHECKING:
    from mockube.apiserver.tracing.exporter import SpanExporter
    from mockube.apiserver.tracing.tracer import Tracer

LOG: Final = logging.getLogger(__name__)

DEFAULT_ENDPOINT: Final = "localhost:4317"
"""The endpoint of a collector on the same machine, as in OpenTelemetry's exporters."""


class Traces:
    """The traces of one server: `tracer` starts them, and the exporter sends their spans between `start` and `close`."""

    def __init__(self, tracer: "Tracer", exporter: "SpanExporter") -> None:
        self.tracer = tracer
        self.start, self.close = exporter.start, exporter.close


def make_traces(config: Config, environment: ServerEnvironment) -> Traces | None:
    """Return the traces; None without the flag."""
    configuration = config.tracing.tracing_config_file
    if configuration is None:
        return None
    from mockube.apiserver.tracing.exporter import SpanExporter, limits_of  # noqa: PLC0415 - see above
    from mockube.apiserver.tracing.tracer import Tracer  # noqa: PLC0415 - see above

    endpoint = configuration.endpoint or DEFAULT_ENDPOINT
    resource = {"service.name": "apiserver", "service.instance.id": environment.identity}
    exporter = SpanExporter(endpoint, resource, limits_of(os.environ))
    tracer = Tracer(
        exporter.add,
        clock=environment.clock.real,
        random=environment.random,
        samples_per_million=configuration.samples_per_million,
    )
    LOG.info("Traces: %d of a million requests, to %s", configuration.samples_per_million, endpoint)
    return Traces(tracer, exporter)
