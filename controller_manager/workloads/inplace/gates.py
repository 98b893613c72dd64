"""Readiness gates that a workload keeps: conditions that it alone writes, and without which its pods are not ready."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from apimachinery import conditions, meta
from apimachinery.timestamps import format_time
from controller_manager.kinds import PODS
from controller_manager.runtime.actions import Patch
from controller_manager.runtime.resource import Tree
from controller_manager.workloads.podview import PodView


def has_gate(pod: Tree, gate: str) -> bool:
    return any(it["conditionType"] == gate for it in pod["spec"].get("readinessGates") or ())


def with_gate(pod: Tree, gate: str) -> Tree:
    """A new pod with the gate, whether or not its template has it."""
    if has_gate(pod, gate):
        return pod
    gates = pod["spec"].get("readinessGates") or ()
    return meta.with_value(pod, ("spec", "readinessGates"), [*gates, {"conditionType": gate}])


def condition(pod: PodView, name: str, said: Mapping[str, str], now: datetime) -> dict[str, Any]:
    """What a condition is to say, with null for what it says no longer."""
    old = conditions.get(pod.object, name) or {}
    is_new = old.get("status") != said["status"]
    since = format_time(now) if is_new else old.get("lastTransitionTime")
    silent = {field: None for field in ("reason", "message") if field in old}
    return {"type": name, **silent, **said, "lastTransitionTime": since}


def told(pod: PodView, *changed: Tree) -> Patch:
    """Whatever the kubelet has told since: nobody else writes a gate, and conditions are merged by their types."""
    return Patch(
        resource=PODS,
        key=pod.key,
        kind="strategic",
        subresource="status",
        body={"metadata": {"uid": pod.uid}, "status": {"conditions": [*changed]}},
    )
