"""Decide which pods a CloneSet creates or deletes: one kind of action a round, so that each is decided on the last one."""

import hashlib
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import partial
from itertools import count
from typing import Final

from mockube.apimachinery.randomness import SUFFIX_ALPHABET, SUFFIX_LENGTH
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apimachinery.wellknown import REASON_FAILED_DELETE, REASON_SUCCESSFUL_DELETE
from mockube.controller_manager.client.kinds import PODS
from mockube.controller_manager.client.podview import PodView
from mockube.controller_manager.control.actions import (
    Action,
    Create,
    Delete,
    EventTemplate,
    ObjectRef,
    Patch,
    RecordEvent,
)
from mockube.controller_manager.controllers.kruise.cloneset import identity, order, storage
from mockube.controller_manager.controllers.kruise.cloneset.diffs import Diffs
from mockube.controller_manager.controllers.kruise.cloneset.order import (
    NOTHING_TO_DO,
    Decision,
    concurrent_patches,
)
from mockube.controller_manager.controllers.kruise.cloneset.state import CloneSetState, is_preparing_delete
from mockube.controller_manager.workloads.inplace import lifecycle, readiness, update
from mockube.controller_manager.workloads.inplace.lifecycle import State

MAX_CREATED_PODS: Final = 500
"""How many pods one reconciliation creates: each of them starts the next one."""


def plan(state: CloneSetState) -> Decision:
    if regretted := _cancel_deletions(state):
        return Decision(actions=regretted, changes_pods=True)
    diffs = state.diffs()
    if diffs.scale_up:
        creations = _creation(state, diffs)
        return Decision(actions=(*_limit_event(state, diffs), *creations), changes_pods=bool(creations))
    prepared = [pod for pod in state.pods if is_preparing_delete(pod)]
    named = [pod for pod in state.pods if state.is_specified(pod) and not is_preparing_delete(pod)]
    ready_limit = diffs.delete_ready_limit
    deletions = _removal(state, prepared) or _removal(state, _deletable(state, named, ready_limit))
    if not deletions and diffs.scale_down and not prepared and not named:
        deletions = _removal(state, _deletable(state, _choose_pods(state, diffs), ready_limit))
    return Decision(actions=deletions, changes_pods=True) if deletions else NOTHING_TO_DO


def _cancel_deletions(state: CloneSetState) -> tuple[Action, ...]:
    """End the preparation for deletion of pods that are needed again, unless they are specified for deletion.

    Not where they are out of service already.
    """
    owner = state.owner
    if owner.lifecycle.marks_not_ready:
        return ()
    prepared = [pod for pod in state.pods if is_preparing_delete(pod)]
    planned = sum(is_preparing_delete(pod) or state.is_specified(pod) for pod in state.pods)
    missing = max(owner.limits.replicas - len(state.pods) + planned, 0)
    wanted_again = [pod for pod in prepared if not state.is_specified(pod)][:missing]
    return concurrent_patches(
        patch
        for pod in wanted_again
        for patch in readiness.move(pod, State.PREPARING_NORMAL, owner.lifecycle, state.now)
    )


def _limit_event(state: CloneSetState, diffs: Diffs) -> tuple[RecordEvent, ...]:
    if diffs.scale_up <= diffs.scale_up_limit:
        return ()
    limit = diffs.scale_up_limit
    message = f"scaleUp is limited because of scaleStrategy.maxUnavailable, limit: {limit}"
    return (RecordEvent(about=state.owner.object, type="Warning", reason="ScaleUpLimited", message=message),)


def _deletable(state: CloneSetState, pods: Iterable[PodView], ready_limit: int) -> list[PodView]:
    """Those that may go now: all that do not serve, and so many that do."""
    going, remaining = [], ready_limit
    for pod in pods:
        if not state.is_serving(pod):
            going.append(pod)
        elif remaining > 0:
            going.append(pod)
            remaining -= 1
    return going


# --- pods to delete


def _choose_pods(state: CloneSetState, diffs: Diffs) -> list[PodView]:
    """Pods of the current revision first, as many as are beyond the partition."""
    old = [pod for pod in state.pods if not state.is_updated(pod)]
    new = [pod for pod in state.pods if state.is_updated(pod)]
    from_old = min(diffs.scale_down_old, diffs.scale_down)
    return [*_select_pods(state, old, from_old), *_select_pods(state, new, diffs.scale_down - from_old)]


