"""Scaling of a CloneSet: the pods to create or to delete. A reconciliation does only one of the two."""

import hashlib
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import partial
from itertools import count
from typing import Final

from mockube.apimachinery.randomness import SUFFIX_ALPHABET, SUFFIX_LENGTH
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apimachinery.wellknown import REASON_FAILED_DELETE, REASON_SUCCESSFUL_DELETE
from mockube.client.kinds import PODS
from mockube.client.podview import PodView
from mockube.controller_manager.control.actions import (
    Action,
    Create,
    Delete,
    EventTemplate,
    ObjectRef,
    Patch,
    RecordEvent,
)
from mockube.controller_manager.workloads.revisions import template_of
from mockube.packs.kruise.inplace import lifecycle, readiness, update
from mockube.packs.kruise.inplace.lifecycle import LifecycleState

from . import identity, order, storage
from .diffs import Diffs
from .order import NOTHING_TO_DO, CloneSetActions, concurrent_patches
from .state import CloneSetState, is_preparing_delete

MAX_CREATED_PODS: Final = 500
"""The maximum number of pods that one reconciliation creates. The new pods cause the next one."""


def plan(state: CloneSetState) -> CloneSetActions:
    """Return the actions that bring the number of pods closer to the spec."""
    if cancellations := _cancel_deletions(state):
        return CloneSetActions(actions=cancellations, changes_pods=True)
    diffs = state.diffs(state.counts_as_updated)
    if diffs.scale_up:
        creations = _creation(state, diffs)
        return CloneSetActions(
            actions=(*_limit_event(state, diffs), *creations), changes_pods=bool(creations)
        )
    preparing = [pod for pod in state.pods if is_preparing_delete(pod)]
    specified = [pod for pod in state.pods if state.is_specified(pod) and not is_preparing_delete(pod)]
    ready_limit = diffs.delete_ready_limit
    deletions = _deletion_actions(state, preparing) or _deletion_actions(
        state, _deletable_pods(state, specified, ready_limit)
    )
    if not deletions and diffs.scale_down and not preparing and not specified:
        deletions = _deletion_actions(state, _deletable_pods(state, _choose_pods(state, diffs), ready_limit))
    return CloneSetActions(actions=deletions, changes_pods=True) if deletions else NOTHING_TO_DO


def _cancel_deletions(state: CloneSetState) -> tuple[Action, ...]:
    """Return patches that move pods which are needed again from PreparingDelete back to PreparingNormal.

    Pods that are specified for deletion stay in PreparingDelete, and all pods if that state marks them as not ready.
    """
    owner = state.owner
    if owner.lifecycle.marks_not_ready:
        return ()
    preparing = [pod for pod in state.pods if is_preparing_delete(pod)]
    deletable = sum(is_preparing_delete(pod) or state.is_specified(pod) for pod in state.pods)
    missing = max(owner.limits.replicas - len(state.pods) + deletable, 0)
    to_restore = [pod for pod in preparing if not state.is_specified(pod)][:missing]
    return concurrent_patches(
        patch
        for pod in to_restore
        for patch in readiness.move_to_state(pod, LifecycleState.PREPARING_NORMAL, owner.lifecycle, state.now)
    )


def _limit_event(state: CloneSetState, diffs: Diffs) -> tuple[RecordEvent, ...]:
    if diffs.scale_up <= diffs.scale_up_limit:
        return ()
    limit = diffs.scale_up_limit
    message = f"scaleUp is limited because of scaleStrategy.maxUnavailable, limit: {limit}"
    return (RecordEvent(about=state.owner.object, type="Warning", reason="ScaleUpLimited", message=message),)


def _deletable_pods(state: CloneSetState, pods: Iterable[PodView], ready_limit: int) -> list[PodView]:
    """Return the pods that may be deleted now: all that do not serve, and `ready_limit` of those that serve."""
    deletable, remaining = [], ready_limit
    for pod in pods:
        if not state.is_serving(pod):
            deletable.append(pod)
        elif remaining > 0:
            deletable.append(pod)
            remaining -= 1
    return deletable


# --- pods to delete


def _choose_pods(state: CloneSetState, diffs: Diffs) -> list[PodView]:
    """Return the pods to delete: first pods of the current revision beyond the partition, then updated ones."""
    old = [pod for pod in state.pods if not state.counts_as_updated(pod)]
    new = [pod for pod in state.pods if state.counts_as_updated(pod)]
    from_old = min(diffs.scale_down_old, diffs.scale_down)
    return [*_select_pods(state, old, from_old), *_select_pods(state, new, diffs.scale_down - from_old)]


