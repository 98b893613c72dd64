"""Run a command, and print the traces of the requests for objects that one client sends meanwhile.

    python collector.py CLIENT CONFIG COMMAND...

CLIENT is the beginning of the client's user agent, such as kubectl. CONFIG is the file for `--tracing-config-file`, which
this program writes with its own address.
"""

import subprocess
import sys
from concurrent import futures
from pathlib import Path

import grpc
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2, trace_service_pb2_grpc

CONFIG = """\
apiVersion: apiserver.config.k8s.io/v1
kind: TracingConfiguration
endpoint: 127.0.0.1:{port}
samplingRatePerMillion: 1000000
"""


class Collector(trace_service_pb2_grpc.TraceServiceServicer):
    def __init__(self):
        self.spans = []

    def Export(self, request, context):  # noqa: N802, ARG002 - the name in OpenTelemetry's protocol
        for resource in request.resource_spans:
            for scope in resource.scope_spans:
                self.spans += scope.spans
        return trace_service_pb2.ExportTraceServiceResponse()

    def print_traces(self, client):
        for span in sorted(self.spans, key=lambda span: span.start_time_unix_nano):
            is_for_objects = " /" in span.name  # the names of others are their methods
            if is_for_objects and attribute(span, "user_agent.original").startswith(client):
                self.print_tree(span)

    def print_tree(self, span, indent=""):
        milliseconds = (span.end_time_unix_nano - span.start_time_unix_nano) / 1e6
        print(f"{indent}{span.name} {milliseconds:.1f} ms")
        for child in self.spans:
            if child.parent_span_id == span.span_id:
                self.print_tree(child, indent + "  ")


def attribute(span, name):
    return next((each.value.string_value for each in span.attributes if each.key == name), "")


def main(client, config, *command):
    collector = Collector()
    server = grpc.server(futures.ThreadPoolExecutor(1))
    trace_service_pb2_grpc.add_TraceServiceServicer_to_server(collector, server)
    port = server.add_insecure_port("127.0.0.1:0")
    Path(config).write_text(CONFIG.format(port=port))
    server.start()
    code = subprocess.run(command, check=False).returncode
    server.stop(grace=None).wait()
    collector.print_traces(client)
    sys.exit(code)


if __name__ == "__main__":
    main(*sys.argv[1:])
