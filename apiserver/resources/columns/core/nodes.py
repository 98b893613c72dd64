"""The columns of nodes, and of the components of the control plane."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from apimachinery import conditions, meta, wellknown
from apiserver.resources.columns import ages
from apiserver.resources.columns.parts import flag, items, part, text
from apiserver.wire.table import AGE, NAME, Column, Printer, Tree

_LABEL_ROLE: Final = "kubernetes.io/role"


def _node(node: Tree, now: datetime) -> list[Any]:
    info = part(node, "status", "nodeInfo")
    return [
        meta.name(node),
        _status(node),
        ",".join(_roles(node)) or "<none>",
        ages.age(node, now),
        text(info, "kubeletVersion"),
        _address(node, "InternalIP"),
        _address(node, "ExternalIP"),
        text(info, "osImage") or "<unknown>",
        _kernel(info),
        text(info, "containerRuntimeVersion") or "<unknown>",
    ]


def _status(node: Tree) -> str:
    ready = conditions.get(node, wellknown.CONDITION_READY)
    status = "Unknown" if ready is None else "Ready" if text(ready, "status") == "True" else "NotReady"
    return f"{status},SchedulingDisabled" if flag(node, "spec", "unschedulable") else status


def _roles(node: Tree) -> list[str]:
    labels = meta.labels(node)
    prefix = wellknown.LABEL_NODE_ROLE_PREFIX
    named = {label.removeprefix(prefix) for label in labels if label.startswith(prefix)}
    return sorted({*named, labels.get(_LABEL_ROLE) or ""} - {""})


def _address(node: Tree, address_type: str) -> str:
    addresses = items(node, "status", "addresses")
    found = (address for address in addresses if text(address, "type") == address_type)
    return text(next(found, None), "address", default="<none>")


def _kernel(info: Any) -> str:
    version, architecture = text(info, "kernelVersion") or "<unknown>", text(info, "architecture")
    return f"{version} ({architecture})" if architecture else version


def _component_status(component: Tree, _: datetime) -> list[Any]:
    found = (each for each in items(component, "conditions") if text(each, "type") == "Healthy")
    condition = next(found, None)
    return [meta.name(component), _health(condition), text(condition, "message"), text(condition, "error")]


def _health(condition: Any) -> str:
    if condition is None:
        return "Unknown"
    return "Healthy" if text(condition, "status") == "True" else "Unhealthy"


PRINTERS: Final[Mapping[str, Printer]] = {
    "Node": Printer(
        columns=(
            NAME,
            Column(name="Status"),
            Column(name="Roles"),
            AGE,
            Column(name="Version"),
            Column(name="Internal-IP", priority=1),
            Column(name="External-IP", priority=1),
            Column(name="OS-Image", priority=1),
            Column(name="Kernel-Version", priority=1),
            Column(name="Container-Runtime", priority=1),
        ),
        cells=_node,
    ),
    "ComponentStatus": Printer(
        columns=(NAME, Column(name="Status"), Column(name="Message"), Column(name="Error")),
        cells=_component_status,
    ),
}