def _select_pods(state: CloneSetState, pods: Sequence[PodView], count: int) -> list[PodView]:
    if count >= len(pods):
        return [*pods]
    template = template_of(state.update)
    spread = (template.get("spec") or {}).get("topologySpreadConstraints") or ()
    topologies = [constraint["topologyKey"] for constraint in spread]
    ranks = (
        order.ranks_by_topology(pods, topologies, state.node_labels)
        if topologies
        else order.ranks_by_node(pods)
    )
    return order.for_deletion(pods, state.is_available, ranks)[:count]


# --- deletion


def _deletion_actions(state: CloneSetState, pods: Sequence[PodView]) -> tuple[Action, ...]:
    """Delete pods with their claims. Pods that a lifecycle hook holds only move to PreparingDelete."""
    hooks = state.owner.lifecycle
    held_pods = [pod for pod in pods if hooks.pre_delete is not None and hooks.pre_delete.holds(pod)]
    preparations = concurrent_patches(
        patch
        for pod in held_pods
        for patch in readiness.move_to_state(pod, LifecycleState.PREPARING_DELETE, hooks, state.now)
    )
    to_delete = [pod for pod in pods if pod not in held_pods]
    claim_deletions = storage.deletion(state.owner, to_delete, state.claims)
    return (*preparations, *_deletion(state, to_delete), *claim_deletions)


def _deletion(state: CloneSetState, pods: Sequence[PodView]) -> tuple[Delete, ...]:
    if not pods:
        return ()
    event = EventTemplate(
        about=state.owner.object,
        on_success=(REASON_SUCCESSFUL_DELETE, "succeed to delete pod {name}"),
        on_failure=(REASON_FAILED_DELETE, "failed to delete pod {name}: {error}"),
    )
    refs = tuple(ObjectRef(pod.key, pod.uid) for pod in pods)
    return (Delete(resource=PODS, objects=refs, event=event),)


# --- new pods


def _creation(state: CloneSetState, diffs: Diffs) -> tuple[Action, ...]:
    """Create claims, then pods: first of the current revision, as many as the partition lacks, then of the new one."""
    owner = state.owner
    instances = _free_instances(state, min(diffs.scale_up_limit, MAX_CREATED_PODS))
    if not instances:
        return ()
    annotations = lifecycle.annotations_of(state.now)
    bodies = tuple(
        identity.new_pod(
            owner, state.current if index < diffs.scale_up_old else state.update, instance, annotations
        )
        for index, instance in enumerate(instances)
    )
    event = EventTemplate(
        about=owner.object,
        on_success=("SuccessfulCreate", "succeed to create pod {name}"),
        on_failure=("FailedCreate", "failed to create pod: {error}, pod: {name}"),
    )
    claims = storage.create_missing(owner, instances, state.claims)
    return (*claims, Create(resource=PODS, bodies=bodies, event=event, then=partial(_open_gates, state)))


def _open_gates(state: CloneSetState, created: ReadOnlyTree) -> tuple[Patch, ...]:
    """Open the readiness gates of a new pod before the first status of its kubelet, so that readiness changes once."""
    pod = PodView.of(created)
    return (
        *update.next_step(pod, state.now, revision=identity.revision_of(pod)).patches,
        *readiness.open_new_gate(pod, state.now),
    )


def _free_instances(state: CloneSetState, count: int) -> list[str]:
    """Return at most `count` instance ids: first those of claims whose pods were lost, then new ones.

    The claims of a terminating pod cannot be used yet, so one pod fewer is created now.
    """
    pods = (*state.pods, *state.inactive)
    terminating_ids = {storage.instance_of(pod.object) for pod in pods if pod.deleting}
    active_ids = {storage.instance_of(pod.object) for pod in pods if not pod.deleting}
    free_ids = {storage.instance_of(claim) for claim in state.claims} - active_ids - {""}
    reused_ids = sorted(free_ids)[:count]
    new_ids = _new_instances(state, count - len(reused_ids), terminating_ids | active_ids | free_ids)
    return [*(instance for instance in reused_ids if instance not in terminating_ids), *new_ids]


def _new_instances(state: CloneSetState, count: int, used_ids: Collection[str]) -> list[str]:
    """Return new ids. Their seed changes with every write, so that no pod gets the name of an earlier one."""
    versions = max((int(pod.resource_version or 0) for pod in (*state.pods, *state.inactive)), default=0)
    seed = f"{state.owner.uid}/{state.owner.resource_version}/{versions}/{state.now.isoformat()}"
    candidates = (instance for instance in _generate_instances(seed) if instance not in used_ids)
    instance_ids: dict[str, None] = {}
    while len(instance_ids) < count:
        instance_ids[next(candidates)] = None
    return [*instance_ids]


def _generate_instances(seed: str) -> Iterator[str]:
    for number in count():
        digest = hashlib.sha256(f"{seed}/{number}".encode()).digest()[:SUFFIX_LENGTH]
        yield "".join(SUFFIX_ALPHABET[byte % len(SUFFIX_ALPHABET)] for byte in digest)
