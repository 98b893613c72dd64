"""The kinds of metrics.k8s.io, which are computed for each request and not stored."""

from datetime import datetime
from typing import Any, Final

from mockube.apimachinery import meta
from mockube.apimachinery.quota.amounts import read
from mockube.apimachinery.tree import Tree
from mockube.apimachinery.usage.usage import total
from mockube.apiserver.kinds.api_resource import Resource
from mockube.apiserver.kinds.kind import Group, Kind
from mockube.apiserver.wire.table import Column, Printer

GROUP_NAME: Final = "metrics.k8s.io"
VERSION: Final = "v1beta1"

_COLUMNS: Final = (
    Column(name="Name", format="name", description="Name of the resource"),
    Column(name="cpu", format="quantity"),
    Column(name="memory", format="quantity"),
    Column(name="Window", format="duration"),
)


def _node_cells(metrics: Tree, _: datetime) -> list[Any]:
    usage = metrics.get("usage") or {}
    return [meta.name(metrics), usage.get("cpu", "0"), usage.get("memory", "0"), metrics["window"]]


def _pod_cells(metrics: Tree, now: datetime) -> list[Any]:
    used = total(read(container.get("usage")) for container in metrics.get("containers") or ())
    usage = {name: str(amount) for name, amount in used.items()}
    return _node_cells({**metrics, "usage": usage}, now)


NODE_METRICS: Final = Kind(
    resource=Resource(
        group=GROUP_NAME,
        version=VERSION,
        name="nodes",
        kind="NodeMetrics",
        has_singular=False,
        namespaced=False,
        verbs=("get", "list"),
        stored_at=f"{GROUP_NAME}/nodes",
    ),
    printer=Printer(columns=_COLUMNS, cells=_node_cells),
)
POD_METRICS: Final = Kind(
    resource=Resource(
        group=GROUP_NAME,
        version=VERSION,
        name="pods",
        kind="PodMetrics",
        has_singular=False,
        verbs=("get", "list"),
        stored_at=f"{GROUP_NAME}/pods",
    ),
    printer=Printer(columns=_COLUMNS, cells=_pod_cells),
)
GROUP: Final = Group(name=GROUP_NAME, versions=(VERSION,), kinds=(NODE_METRICS, POD_METRICS))
CUSTOM: Final = Group(name="custom.metrics.k8s.io", versions=("v1beta2", "v1beta1"))
EXTERNAL: Final = Group(name="external.metrics.k8s.io", versions=("v1beta1",))
"""The resources of the last two groups are metrics."""
GROUPS: Final = (GROUP, CUSTOM, EXTERNAL)
"""The groups that are served only if pods are simulated. Otherwise, metrics-server and adapters serve them."""
