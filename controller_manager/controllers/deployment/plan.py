"""Decide what to do for a Deployment: one step towards what it wants, and what it says of itself.

Each step is taken alone, and the caches show it before the next one: a set is brought up to date, or one is made, or
sets are sized.
"""

from collections.abc import Callable
from datetime import datetime, timedelta

from apimachinery import meta
from apimachinery.status import AlreadyExists, ApiError
from apimachinery.wellknown import ANNOTATION_REVISION, REASON_SCALING_REPLICA_SET
from controller_manager.controllers.deployment import history, progress, revision, rollback, scaling, status
from controller_manager.controllers.deployment.conditions import REPLICA_SET_CREATE_ERROR, Conditions
from controller_manager.controllers.deployment.observe import Scene
from controller_manager.controllers.deployment.rolling import size_of_new, sizes_of_old
from controller_manager.controllers.deployment.views import SetView
from controller_manager.kinds import REPLICA_SETS
from controller_manager.runtime.actions import Action, Create, Plan, Saying, Update
from controller_manager.runtime.resource import Tree

StatusOf = Callable[[Scene, Conditions, datetime], Tree]


def plan(scene: Scene, now: datetime) -> Plan:
    deployment = scene.deployment
    told: Conditions = deployment.status.get("conditions") or ()
    if meta.is_deleting(deployment.object):
        return _told(scene, (), status.scaled_status(scene, told, now))
    told = progress.paused_or_resumed(deployment, told, now)
    if scene.new is not None:
        if update := revision.synced(deployment, scene.new, scene.olds):
            return Plan(actions=(update,))
        told = progress.found(deployment, scene.new, told, now)
    return _next_step(scene, told, now)


def _next_step(scene: Scene, told: Conditions, now: datetime) -> Plan:
    deployment = scene.deployment
    back_to = rollback.wanted(deployment)
    if deployment.paused:
        cleanup = history.forgotten(scene) if back_to is None else ()
        return _told(scene, (*_scaled(scene), *cleanup), status.scaled_status(scene, told, now))
    if back_to is not None and scene.new is not None:
        return Plan(actions=rollback.rolled_back(scene, back_to))
    if back_to is None and scaling.is_scaled(scene):
        return _told(scene, _scaled(scene), status.scaled_status(scene, told, now))
    if scene.new is None and (deployment.rolls or _is_cleared(scene)):
        return _collided(scene) if scene.is_name_taken else _created(scene, told, now)
    return _rolled(scene, told, now)


def _scaled(scene: Scene) -> tuple[Update, ...]:
    sizes = scaling.sizes(scene)
    return (
        *scaling.resized(scene.deployment, scene.sets, sizes),
        *scaling.remembered(scene.deployment, scene.sets, sizes),
    )


def _is_cleared(scene: Scene) -> bool:
    """Nothing is left of the old versions; the new one may begin without meeting them."""
    return not scaling.active(scene.olds) and not scene.old_pods_run


# --- the rollout


def _rolled(scene: Scene, told: Conditions, now: datetime) -> Plan:
    actions: tuple[Action, ...] = _rolling(scene) if scene.deployment.rolls else _recreating(scene)
    if not actions and progress.is_complete(scene.deployment, scene.deployment.status):
        actions = history.forgotten(scene)
    after = status.rolled_status(scene, told, now)
    return _told(scene, actions, after, progress.next_check(scene.deployment, after, now))


def _rolling(scene: Scene) -> tuple[Update, ...]:
    """The new set grows if it may; else the old ones shrink."""
    new, deployment = scene.new, scene.deployment
    assert new is not None
    size = size_of_new(deployment, new.replicas, scene.olds)
    grown = scaling.resized(deployment, (new,), {new.name: size})
    return grown or scaling.resized(deployment, scene.olds, sizes_of_old(scene))


def _recreating(scene: Scene) -> tuple[Update, ...]:
    new, deployment = scene.new, scene.deployment
    if emptied := scaling.resized(deployment, scene.olds, {old.name: 0 for old in scene.olds}):
        return emptied
    if new is None or scene.old_pods_run:
        return ()
    return scaling.resized(deployment, (new,), {new.name: deployment.replicas})


# --- the set of a new version


def _created(scene: Scene, told: Conditions, now: datetime) -> Plan:
    deployment = scene.deployment
    replicas = size_of_new(deployment, 0, scene.olds)
    number = revision.newest(scene.olds) + 1
    body = revision.made(deployment, scene.hash_of_new, replicas, number)

    def tell(error: ApiError | None) -> tuple[Action, ...]:
        if isinstance(error, AlreadyExists):
            return ()  # the cache will show whose it is
        if error is not None:
            said = progress.not_created(deployment, meta.name(body), error, now)
            return status.written(deployment, {**deployment.status, "conditions": said})
        made = SetView.of(body)
        after = Scene(deployment=deployment, new=made, olds=scene.olds)
        said = progress.created(deployment, made.name, told, now)
        return status.written(deployment, status.rolled_status(after, said, now), str(number))

    return Plan(
        actions=(Create(resource=REPLICA_SETS, bodies=(body,), saying=_saying(scene, replicas)),), last=tell
    )


def _saying(scene: Scene, replicas: int) -> Saying:
    grown = (REASON_SCALING_REPLICA_SET, f"Scaled up replica set {{name}} from 0 to {replicas}")
    failed = (REPLICA_SET_CREATE_ERROR, 'Failed to create new replica set "{name}": {error}')
    return Saying(about=scene.deployment.object, done=grown if replicas else ("", ""), failed=failed)


def _collided(scene: Scene) -> Plan:
    """Count the collision: the next hash is another one."""
    deployment = scene.deployment
    collisions = (deployment.status.get("collisionCount") or 0) + 1
    return Plan(actions=status.written(deployment, {**deployment.status, "collisionCount": collisions}))


def _told(scene: Scene, actions: tuple[Action, ...], after: Tree, check: timedelta | None = None) -> Plan:
    """The actions, and the status if nothing goes wrong with them."""
    new = scene.new
    number = meta.annotations(new.object).get(ANNOTATION_REVISION, "") if new else ""
    writes = status.written(scene.deployment, after, number)
    return Plan(
        actions=actions,
        last=lambda error: () if error else writes,
        again_after=None if writes else check,
    )
