"""The kinds of metrics.k8s.io, which are computed for each request and not stored."""

from collections.abc import Callable
from datetime import datetime
from typing import Any, Final

from mockube.apimachinery import meta
from mockube.apimachinery.quota.amounts import read
from mockube.apimachinery.schema import minors
from mockube.apimachinery.tree import Tree
from mockube.apimachinery.usage.usage import total
from mockube.apiserver.kinds.api_resource import Resource
from mockube.apiserver.kinds.kind import Group, Kind
from mockube.apiserver.wire.table import Column, Printer

GROUP_NAME: Final = "metrics.k8s.io"

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


def _kind(name: str, kind: str, version: str, cells: Callable[[Tree, datetime], list[Any]]) -> Kind:
    return Kind(
        resource=Resource(
            group=GROUP_NAME,
            version=version,
            name=name,
            kind=kind,
            has_singular=False,
            namespaced=name == "pods",
            verbs=("get", "list"),
            stored_at=f"{GROUP_NAME}/{name}",
        ),
        printer=Printer(columns=_COLUMNS, cells=cells),
    )


def _kinds(version: str) -> tuple[Kind, Kind]:
    nodes = _kind("nodes", "NodeMetrics", version, _node_cells)
    return nodes, _kind("pods", "PodMetrics", version, _pod_cells)


GROUP: Final = Group(name=GROUP_NAME, versions=("v1", "v1beta1"), kinds=(*_kinds("v1beta1"), *_kinds("v1")))
_BETA: Final = Group(name=GROUP_NAME, versions=("v1beta1",), kinds=_kinds("v1beta1"))


def group_of(minor: str) -> Group:
    """Return the group with the versions that clients of a minor release request."""
    return _BETA if minors.is_before(minor, "1.37") else GROUP


CUSTOM: Final = Group(name="custom.metrics.k8s.io", versions=("v1beta2", "v1beta1"))
EXTERNAL: Final = Group(name="external.metrics.k8s.io", versions=("v1beta1",))
"""The resources of the last two groups are metrics."""
GROUPS: Final = (GROUP, CUSTOM, EXTERNAL)
"""The groups that are served only if pods are simulated. Otherwise, metrics-server and adapters serve them."""
