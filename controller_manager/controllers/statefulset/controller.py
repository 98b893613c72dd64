"""The controller of StatefulSets: what it watches, and how one reconciliation is put together."""

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Final

from apimachinery import meta
from apimachinery.labels import SelectorError
from apimachinery.status import ApiError
from controller_manager.controllers.statefulset import identity, keys, observe, rounds, status
from controller_manager.controllers.statefulset.scene import Scene, by_ordinal
from controller_manager.controllers.statefulset.setview import SetView
from controller_manager.indexes import BY_OWNER, owner_of, owner_of_pod
from controller_manager.kinds import CONTROLLER_REVISIONS, PERSISTENT_VOLUME_CLAIMS, PODS, STATEFUL_SETS
from controller_manager.runtime.actions import NOTHING, Action, Plan, Update
from controller_manager.runtime.caches import Caches
from controller_manager.runtime.controller import Controller, Watch
from controller_manager.runtime.resource import Key, Resource, T, Tree
from controller_manager.workloads import revisions
from controller_manager.workloads.claims import Claims
from controller_manager.workloads.claims import settled as claimed
from controller_manager.workloads.podview import PodView
from controller_manager.workloads.revisions import Settled, Wanted


def reconcile(caches: Caches, key: Key, now: datetime) -> Plan:
    tree = caches.of(STATEFUL_SETS).get(*key)
    if tree is None:
        return NOTHING
    try:
        owner = SetView.of(tree)
    except SelectorError:
        return NOTHING  # no server accepts such a set, and trying again would not mend it
    recorded, pods = observe.revisions(caches, owner), observe.pods(caches, owner)
    # Whose they are is settled alone: the change brings the key back, and only then they are counted.
    if first := (*_claimed(owner, CONTROLLER_REVISIONS, recorded), *_claimed(owner, PODS, pods)):
        return Plan(actions=first)
    history = revisions.in_order(recorded.owned)
    settled = _settled(caches, owner, history)
    scene = _scene(caches, owner, pods.owned, history, settled, now)
    if owner.deleting:
        return NOTHING if settled.actions else Plan(last=partial(_last, scene, settled, history, ()))
    decided = rounds.plan(scene)
    return Plan(
        actions=(*settled.actions, *decided.actions),
        last=partial(_last, scene, settled, history, decided.replaced),
        again_after=_next_availability(scene),
    )


def _claimed(owner: SetView, resource: Resource[T], claims: Claims[T]) -> tuple[Action, ...]:
    return claimed(claims, resource, owner.object, STATEFUL_SETS)


def _settled(caches: Caches, owner: SetView, history: Sequence[Tree]) -> Settled:
    wanted = Wanted(
        owner=owner.object,
        data=identity.data_of(owner),
        labels=meta.labels(owner.object["spec"]["template"]),
        annotations=meta.annotations(owner.object),
    )
    named = partial(caches.of(CONTROLLER_REVISIONS).get, owner.key.namespace)
    return revisions.settle(wanted, history, owner.status.get("collisionCount") or 0, named)


def _scene(
    caches: Caches,
    owner: SetView,
    pods: Collection[PodView],
    history: Sequence[Tree],
    settled: Settled,
    now: datetime,
) -> Scene:
    slots, condemned = by_ordinal(owner, pods)
    beyond = (identity.ordinal_in(owner, pod.key.name) for pod in condemned)
    ordinals = (*owner.ordinals, *(ordinal for ordinal in beyond if ordinal is not None))
    name = owner.status.get("currentRevision")
    current = next((it for it in history if meta.name(it) == name), settled.revision)
    return Scene(
        owner=owner,
        slots=slots,
        condemned=condemned,
        claims=observe.claims(caches, owner, ordinals),
        current=current,
        update=settled.revision,
        now=now,
    )


# --- what comes last


def _last(
    scene: Scene,
    settled: Settled,
    history: Sequence[Tree],
    replaced: Collection[PodView],
    error: ApiError | None,
) -> tuple[Action, ...]:
    """The status, told even of a round that failed, unless its revision may not exist; then the end of old history."""
    if error is not None and settled.actions:
        return ()
    live = {scene.current_name, scene.update_name, *map(identity.revision_of, scene.pods)}
    forgotten = revisions.truncated(history, live, scene.owner.revision_history_limit)
    return (*_told(scene.owner, status.of(scene, settled.collision_count, replaced)), *forgotten)


def _told(owner: SetView, new: dict[str, object]) -> tuple[Action, ...]:
    # A count of 0 may be left out, and the same goes for no collisions.
    if all((owner.status.get(field) or 0) == value for field, value in new.items()):
        return ()
    body = {**owner.object, "status": {**owner.status, **new}}
    return (Update(resource=STATEFUL_SETS, body=body, subresource="status"),)


def _next_availability(scene: Scene) -> timedelta | None:
    """When the next pod that is ready will have been so for long enough."""
    enough = timedelta(seconds=scene.owner.min_ready_seconds)
    waiting = [
        pod.ready_since + enough - scene.now
        for pod in scene.pods
        if pod.ready_since is not None and not scene.is_available(pod) and not pod.deleting
    ]
    return min((delay for delay in waiting if delay > timedelta()), default=None)


STATEFUL_SET: Final = Controller(
    name="statefulset-controller",
    queue="statefulset",
    service_account="statefulset-controller",
    watches=(
        Watch(resource=STATEFUL_SETS, keys=keys.of_set),
        Watch(resource=PODS, keys=keys.of_pod),
        Watch(resource=PERSISTENT_VOLUME_CLAIMS, keys=keys.of_claim),
        Watch(resource=CONTROLLER_REVISIONS, keys=keys.of_revision),
    ),
    indexes={
        PODS: {BY_OWNER: owner_of_pod},
        CONTROLLER_REVISIONS: {BY_OWNER: owner_of},
    },
    reconcile=reconcile,
    workers=5,
)
