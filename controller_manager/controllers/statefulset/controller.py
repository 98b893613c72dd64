"""The controller of StatefulSets: what it watches, and how one reconciliation is put together."""

from collections.abc import Collection, Iterable
from datetime import datetime, timedelta
from functools import partial
from typing import Final

from apimachinery import meta
from apimachinery.labels import SelectorError
from apimachinery.status import ApiError
from controller_manager import indexes, kinds
from controller_manager.controllers.statefulset import identity, keys, observe, rounds, status
from controller_manager.controllers.statefulset.observe import Belongings, History
from controller_manager.controllers.statefulset.scene import Scene, by_ordinal
from controller_manager.controllers.statefulset.setview import SetView
from controller_manager.runtime.actions import (
    NOTHING,
    Action,
    Adopt,
    AnyResource,
    Plan,
    Release,
    Update,
    Victim,
)
from controller_manager.runtime.caches import Caches
from controller_manager.runtime.controller import Controller, Watch
from controller_manager.runtime.resource import Key
from controller_manager.workloads import revisions
from controller_manager.workloads.podview import PodView
from controller_manager.workloads.revisions import Settled, Wanted


def reconcile(caches: Caches, key: Key, now: datetime) -> Plan:
    tree = caches.of(kinds.STATEFUL_SETS).get(*key)
    if tree is None:
        return NOTHING
    try:
        owner = SetView.of(tree)
    except SelectorError:
        return NOTHING  # no server accepts such a set, and trying again would not mend it
    history = observe.history(caches, owner)
    settled = _settled(caches, owner, history)
    belongings = observe.pods(caches, owner)
    scene = _scene(caches, owner, (*belongings.owned, *belongings.orphans), history, settled, now)
    if owner.deleting:
        return NOTHING if settled.actions else Plan(last=partial(_last, scene, settled, history, ()))
    decided = rounds.plan(scene)
    return Plan(
        actions=(*_claims(owner, history, belongings), *settled.actions, *decided.actions),
        last=partial(_last, scene, settled, history, decided.replaced),
        again_after=_next_availability(scene),
    )


def _settled(caches: Caches, owner: SetView, history: History) -> Settled:
    wanted = Wanted(
        owner=owner.object,
        data=identity.data_of(owner),
        labels=meta.labels(owner.object["spec"]["template"]),
        annotations=meta.annotations(owner.object),
    )
    named = partial(caches.of(kinds.CONTROLLER_REVISIONS).get, owner.key.namespace)
    return revisions.settle(wanted, history.revisions, owner.status.get("collisionCount") or 0, named)


def _scene(
    caches: Caches,
    owner: SetView,
    pods: Collection[PodView],
    history: History,
    settled: Settled,
    now: datetime,
) -> Scene:
    slots, condemned = by_ordinal(owner, pods)
    beyond = (identity.ordinal_in(owner, pod.key.name) for pod in condemned)
    ordinals = (*owner.ordinals, *(ordinal for ordinal in beyond if ordinal is not None))
    name = owner.status.get("currentRevision")
    current = next((it for it in history.revisions if meta.name(it) == name), settled.revision)
    return Scene(
        owner=owner,
        slots=slots,
        condemned=condemned,
        claims=observe.claims(caches, owner, ordinals),
        current=current,
        update=settled.revision,
        now=now,
    )


# --- whose pods and revisions are


def _claims(owner: SetView, history: History, belongings: Belongings) -> Iterable[Action]:
    """Adopt and release before anything else: the rest of the plan counts on it."""
    orphans = [Victim(Key(meta.namespace(it), meta.name(it)), meta.uid(it)) for it in history.orphans]
    yield from _adoption(owner, kinds.CONTROLLER_REVISIONS, orphans)
    yield from _adoption(owner, kinds.PODS, [Victim(pod.key, pod.uid) for pod in belongings.orphans])
    strays = tuple(Victim(pod.key, pod.uid) for pod in belongings.strays)
    if strays:
        yield Release(resource=kinds.PODS, objects=strays, owner=owner.object)


def _adoption(owner: SetView, resource: AnyResource, orphans: list[Victim]) -> Iterable[Action]:
    if orphans:
        yield Adopt(
            resource=resource,
            orphans=tuple(orphans),
            owner_resource=kinds.STATEFUL_SETS,
            owner=owner.object,
        )


# --- what comes last


def _last(
    scene: Scene,
    settled: Settled,
    history: History,
    replaced: Collection[PodView],
    error: ApiError | None,
) -> tuple[Action, ...]:
    """The status, told even of a round that failed, unless its revision may not exist; then the end of old history."""
    if error is not None and settled.actions:
        return ()
    live = {scene.current_name, scene.update_name, *map(identity.revision_of, scene.pods)}
    forgotten = revisions.truncated(history.revisions, live, scene.owner.revision_history_limit)
    return (*_told(scene.owner, status.of(scene, settled.collision_count, replaced)), *forgotten)


def _told(owner: SetView, new: dict[str, object]) -> tuple[Action, ...]:
    # A count of 0 may be left out, and the same goes for no collisions.
    if all((owner.status.get(field) or 0) == value for field, value in new.items()):
        return ()
    body = {**owner.object, "status": {**owner.status, **new}}
    return (Update(resource=kinds.STATEFUL_SETS, body=body, subresource="status"),)


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
        Watch(resource=kinds.STATEFUL_SETS, keys=keys.of_set),
        Watch(resource=kinds.PODS, keys=keys.of_pod),
        Watch(resource=kinds.PERSISTENT_VOLUME_CLAIMS, keys=keys.of_claim),
        Watch(resource=kinds.CONTROLLER_REVISIONS, keys=keys.of_revision),
    ),
    indexes={
        kinds.PODS: {indexes.BY_OWNER: indexes.owner_of_pod},
        kinds.CONTROLLER_REVISIONS: {indexes.BY_OWNER: indexes.owner_of},
    },
    reconcile=reconcile,
    workers=5,
)
