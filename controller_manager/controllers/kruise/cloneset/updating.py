"""Decide which pods of a CloneSet get the update revision now, and how: in place, or by being recreated."""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from mockube.apimachinery import meta
from mockube.apimachinery.wellknown import LABEL_SPECIFIED_DELETE
from mockube.controller_manager.client.kinds import PODS
from mockube.controller_manager.client.podview import PodView
from mockube.controller_manager.control.actions import EventTemplate, Patch
from mockube.controller_manager.controllers.kruise.cloneset import identity, order, storage
from mockube.controller_manager.controllers.kruise.cloneset.diffs import Diffs
from mockube.controller_manager.controllers.kruise.cloneset.order import (
    Decision,
    concurrent_patches,
    earliest,
)
from mockube.controller_manager.controllers.kruise.cloneset.state import CloneSetState, is_preparing_delete
from mockube.controller_manager.workloads.inplace import lifecycle, record, update
from mockube.controller_manager.workloads.inplace.lifecycle import State
from mockube.controller_manager.workloads.inplace.record import Change, change_between
from mockube.controller_manager.workloads.inplace.update import Order, Step
from mockube.controller_manager.workloads.update_order import by_priority, scatter


class _StartedUpdates(NamedTuple):
    """Updates that begin, and why not all do that should."""

    patches: tuple[Patch, ...] = ()
    problem: str = ""


def plan(state: CloneSetState) -> Decision:
    """Lifecycle changes of pods are written first, also while the update is paused."""
    steps = [_observe_pod(state, pod) for pod in state.pods]
    started = _StartedUpdates() if state.owner.paused else _start_updates(state, _choose_pods(state))
    step_patches = update.patches_without_gates(
        (patch for step in steps for patch in step.patches), started.patches
    )
    patches = step_patches or started.patches
    return Decision(
        actions=concurrent_patches(patches),
        changes_pods=bool(patches),
        again_after=earliest(*(step.again_after for step in steps)),
        problem="" if step_patches else started.problem,
    )


def _observe_pod(state: CloneSetState, pod: PodView) -> Step:
    hooks, revision = state.owner.lifecycle, identity.revision_of(pod)
    return update.observe_pod(pod, hooks, state.now, revision=revision, desired_revision=state.update_name)


# --- which pods


def _choose_pods(state: CloneSetState) -> list[PodView]:
    diffs = state.diffs()
    return _limit(state, diffs, _in_order(state, _candidates(state))) if diffs.update else []


def _candidates(state: CloneSetState) -> list[PodView]:
    return [
        pod
        for pod in state.pods
        if not state.is_updated(pod) and not is_preparing_delete(pod) and not record.is_waiting(pod)
    ]


def _in_order(state: CloneSetState, waiting: Sequence[PodView]) -> list[PodView]:
    """Pods that are already prepared come first."""
    owner = state.owner
    ordered = by_priority(order.for_update(waiting), owner.priority)
    if owner.scatter:
        ordered = scatter(ordered, state.pods, owner.scatter)
    return sorted(ordered, key=lambda pod: lifecycle.state_of(pod) != State.PREPARING_UPDATE)


def _limit(state: CloneSetState, diffs: Diffs, waiting: Sequence[PodView]) -> list[PodView]:
    """As many as may be unavailable. Unavailable pods do not count twice, but updated ones are limited too."""
    unavailable = [pod for pod in state.pods if not state.is_available(pod)]
    new_unavailable = sum(state.is_updated(pod) for pod in unavailable)
    total, selected = len(unavailable), list[PodView]()
    for pod in waiting[: diffs.update]:
        if new_unavailable + len(selected) >= diffs.update_max_unavailable:
            break
        if state.is_available(pod):
            if total >= diffs.update_max_unavailable:
                break
            total += 1
        selected.append(pod)
    return selected


# --- start an update


def _start_updates(state: CloneSetState, pods: Sequence[PodView]) -> _StartedUpdates:
    patches: list[Patch] = []
    for pod in pods:
        update_of = _update(state, pod)
        if update_of is None:
            problem = f"find Pod {pod.key.name} update strategy is InPlaceOnly but can not update in-place"
            return _StartedUpdates(tuple(patches), problem)
        patches += update_of
    return _StartedUpdates(tuple(patches))


def _update(state: CloneSetState, pod: PodView) -> tuple[Patch, ...] | None:
    """None if the pod must be updated in place, and cannot be."""
    if state.owner.update_type == "ReCreate":
        return _mark_for_recreation(state, pod)
    change = _change(state, pod)
    if change is not None:
        ordered = Order(
            change=change,
            labels=identity.revision_labels(state.update_name),
            grace_seconds=state.owner.grace_seconds,
        )
        return update.change_pod(
            pod, state.owner.lifecycle, ordered, state.now, _event_template(state, "InPlace")
        )
    return None if state.owner.update_type == "InPlaceOnly" else _mark_for_recreation(state, pod)


def _change(state: CloneSetState, pod: PodView) -> Change | None:
    old = next(
        (revision for revision in state.history if identity.has_revision(pod, meta.name(revision))), None
    )
    if old is None:
        return None
    if state.owner.update_type != "InPlaceOnly" and not storage.has_same_claims(old, state.update):
        return None
    return change_between(identity.template_of(old), identity.template_of(state.update), state.update_name)


def _mark_for_recreation(state: CloneSetState, pod: PodView) -> tuple[Patch, ...]:
    """Label the pod as specified for deletion; the next round deletes and replaces it."""
    if LABEL_SPECIFIED_DELETE in pod.labels:
        return ()
    body = {"metadata": {"uid": pod.uid, "labels": {LABEL_SPECIFIED_DELETE: "true"}}}
    event = _event_template(state, "ReCreate")
    return (Patch(resource=PODS, key=pod.key, kind="strategic", body=body, event=event),)


_TEXTS: Final[Mapping[str, tuple[str, str]]] = {
    "InPlace": ("update pod {name} in-place", "update pod {name} in-place"),
    "ReCreate": (
        "patch pod {name} specified-delete for update",
        "patch pod specified-delete {name} for update",
    ),
}
"""What was done and what failed, in upstream's words."""


def _event_template(state: CloneSetState, update_type: str) -> EventTemplate:
    done, failed = _TEXTS[update_type]
    revision = f"(revision {state.update_name})"
    return EventTemplate(
        about=state.owner.object,
        done=(f"SuccessfulUpdatePod{update_type}", f"successfully {done}{revision}"),
        failed=(f"FailedUpdatePod{update_type}", f"failed to {failed}{revision}: {{error}}"),
    )
