"""Bring a pod into another state of its life, and into or out of service with it."""

from datetime import datetime
from typing import Any

from controller_manager.kinds import PODS
from controller_manager.runtime.actions import Patch
from controller_manager.workloads.inplace import readiness
from controller_manager.workloads.inplace.lifecycle import (
    Hook,
    Lifecycle,
    annotations_of,
    labels_of,
    state_of,
)
from controller_manager.workloads.podview import PodView


def move(pod: PodView, state: str, hooks: Lifecycle, now: datetime) -> tuple[Patch, ...]:
    """What is missing to the state: out of service first, so that nobody is told of the state before."""
    marked = readiness.marked(pod, hooks, state, now)
    return marked if state_of(pod) == state else (*marked, _patch(pod, state, now))


def hold(pod: PodView, state: str, hooks: Lifecycle, now: datetime) -> tuple[Patch, ...]:
    """Into a state, with all that holds it there put on again."""
    hook = hooks.holding_in(state)
    return (*readiness.marked(pod, hooks, state, now), _patch(pod, state, now, hook))


def _patch(pod: PodView, state: str, now: datetime, hook: Hook | None = None) -> Patch:
    metadata: dict[str, Any] = {
        "uid": pod.uid,
        "labels": {**labels_of(state), **(hook.labels if hook else {})},
        "annotations": annotations_of(now),
    }
    if hook and hook.finalizers:
        metadata["finalizers"] = [*hook.finalizers]
    return Patch(resource=PODS, key=pod.key, kind="strategic", body={"metadata": metadata})
