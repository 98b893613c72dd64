"""The columns of pods, and of what holds a template of pods and nothing else."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from apimachinery import meta
from apiserver.resources.columns import ages, selectors
from apiserver.resources.columns.containers import CONTAINERS, IMAGES, SELECTOR, names_and_images
from apiserver.resources.columns.core import pod_status
from apiserver.resources.columns.parts import condition, items, number, part, text
from apiserver.wire.table import AGE, NAME, Column, Printer, Tree


def _pod(pod: Tree, now: datetime) -> list[Any]:
    status = pod_status.of(pod)
    return [
        meta.name(pod),
        f"{status.ready}/{status.total}",
        status.reason,
        _restarts(status, now),
        ages.age(pod, now),
        _ip(pod) or "<none>",
        text(pod, "spec", "nodeName") or "<none>",
        text(pod, "status", "nominatedNodeName") or "<none>",
        _readiness_gates(pod),
    ]


def _restarts(status: pod_status.PodStatus, now: datetime) -> str:
    if status.restarts and status.last_restart:
        return f"{status.restarts} ({ages.since(status.last_restart, now)} ago)"
    return str(status.restarts)


def _ip(pod: Tree) -> str:
    ips = items(pod, "status", "podIPs")
    return text(ips[0], "ip") if ips else ""


def _readiness_gates(pod: Tree) -> str:
    gates = items(pod, "spec", "readinessGates")
    if not gates:
        return "<none>"
    passed = [gate for gate in gates if condition(pod, text(gate, "conditionType")) == "True"]
    return f"{len(passed)}/{len(gates)}"


_COMPLETED: Final = {
    "Succeeded": "The pod has completed successfully.",
    "Failed": "The pod failed.",
}


def _conditions(pod: Tree) -> list[Tree]:
    """That a pod has ended, so that a client may leave it out."""
    phase = text(pod, "status", "phase")
    if phase not in _COMPLETED:
        return []
    return [{"type": "Completed", "status": "True", "reason": phase, "message": _COMPLETED[phase]}]


def _pod_template(tree: Tree, _: datetime) -> list[Any]:
    template = part(tree, "template")
    names, images = names_and_images(template)
    return [meta.name(tree), names, images, selectors.of_labels(part(template, "metadata", "labels"))]


def _replication_controller(tree: Tree, now: datetime) -> list[Any]:
    return [
        meta.name(tree),
        number(tree, "spec", "replicas"),
        number(tree, "status", "replicas"),
        number(tree, "status", "readyReplicas"),
        ages.age(tree, now),
        *names_and_images(part(tree, "spec", "template")),
        selectors.of_labels(part(tree, "spec", "selector")),
    ]


PRINTERS: Final[Mapping[str, Printer]] = {
    "Pod": Printer(
        columns=(
            NAME,
            Column(name="Ready"),
            Column(name="Status"),
            Column(name="Restarts"),
            AGE,
            Column(name="IP", priority=1),
            Column(name="Node", priority=1),
            Column(name="Nominated Node", priority=1),
            Column(name="Readiness Gates", priority=1),
        ),
        cells=_pod,
        conditions=_conditions,
    ),
    "PodTemplate": Printer(
        columns=(NAME, Column(name="Containers"), Column(name="Images"), Column(name="Pod Labels")),
        cells=_pod_template,
    ),
    "ReplicationController": Printer(
        columns=(
            NAME,
            Column(name="Desired", type="integer"),
            Column(name="Current", type="integer"),
            Column(name="Ready", type="integer"),
            AGE,
            CONTAINERS,
            IMAGES,
            SELECTOR,
        ),
        cells=_replication_controller,
    ),
}
