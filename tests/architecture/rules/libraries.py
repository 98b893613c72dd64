"""Rule: some libraries are imported in a few places only, so that they can be replaced."""

import re
from collections.abc import Iterator, Mapping

from tests.architecture.rules.names import imports
from tests.architecture.source import Finding, Module

HOMES: Mapping[str, re.Pattern[str]] = {
    "aiohttp": re.compile(
        r"^(apiserver/http/|component_base/aiohttp_protocol\.py$|client/transport\.py$|controller_manager/http_endpoints\.py$|kubelet/server/|container_runtime/simulated/connections/local_connections\.py$|etcd/remote/|mockube/)"
    ),
    "OpenSSL": re.compile(r"^apiserver/pki/portable_context\.py$"),
    "grpc": re.compile(r"^apiserver/tracing/exporter\.py$"),
}


def check(module: Module) -> Iterator[Finding]:
    for line, name in imports(module):
        home = HOMES.get(name.partition(".")[0])
        if home and not home.search(module.path):
            yield Finding(line, f"imports {name}, which is for {home.pattern} only")
