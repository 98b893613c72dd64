"""New pods of a CloneSet: how many of which revision, and their instance ids."""

import hashlib
from collections.abc import Collection, Iterator
from functools import partial
from itertools import count

from mockube.apimachinery.randomness import SUFFIX_ALPHABET, SUFFIX_LENGTH
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.controller_manager.client.kinds import PODS
from mockube.controller_manager.client.podview import PodView
from mockube.controller_manager.control.actions import Action, Create, EventTemplate, Patch
from mockube.controller_manager.controllers.kruise.cloneset import identity, storage
from mockube.controller_manager.controllers.kruise.cloneset.diffs import Diffs
from mockube.controller_manager.controllers.kruise.cloneset.state import CloneSetState
from mockube.controller_manager.workloads.inplace import lifecycle, readiness, update


def creation(state: CloneSetState, diffs: Diffs) -> tuple[Action, ...]:
    """Create pods of the current revision first, as many as the partition lacks; their claims are created before the
    pods.
    """
    owner = state.owner
    instances = free_instances(state, diffs.scale_up_limit)
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


def free_instances(state: CloneSetState, count: int) -> list[str]:
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