def _select_pods(state: CloneSetState, pods: Sequence[PodView], count: int) -> list[PodView]:
    if count >= len(pods):
        return [*pods]
    template = identity.template_of(state.update)
    spread = (template.get("spec") or {}).get("topologySpreadConstraints") or ()
    topologies = [constraint["topologyKey"] for constraint in spread]
    ranks = order.by_topology(pods, topologies, state.node_labels) if topologies else order.by_node(pods)
    return order.for_deletion(pods, state.is_available, ranks)[:count]


# --- how they are deleted


def _removal(state: CloneSetState, pods: Sequence[PodView]) -> tuple[Action, ...]:
    """Delete pods with their claims. Pods that a hook holds are only marked as preparing."""
    hooks = state.owner.lifecycle
    held_pods = [pod for pod in pods if hooks.pre_delete is not None and hooks.pre_delete.holds(pod)]
    prepared = concurrent_patches(
        patch for pod in held_pods for patch in readiness.move(pod, State.PREPARING_DELETE, hooks, state.now)
    )
    free = [pod for pod in pods if pod not in held_pods]
    return (*prepared, *_deletion(state, free), *storage.deletion(state.owner, free, state.claims))


def _deletion(state: CloneSetState, pods: Sequence[PodView]) -> tuple[Delete, ...]:
    if not pods:
        return ()
    event = EventTemplate(
        about=state.owner.object,
        done=(REASON_SUCCESSFUL_DELETE, "succeed to delete pod {name}"),
        failed=(REASON_FAILED_DELETE, "failed to delete pod {name}: {error}"),
    )
    refs = tuple(ObjectRef(pod.key, pod.uid) for pod in pods)
    return (Delete(resource=PODS, objects=refs, event=event),)


# --- new pods


def _creation(state: CloneSetState, diffs: Diffs) -> tuple[Action, ...]:
    """Create pods of the current revision first, as many as the partition lacks; their claims are created before the
    pods.
    """
    owner = state.owner
    instances = _free_instances(state, min(diffs.scale_up_limit, MAX_CREATED_PODS))
    if not instances:
        return ()
    since = lifecycle.annotations_of(state.now)
    bodies = tuple(
        identity.new_pod(
            owner, state.current if index < diffs.scale_up_old else state.update, instance, since
        )
        for index, instance in enumerate(instances)
    )
    event = EventTemplate(
        about=owner.object,
        done=("SuccessfulCreate", "succeed to create pod {name}"),
        failed=("FailedCreate", "failed to create pod: {error}, pod: {name}"),
    )
    claims = storage.create_missing(owner, instances, state.claims)
    return (*claims, Create(resource=PODS, bodies=bodies, event=event, then=partial(_open_gates, state)))


def _open_gates(state: CloneSetState, created: ReadOnlyTree) -> tuple[Patch, ...]:
    """Open the gates of a new pod before its kubelet's first status, so that readiness changes once."""
    pod = PodView.of(created)
    return (
        *update.step(pod, state.now, revision=identity.revision_of(pod)).patches,
        *readiness.open_new_gate(pod, state.now),
    )


def _free_instances(state: CloneSetState, count: int) -> list[str]:
    """At most so many ids: first those whose claims were left by lost pods.

    The claims of a terminating pod are waited for, so one pod fewer is created now.
    """
    pods = (*state.pods, *state.inactive)
    ending = {storage.instance_of(pod.object) for pod in pods if pod.deleting}
    staying = {storage.instance_of(pod.object) for pod in pods if not pod.deleting}
    free_ids = {storage.instance_of(claim) for claim in state.claims} - staying - {""}
    reused = sorted(free_ids)[:count]
    fresh = _new_instances(state, count - len(reused), ending | staying | free_ids)
    return [*(instance for instance in reused if instance not in ending), *fresh]


def _new_instances(state: CloneSetState, count: int, used_ids: Collection[str]) -> list[str]:
    """Ids from a seed that every change alters, so that no pod gets the name of an earlier one."""
    versions = max((int(pod.resource_version or 0) for pod in (*state.pods, *state.inactive)), default=0)
    seed = f"{state.owner.uid}/{state.owner.resource_version}/{versions}/{state.now.isoformat()}"
    free = (instance for instance in _instances(seed) if instance not in used_ids)
    instance_ids: dict[str, None] = {}
    while len(instance_ids) < count:
        instance_ids[next(free)] = None
    return [*instance_ids]


def _instances(seed: str) -> Iterator[str]:
    for number in count():
        digest = hashlib.sha256(f"{seed}/{number}".encode()).digest()[:SUFFIX_LENGTH]
        yield "".join(SUFFIX_ALPHABET[byte % len(SUFFIX_ALPHABET)] for byte in digest)
