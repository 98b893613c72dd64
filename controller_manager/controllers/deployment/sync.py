"""Decide what to do for a Deployment: one step towards what it wants, and what it says of itself.

Each step is taken alone, and the caches show it before the next one: a set is brought up to date, or one is made, or
sets are sized.
"""

from collections.abc import Callable
from datetime import datetime, timedelta

from mockube.apimachinery import meta
from mockube.apimachinery.status import AlreadyExists, ApiError
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apimachinery.wellknown import ANNOTATION_REVISION, REASON_SCALING_REPLICA_SET
from mockube.controller_manager.client.kinds import REPLICA_SETS
from mockube.controller_manager.control.actions import Action, Create, EventTemplate, Plan, Update
from mockube.controller_manager.controllers.deployment import (
    observe,
    progress,
    revision,
    rollback,
    scaling,
    status,
)
from mockube.controller_manager.controllers.deployment.conditions import REPLICA_SET_CREATE_ERROR, Conditions
from mockube.controller_manager.controllers.deployment.observe import DeploymentState
from mockube.controller_manager.controllers.deployment.rolling import size_of_new, sizes_of_old
from mockube.controller_manager.controllers.deployment.state import SetView

StatusOf = Callable[[DeploymentState, Conditions, datetime], ReadOnlyTree]


def plan(state: DeploymentState, now: datetime) -> Plan:
    deployment = state.deployment
    told: Conditions = deployment.status.get("conditions") or ()
    if meta.is_deleting(deployment.object):
        return _told(state, (), status.scaled_status(state, told, now))
    told = progress.paused_or_resumed(deployment, told, now)
    if state.new is not None:
        if update := revision.sync_new_replica_set(deployment, state.new, state.olds):
            return Plan(actions=(update,))
        told = progress.found_set_conditions(deployment, state.new, told, now)
    return _next_step(state, told, now)


def _next_step(state: DeploymentState, told: Conditions, now: datetime) -> Plan:
    deployment = state.deployment
    back_to = rollback.rollback_revision(deployment)
    if deployment.paused:
        cleanup = observe.replica_sets_to_delete(state) if back_to is None else ()
        return _told(state, (*_scaled(state), *cleanup), status.scaled_status(state, told, now))
    if back_to is not None and state.new is not None:
        return Plan(actions=rollback.rolled_back(state, back_to))
    if back_to is None and scaling.is_scaled(state):
        return _told(state, _scaled(state), status.scaled_status(state, told, now))
    if state.new is None and (deployment.rolls or _is_cleared(state)):
        return _collided(state) if state.is_name_taken else _created(state, told, now)
    return _rolled(state, told, now)


def _scaled(state: DeploymentState) -> tuple[Update, ...]:
    sizes = scaling.sizes(state)
    return (
        *scaling.resize_actions(state.deployment, state.sets, sizes),
        *scaling.desired_replicas_actions(state.deployment, state.sets, sizes),
    )


def _is_cleared(state: DeploymentState) -> bool:
    """Nothing is left of the old versions; the new one may begin without meeting them."""
    return not scaling.active(state.olds) and not state.old_pods_run


# --- the rollout


def _rolled(state: DeploymentState, told: Conditions, now: datetime) -> Plan:
    actions: tuple[Action, ...] = _rolling(state) if state.deployment.rolls else _recreating(state)
    if not actions and progress.is_complete(state.deployment, state.deployment.status):
        actions = observe.replica_sets_to_delete(state)
    after = status.rolled_status(state, told, now)
    return _told(state, actions, after, progress.next_check(state.deployment, after, now))


def _rolling(state: DeploymentState) -> tuple[Update, ...]:
    """The new set grows if it may; else the old ones shrink."""
    new, deployment = state.new, state.deployment
    assert new is not None
    size = size_of_new(deployment, new.replicas, state.olds)
    grown = scaling.resize_actions(deployment, (new,), {new.name: size})
    return grown or scaling.resize_actions(deployment, state.olds, sizes_of_old(state))


def _recreating(state: DeploymentState) -> tuple[Update, ...]:
    new, deployment = state.new, state.deployment
    if emptied := scaling.resize_actions(deployment, state.olds, {old.name: 0 for old in state.olds}):
        return emptied
    if new is None or state.old_pods_run:
        return ()
    return scaling.resize_actions(deployment, (new,), {new.name: deployment.replicas})


# --- the set of a new version


def _created(state: DeploymentState, told: Conditions, now: datetime) -> Plan:
    deployment = state.deployment
    replicas = size_of_new(deployment, 0, state.olds)
    number = revision.newest(state.olds) + 1
    body = revision.new_replica_set(deployment, state.hash_of_new, replicas, number)

    def tell(error: ApiError | None) -> tuple[Action, ...]:
        if isinstance(error, AlreadyExists):
            return ()  # the cache will show whose it is
        if error is not None:
            said = progress.not_created(deployment, meta.name(body), error, now)
            return status.written(deployment, {**deployment.status, "conditions": said})
        made = SetView.of(body)
        after = DeploymentState(deployment=deployment, new=made, olds=state.olds)
        said = progress.new_set_conditions(deployment, made.name, told, now)
        return status.written(deployment, status.rolled_status(after, said, now), str(number))

    return Plan(
        actions=(Create(resource=REPLICA_SETS, bodies=(body,), saying=_saying(state, replicas)),), last=tell
    )


def _saying(state: DeploymentState, replicas: int) -> EventTemplate:
    grown = (REASON_SCALING_REPLICA_SET, f"Scaled up replica set {{name}} from 0 to {replicas}")
    failed = (REPLICA_SET_CREATE_ERROR, 'Failed to create new replica set "{name}": {error}')
    return EventTemplate(about=state.deployment.object, done=grown if replicas else ("", ""), failed=failed)


def _collided(state: DeploymentState) -> Plan:
    """Count the collision: the next hash is another one."""
    deployment = state.deployment
    collisions = (deployment.status.get("collisionCount") or 0) + 1
    return Plan(actions=status.written(deployment, {**deployment.status, "collisionCount": collisions}))


def _told(
    state: DeploymentState, actions: tuple[Action, ...], after: ReadOnlyTree, check: timedelta | None = None
) -> Plan:
    """The actions, and the status if nothing goes wrong with them."""
    new = state.new
    number = meta.annotations(new.object).get(ANNOTATION_REVISION, "") if new else ""
    writes = status.written(state.deployment, after, number)
    return Plan(
        actions=actions,
        last=lambda error: () if error else writes,
        again_after=None if writes else check,
    )
