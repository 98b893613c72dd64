"""Defaults of node.k8s.io: none, not even of the amounts in a RuntimeClass, which elsewhere are rounded."""

from typing import Final

from apiserver.defaults.table import NOWHERE, of

DEFAULTS: Final = of("io.k8s.api.node.v1", {"RuntimeClass": NOWHERE})
