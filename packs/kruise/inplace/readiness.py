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
from mockube.client.kinds import PODS
from mockube.client.podview import PodView
from mockube.controller_manager.control.actions import Patch

from .lifecycle import Lifecycle, LifecycleHook, LifecycleState, annotations_of, labels_of, state_of


def has_gate(pod: ReadOnlyTree, gate: str) -> bool:
    return any(
        readiness_gate["conditionType"] == gate for readiness_gate in pod["spec"].get("readinessGates") or ()
    )


def with_gate(pod: ReadOnlyTree, gate: str) -> ReadOnlyTree:
    """Return a new pod with the gate, which its template may already have."""
    if has_gate(pod, gate):
        return pod
    gates = pod["spec"].get("readinessGates") or ()
    return meta.with_value(pod, ("spec", "readinessGates"), [*gates, {"conditionType": gate}])


def condition(pod: PodView, name: str, fields: Mapping[str, str], now: datetime) -> dict[str, Any]:
    """Return the patch of a condition: the new fields, and null for those to remove."""
    old = conditions.get(pod.object, name) or {}
    is_transition = old.get("status") != fields["status"]
    transition_time = format_time(now) if is_transition else old.get("lastTransitionTime")
    removed_fields = {field: None for field in ("reason", "message") if field in old}
    return {"type": name, **removed_fields, **fields, "lastTransitionTime": transition_time}


def readiness_patch(pod: PodView, *changed: ReadOnlyTree) -> Patch:
    """Return the patch of conditions of a pod, with its uid as precondition.

    It needs no resourceVersion: only this manager writes the gate, and conditions are merged by type.
    """
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
_HOOK_KEYS: Final = {
    LifecycleState.PREPARING_DELETE: "preDeleteHook",
    LifecycleState.PREPARING_UPDATE: "preUpdateHook",
}
"""The key of the reason that the gate's condition lists for each state in which a hook holds a pod."""


def with_readiness_gate(pod: ReadOnlyTree, hooks: Lifecycle) -> ReadOnlyTree:
    """Return a new pod, with the gate if a hook of its workload may take it out of service."""
    return with_gate(pod, GATE) if hooks.marks_not_ready else pod


def open_new_gate(pod: PodView, now: datetime) -> tuple[Patch, ...]:
    """Return the patch that opens the gate of a pod without its condition; none for other pods."""
    if not has_gate(pod.object, GATE) or conditions.get(pod.object, GATE) is not None:
        return ()
    return (readiness_patch(pod, condition(pod, GATE, {"status": "True"}, now)),)


def gate_patches(pod: PodView, hooks: Lifecycle, state: str, now: datetime) -> tuple[Patch, ...]:
    """Return the patch that closes the gate in a state whose hook requires it, or opens it if no reason remains."""
    present = _reasons(pod)
    reasons = _reasons_in(state, present, hooks)
    if not has_gate(pod.object, GATE) or reasons == present:
        return ()
    text = orjson.dumps(reasons).decode()
    gate_status = {"status": "False" if reasons else "True", "message": text}
    return (readiness_patch(pod, condition(pod, GATE, gate_status, now)),)


def _reasons_in(state: str, present: Sequence[Reason], hooks: Lifecycle) -> Sequence[Reason]:
    if state not in _HOOK_KEYS:
        return [reason for reason in present if reason.get("userAgent") != _AGENT]
    own = {"userAgent": _AGENT, "key": _HOOK_KEYS[state]}
    hook = hooks.hook_of_state(state)
    if hook is None or not hook.marks_not_ready or own in present:
        return present
    return sorted((*present, own), key=lambda reason: (reason.get("userAgent", ""), reason.get("key", "")))


def _reasons(pod: PodView) -> Sequence[Reason]:
    """Return the reasons in the message of the gate's condition; an unreadable message counts as empty."""
    condition = conditions.get(pod.object, GATE) or {}
    try:
        reasons = orjson.loads(condition.get("message") or "[]")
    except orjson.JSONDecodeError:
        return []
    return reasons if isinstance(reasons, list) else []


def move_to_state(pod: PodView, state: str, hooks: Lifecycle, now: datetime) -> tuple[Patch, ...]:
    """Return the patches that move a pod to a state: out of service first, then the label."""
    patches = gate_patches(pod, hooks, state, now)
    return patches if state_of(pod) == state else (*patches, _patch(pod, state, now))


def hold_in_state(pod: PodView, state: str, hooks: Lifecycle, now: datetime) -> tuple[Patch, ...]:
    """Return the patches that move a pod to a state, and restore the labels and finalizers of its hook."""
    hook = hooks.hook_of_state(state)
    return (*gate_patches(pod, hooks, state, now), _patch(pod, state, now, hook))


def _patch(pod: PodView, state: str, now: datetime, hook: LifecycleHook | None = None) -> Patch:
    metadata: dict[str, Any] = {
        "uid": pod.uid,
        "labels": {**labels_of(state), **(hook.labels if hook else {})},
        "annotations": annotations_of(now),
    }
    if hook and hook.finalizers:
        metadata["finalizers"] = [*hook.finalizers]
    return Patch(resource=PODS, key=pod.key, kind="strategic", body={"metadata": metadata})
