"""Defaults of apiregistration.k8s.io: where an APIService is served."""

from typing import Final

from apiserver.defaults.table import of

DEFAULTS: Final = of(
    "io.k8s.kube-aggregator.pkg.apis.apiregistration.v1", {"ServiceReference": {"port": 443}}
)
