"""The strategy of each resource that has one."""

from collections.abc import Mapping
from types import MappingProxyType

from apimachinery.groups import GroupResource
from apiserver.resources.strategies import (
    certificates,
    definitions,
    endpoints,
    namespaces,
    plain,
    pods,
    services,
    volumes,
    workloads,
)
from apiserver.resources.strategy import Strategy

STRATEGIES: Mapping[GroupResource, Strategy] = MappingProxyType(
    certificates.STRATEGIES
    | definitions.STRATEGIES
    | endpoints.STRATEGIES
    | namespaces.STRATEGIES
    | plain.STRATEGIES
    | pods.STRATEGIES
    | services.STRATEGIES
    | volumes.STRATEGIES
    | workloads.STRATEGIES
)
