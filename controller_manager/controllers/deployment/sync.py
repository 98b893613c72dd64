"""Decide what to do for a Deployment: one step towards its spec, and its status.

The caches show each step before the next one: a set's annotations are updated, or a set is created, or sets are
resized.
"""

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


def plan(state: DeploymentState, now: datetime) -> Plan:
    deployment = state.deployment
    present: Conditions = deployment.status.get("conditions") or ()
    if meta.is_deleting(deployment.object):
        return _with_status(state, (), status.status_while_scaling(state, present, now))
    present = progress.with_pause_reason(deployment, present, now)
    if state.new is not None:
        if update := revision.sync_new_replica_set(deployment, state.new, state.old_sets):
            return Plan(actions=(update,))
        present = progress.with_found_set(deployment, state.new, present, now)
    return _next_step(state, present, now)


def _next_step(state: DeploymentState, present: Conditions, now: datetime) -> Plan:
    deployment = state.deployment
    back_to = rollback.rollback_revision(deployment)
    if deployment.is_paused:
        cleanup = observe.replica_sets_to_delete(state) if back_to is None else ()
        return _with_status(
            state, (*_scale_actions(state), *cleanup), status.status_while_scaling(state, present, now)
        )
    if back_to is not None and state.new is not None:
        return Plan(actions=rollback.rollback_actions(state, back_to))
    if back_to is None and scaling.is_scaled(state):
        return _with_status(state, _scale_actions(state), status.status_while_scaling(state, present, now))
    if state.new is None and (deployment.rolls or _has_no_old_pods(state)):
        return _count_collision(state) if state.is_name_taken else _create_new_set(state, present, now)
    return _roll_out(state, present, now)


def _scale_actions(state: DeploymentState) -> tuple[Update, ...]:
    sizes = scaling.sizes(state)
    return (
        *scaling.resize_actions(state.deployment, state.sets, sizes),
        *scaling.desired_replicas_actions(state.deployment, state.sets, sizes),
    )


def _has_no_old_pods(state: DeploymentState) -> bool:
    """Nothing is left of the old versions; the new one may begin without meeting them."""
    return not scaling.active(state.old_sets) and not state.old_pods_run


# --- the rollout


def _roll_out(state: DeploymentState, present: Conditions, now: datetime) -> Plan:
    actions: tuple[Action, ...] = (
        _rolling_update_actions(state) if state.deployment.rolls else _recreate_actions(state)
    )
    if not actions and progress.is_complete(state.deployment, state.deployment.status):
        actions = observe.replica_sets_to_delete(state)
    after = status.status_while_rolling(state, present, now)
    return _with_status(state, actions, after, progress.next_check(state.deployment, after, now))


def _rolling_update_actions(state: DeploymentState) -> tuple[Update, ...]:
    """The new set grows if it may; else the old ones shrink."""
    new, deployment = state.new, state.deployment
    assert new is not None
    size = size_of_new(deployment, new.replicas, state.old_sets)
    scale_up = scaling.resize_actions(deployment, (new,), {new.name: size})
    return scale_up or scaling.resize_actions(deployment, state.old_sets, sizes_of_old(state))


def _recreate_actions(state: DeploymentState) -> tuple[Update, ...]:
    new, deployment = state.new, state.deployment
    if scale_down := scaling.resize_actions(
        deployment, state.old_sets, {old.name: 0 for old in state.old_sets}
    ):
        return scale_down
    if new is None or state.old_pods_run:
        return ()
    return scaling.resize_actions(deployment, (new,), {new.name: deployment.replicas})


# --- the set of a new version


def _create_new_set(state: DeploymentState, present: Conditions, now: datetime) -> Plan:
    deployment = state.deployment
    replicas = size_of_new(deployment, 0, state.old_sets)
    number = revision.max_revision(state.old_sets) + 1
    body = revision.new_replica_set(deployment, state.hash_of_new, replicas, number)

    def record_outcome(error: ApiError | None) -> tuple[Action, ...]:
        if isinstance(error, AlreadyExists):
            return ()  # the cache will show its owner
        if error is not None:
            new_conditions = progress.not_created(deployment, meta.name(body), error, now)
            return status.write_status(deployment, {**deployment.status, "conditions": new_conditions})
        created = SetView.of(body)
        after = DeploymentState(deployment=deployment, new=created, old_sets=state.old_sets)
        new_conditions = progress.with_new_set(deployment, created.name, present, now)
        return status.write_status(
            deployment, status.status_while_rolling(after, new_conditions, now), str(number)
        )

    return Plan(
        actions=(Create(resource=REPLICA_SETS, bodies=(body,), event=_event_template(state, replicas)),),
        last=record_outcome,
    )


def _event_template(state: DeploymentState, replicas: int) -> EventTemplate:
    scale_up = (REASON_SCALING_REPLICA_SET, f"Scaled up replica set {{name}} from 0 to {replicas}")
    failed = (REPLICA_SET_CREATE_ERROR, 'Failed to create new replica set "{name}": {error}')
    return EventTemplate(
        about=state.deployment.object, done=scale_up if replicas else ("", ""), failed=failed
    )


def _count_collision(state: DeploymentState) -> Plan:
    """Count the collision: the next hash is another one."""
    deployment = state.deployment
    collisions = (deployment.status.get("collisionCount") or 0) + 1
    return Plan(actions=status.write_status(deployment, {**deployment.status, "collisionCount": collisions}))


def _with_status(
    state: DeploymentState, actions: tuple[Action, ...], after: ReadOnlyTree, check: timedelta | None = None
) -> Plan:
    """The actions, and the status if none of them fails."""
    new = state.new
    number = meta.annotations(new.object).get(ANNOTATION_REVISION, "") if new else ""
    writes = status.write_status(state.deployment, after, number)
    return Plan(
        actions=actions,
        last=lambda error: () if error else writes,
        again_after=None if writes else check,
    )
