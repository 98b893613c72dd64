"""Readiness gates and lifecycle states of pods that are updated in place or held by a hook.

A gate's condition lists the reasons that keep a pod out of service; other controllers may add theirs. A pod that was
created without the gate stays in service.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import orjson

from mockube.apimachinery import conditions, meta
from mockube.apimachinery.timestamps import format_time
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.controller_manager.client.kinds import PODS
from mockube.controller_manager.client.podview import PodView
from mockube.controller_manager.control.actions import Patch
from mockube.controller_manager.workloads.inplace.lifecycle import (
    Hook,
    Lifecycle,
    State,
    annotations_of,
    labels_of,
    state_of,
)


def has_gate(pod: ReadOnlyTree, gate: str) -> bool:
    return any(
        readiness_gate["conditionType"] == gate for readiness_gate in pod["spec"].get("readinessGates") or ()
    )


def with_gate(pod: ReadOnlyTree, gate: str) -> ReadOnlyTree:
    """A new pod with the gate, whether or not its template has it."""
    if has_gate(pod, gate):
        return pod
    gates = pod["spec"].get("readinessGates") or ()
    return meta.with_value(pod, ("spec", "readinessGates"), [*gates, {"conditionType": gate}])


def condition(pod: PodView, name: str, fields: Mapping[str, str], now: datetime) -> dict[str, Any]:
    """Return a patch of a condition, with null for the fields to remove."""
    old = conditions.get(pod.object, name) or {}
    is_new = old.get("status") != fields["status"]
    since = format_time(now) if is_new else old.get("lastTransitionTime")
    silent = {field: None for field in ("reason", "message") if field in old}
    return {"type": name, **silent, **fields, "lastTransitionTime": since}


def readiness_patch(pod: PodView, *changed: ReadOnlyTree) -> Patch:
    """Without a precondition: only this manager writes the gate, and conditions are merged by their types."""
    return Patch(
        resource=PODS,
        key=pod.key,
        kind="strategic",
        subresource="status",
        body={"metadata": {"uid": pod.uid}, "status": {"conditions": [*changed]}},
    )


GATE: Final = "KruisePodReady"

Reason = Mapping[str, str]
_AGENT: Final = "Lifecycle"
_KEYS: Final = {State.PREPARING_DELETE: "preDeleteHook", State.PREPARING_UPDATE: "preUpdateHook"}
"""Of the states in which a pod is held, what the list has for it."""


def with_readiness_gate(pod: ReadOnlyTree, hooks: Lifecycle) -> ReadOnlyTree:
    """Add the gate to a new pod of a workload whose hooks may take it out of service."""
    return with_gate(pod, GATE) if hooks.marks_not_ready else pod


def open_new_gate(pod: PodView, now: datetime) -> tuple[Patch, ...]:
    """Open the gate of a pod that has no condition yet."""
    if not has_gate(pod.object, GATE) or conditions.get(pod.object, GATE) is not None:
        return ()
    return (readiness_patch(pod, condition(pod, GATE, {"status": "True"}, now)),)


def gate_patches(pod: PodView, hooks: Lifecycle, state: str, now: datetime) -> tuple[Patch, ...]:
    """Close the gate in a state whose hook requires it, and open it when no reason is left."""
    present = _reasons(pod)
    reasons = _reasons_in(state, present, hooks)
    if not has_gate(pod.object, GATE) or reasons == present:
        return ()
    text = orjson.dumps(reasons).decode()
    shut = {"status": "False" if reasons else "True", "message": text}
    return (readiness_patch(pod, condition(pod, GATE, shut, now)),)


def _reasons_in(state: str, present: Sequence[Reason], hooks: Lifecycle) -> Sequence[Reason]:
    if state not in _KEYS:
        return [reason for reason in present if reason.get("userAgent") != _AGENT]
    own = {"userAgent": _AGENT, "key": _KEYS[state]}
    hook = hooks.hook_of_state(state)
    if hook is None or not hook.marks_not_ready or own in present:
        return present
    return sorted((*present, own), key=lambda reason: (reason.get("userAgent", ""), reason.get("key", "")))


def _reasons(pod: PodView) -> Sequence[Reason]:
    """An unreadable message counts as empty."""
    condition = conditions.get(pod.object, GATE) or {}
    try:
        reasons = orjson.loads(condition.get("message") or "[]")
    except orjson.JSONDecodeError:
        return []
    return reasons if isinstance(reasons, list) else []


def move(pod: PodView, state: str, hooks: Lifecycle, now: datetime) -> tuple[Patch, ...]:
    """Return the patches that move a pod to a state: out of service first, then the label."""
    marked = gate_patches(pod, hooks, state, now)
    return marked if state_of(pod) == state else (*marked, _patch(pod, state, now))


def hold(pod: PodView, state: str, hooks: Lifecycle, now: datetime) -> tuple[Patch, ...]:
    """Move a pod to a state, and restore the labels and finalizers of its hook."""
    hook = hooks.hook_of_state(state)
    return (*gate_patches(pod, hooks, state, now), _patch(pod, state, now, hook))


def _patch(pod: PodView, state: str, now: datetime, hook: Hook | None = None) -> Patch:
    metadata: dict[str, Any] = {
        "uid": pod.uid,
        "labels": {**labels_of(state), **(hook.labels if hook else {})},
        "annotations": annotations_of(now),
    }
    if hook and hook.finalizers:
        metadata["finalizers"] = [*hook.finalizers]
    return Patch(resource=PODS, key=pod.key, kind="strategic", body={"metadata": metadata})
