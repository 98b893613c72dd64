"""Defaults of discovery.k8s.io: the ports of EndpointSlices."""

from typing import Final

from apiserver.defaults.table import of

DEFAULTS: Final = of("io.k8s.api.discovery.v1", {"EndpointPort": {"name": "", "protocol": "TCP"}})
