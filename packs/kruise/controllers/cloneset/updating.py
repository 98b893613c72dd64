"""Updates of a CloneSet: the pods to update now, in place or by recreation."""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from mockube.apimachinery import meta
from mockube.client.kinds import PODS
from mockube.client.podview import PodView
from mockube.controller_manager.control.actions import EventTemplate, Patch
from mockube.controller_manager.workloads.pod_steps import PodStep, patches_besides_updates
from mockube.controller_manager.workloads.revisions import template_of
from mockube.packs.kruise.inplace import lifecycle, record, update
from mockube.packs.kruise.inplace.lifecycle import LifecycleState
from mockube.packs.kruise.inplace.record import TemplateChange, change_between
from mockube.packs.kruise.inplace.update import UpdateRequest
from mockube.packs.kruise.kinds import LABEL_SPECIFIED_DELETE
from mockube.packs.kruise.update_order import by_priority, scatter

from . import identity, order, storage
from .diffs import Diffs
from .order import CloneSetActions, concurrent_patches, earliest
from .state import CloneSetState, is_preparing_delete


class _StartedUpdates(NamedTuple):
    """The patches that start updates, and the message about the update that cannot be started."""

    patches: tuple[Patch, ...] = ()
    problem: str = ""


def plan(state: CloneSetState) -> CloneSetActions:
    """Return the patches of pods. Lifecycle changes are written before updates start, also while updates are paused."""
    steps = [_observe_pod(state, pod) for pod in state.pods]
    started = _start_updates(state, _choose_pods(state)) if state.owner.updates_pods else _StartedUpdates()
    step_patches = patches_besides_updates(
        (patch for step in steps for patch in step.patches), started.patches
    )
    patches = step_patches or started.patches
    return CloneSetActions(
        actions=concurrent_patches(patches),
        changes_pods=bool(patches),
        requeue_after=earliest(*(step.requeue_after for step in steps)),
        problem="" if step_patches else started.problem,
    )


def _observe_pod(state: CloneSetState, pod: PodView) -> PodStep:
    hooks, revision = state.owner.lifecycle, identity.revision_of(pod)
    return update.observe_pod(pod, hooks, state.now, revision=revision, desired_revision=state.update_name)


# --- pods to update


def _choose_pods(state: CloneSetState) -> list[PodView]:
    diffs = state.diffs(state.is_updated)
    return _limit(state, diffs, _in_order(state, _candidates(state))) if diffs.update else []


def _candidates(state: CloneSetState) -> list[PodView]:
    return [
        pod
        for pod in state.pods
        if not state.is_updated(pod) and not is_preparing_delete(pod) and not record.has_delayed_change(pod)
    ]


def _in_order(state: CloneSetState, candidates: Sequence[PodView]) -> list[PodView]:
    """Return the pods in update order; those in the lifecycle state PreparingUpdate come first."""
    owner = state.owner
    ordered = by_priority(order.for_update(candidates), owner.priority)
    if owner.scatter:
        ordered = scatter(ordered, state.pods, owner.scatter)
    return sorted(ordered, key=lambda pod: lifecycle.state_of(pod) != LifecycleState.PREPARING_UPDATE)


def _limit(state: CloneSetState, diffs: Diffs, candidates: Sequence[PodView]) -> list[PodView]:
    """Return the first candidates that may become unavailable.

    An unavailable candidate does not count twice. The number of unavailable updated pods is limited, too.
    """
    unavailable = [pod for pod in state.pods if not state.is_available(pod)]
    new_unavailable = sum(state.is_updated(pod) for pod in unavailable)
    total, selected = len(unavailable), list[PodView]()
    for pod in candidates[: diffs.update]:
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
        pod_patches = _update(state, pod)
        if pod_patches is None:
            problem = f"find Pod {pod.key.name} update strategy is InPlaceOnly but can not update in-place"
            return _StartedUpdates(tuple(patches), problem)
        patches += pod_patches
    return _StartedUpdates(tuple(patches))


def _update(state: CloneSetState, pod: PodView) -> tuple[Patch, ...] | None:
    """Return the patches that update a pod; None if it must be updated in place but cannot be."""
    if state.owner.update_type == "ReCreate":
        return _mark_for_recreation(state, pod)
    change = _change(state, pod)
    if change is not None:
        ordered = UpdateRequest(
            change=change,
            labels=identity.revision_labels(state.update_name),
            grace_seconds=state.owner.grace_seconds,
        )
        return update.start_or_prepare_update(
            pod, state.owner.lifecycle, ordered, state.now, _event_template(state, "InPlace")
        )
    return None if state.owner.update_type == "InPlaceOnly" else _mark_for_recreation(state, pod)


def _change(state: CloneSetState, pod: PodView) -> TemplateChange | None:
    old = next(
        (revision for revision in state.history if identity.has_revision(pod, meta.name(revision))), None
    )
    if old is None:
        return None
    if state.owner.update_type != "InPlaceOnly" and not storage.has_same_claims(old, state.update):
        return None
    return change_between(template_of(old), template_of(state.update), state.update_name)


def _mark_for_recreation(state: CloneSetState, pod: PodView) -> tuple[Patch, ...]:
    """Label the pod as specified for deletion; the next reconciliation deletes and replaces it."""
    if LABEL_SPECIFIED_DELETE in pod.labels:
        return ()
    body = {"metadata": {"uid": pod.uid, "labels": {LABEL_SPECIFIED_DELETE: "true"}}}
    event = _event_template(state, "ReCreate")
    return (Patch(resource=PODS, key=pod.key, kind="strategic", body=body, event=event),)


_EVENT_TEXTS: Final[Mapping[str, tuple[str, str]]] = {
    "InPlace": ("update pod {name} in-place", "update pod {name} in-place"),
    "ReCreate": (
        "patch pod {name} specified-delete for update",
        "patch pod specified-delete {name} for update",
    ),
}
"""The texts of the Events for success and failure; they are upstream's."""


def _event_template(state: CloneSetState, update_type: str) -> EventTemplate:
    done, failed = _EVENT_TEXTS[update_type]
    revision = f"(revision {state.update_name})"
    return EventTemplate(
        about=state.owner.object,
        on_success=(f"SuccessfulUpdatePod{update_type}", f"successfully {done}{revision}"),
        on_failure=(f"FailedUpdatePod{update_type}", f"failed to {failed}{revision}: {{error}}"),
    )
