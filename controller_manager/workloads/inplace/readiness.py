"""Pods that a hook takes out of service while somebody holds them: by a gate whose condition lists the reasons.

Others may have reasons of their own there. A pod that was made without the gate stays in service.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

import orjson

from apimachinery import conditions
from controller_manager.runtime.actions import Patch
from controller_manager.runtime.resource import Tree
from controller_manager.workloads.inplace import gates
from controller_manager.workloads.inplace.lifecycle import Lifecycle, State
from controller_manager.workloads.podview import PodView

GATE: Final = "KruisePodReady"

Reason = Mapping[str, str]
_AGENT: Final = "Lifecycle"
_KEYS: Final = {State.PREPARING_DELETE: "preDeleteHook", State.PREPARING_UPDATE: "preUpdateHook"}
"""Of the states in which a pod is held, what the list has for it."""


def with_gate(pod: Tree, hooks: Lifecycle) -> Tree:
    """A new pod of a workload whose hooks may take it out of service."""
    return gates.with_gate(pod, GATE) if hooks.marks_not_ready else pod


def opened(pod: PodView, now: datetime) -> tuple[Patch, ...]:
    """The gate of a pod about which nothing was told yet."""
    if not gates.has_gate(pod.object, GATE) or conditions.get(pod.object, GATE) is not None:
        return ()
    return (gates.told(pod, gates.condition(pod, GATE, {"status": "True"}, now)),)


def marked(pod: PodView, hooks: Lifecycle, state: str, now: datetime) -> tuple[Patch, ...]:
    """What a state makes of the gate: shut where the hook says so, and open again once nobody holds the pod."""
    said = _reasons(pod)
    reasons = _reasons_in(state, said, hooks)
    if not gates.has_gate(pod.object, GATE) or reasons == said:
        return ()
    text = orjson.dumps(reasons).decode()
    shut = {"status": "False" if reasons else "True", "message": text}
    return (gates.told(pod, gates.condition(pod, GATE, shut, now)),)


def _reasons_in(state: str, said: Sequence[Reason], hooks: Lifecycle) -> Sequence[Reason]:
    if state not in _KEYS:
        return [reason for reason in said if reason.get("userAgent") != _AGENT]
    own = {"userAgent": _AGENT, "key": _KEYS[state]}
    hook = hooks.holding_in(state)
    if hook is None or not hook.marks_not_ready or own in said:
        return said
    return sorted((*said, own), key=lambda reason: (reason.get("userAgent", ""), reason.get("key", "")))


def _reasons(pod: PodView) -> Sequence[Reason]:
    """What somebody spoiled says nothing."""
    condition = conditions.get(pod.object, GATE) or {}
    try:
        said = orjson.loads(condition.get("message") or "[]")
    except orjson.JSONDecodeError:
        return []
    return said if isinstance(said, list) else []
