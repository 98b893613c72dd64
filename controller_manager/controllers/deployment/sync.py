"""Plans for Deployments: the next step towards the spec, and the status.

The caches contain each step before the next one is planned. A step updates the annotations of a ReplicaSet, or creates a
ReplicaSet, or resizes ReplicaSets, because the Deployment was scaled or because a rollout goes on (`rolling.py`).
"""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from math import copysign

from mockube.apimachinery import meta
from mockube.apimachinery.conditions import Conditions
from mockube.apimachinery.status import AlreadyExists, ApiError
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apimachinery.wellknown import ANNOTATION_REVISION, REASON_SCALING_REPLICA_SET
from mockube.client.kinds import REPLICA_SETS
from mockube.controller_manager.control.actions import Action, Create, EventTemplate, Plan, Update

from . import revision, status
from .rolling import new_set_size, recreate_actions, rolling_update_actions
from .state import DeploymentState, DeploymentView, ReplicaSetView, Sizes


def plan(state: DeploymentState, now: datetime) -> Plan:
    deployment = state.deployment
    present: Conditions = deployment.status.get("conditions") or ()
    if meta.is_deleting(deployment.object):
        return _with_status(state, (), status.status_while_scaling(state, present, now))
    present = status.with_pause_reason(deployment, present, now)
    if state.new is not None:
        if update := revision.sync_new_replica_set(deployment, state.new, state.old_sets):
            return Plan(actions=(update,))
        present = status.with_found_new_replica_set(deployment, state.new, present, now)
    return _next_step(state, present, now)


def _next_step(state: DeploymentState, present: Conditions, now: datetime) -> Plan:
    deployment = state.deployment
    rollback_to = revision.rollback_revision(deployment)
    if deployment.is_paused:
        cleanup = revision.replica_sets_to_delete(state) if rollback_to is None else ()
        return _with_status(
            state, (*_scale_actions(state), *cleanup), status.status_while_scaling(state, present, now)
        )
    if rollback_to is not None and state.new is not None:
        return Plan(actions=revision.rollback_actions(state, rollback_to))
    if rollback_to is None and is_scaling_event(state):
        return _with_status(state, _scale_actions(state), status.status_while_scaling(state, present, now))
    if state.new is None and (deployment.is_rolling_update or _has_no_old_pods(state)):
        return (
            _increment_collision_count(state) if state.is_name_taken else _create_new_set(state, present, now)
        )
    return _roll_out(state, present, now)


def _roll_out(state: DeploymentState, present: Conditions, now: datetime) -> Plan:
    actions: tuple[Action, ...] = (
        rolling_update_actions(state) if state.deployment.is_rolling_update else recreate_actions(state)
    )
    if not actions and status.is_complete(state.deployment, state.deployment.status):
        actions = revision.replica_sets_to_delete(state)
    new_status = status.status_while_rolling(state, present, now)
    return _with_status(state, actions, new_status, status.next_check(state.deployment, new_status, now))


def _with_status(
    state: DeploymentState,
    actions: tuple[Action, ...],
    new_status: ReadOnlyTree,
    check: timedelta | None = None,
) -> Plan:
    """Return a plan with the actions, which writes the status if none of them fails."""
    new = state.new
    number = meta.annotations(new.object).get(ANNOTATION_REVISION, "") if new else ""
    writes = status.write_status(state.deployment, new_status, number)
    return Plan(
        actions=actions,
        last=lambda error: () if error else writes,
        requeue_after=None if writes else check,
    )


# --- the ReplicaSet of a new revision


def _has_no_old_pods(state: DeploymentState) -> bool:
    """Return whether no pods of old revisions exist: a Recreate Deployment creates its new ReplicaSet only then."""
    return not _active(state.old_sets) and not state.has_running_old_pods


def _create_new_set(state: DeploymentState, present: Conditions, now: datetime) -> Plan:
    deployment = state.deployment
    replicas = new_set_size(deployment, 0, state.old_sets)
    number = revision.max_revision(state.old_sets) + 1
    body = revision.new_replica_set(deployment, state.new_hash, replicas, number)

    def record_outcome(error: ApiError | None) -> tuple[Action, ...]:
        if isinstance(error, AlreadyExists):
            return ()  # the cache will contain the object of that name, with its owner
        if error is not None:
            conditions = status.with_replica_set_create_error(deployment, meta.name(body), error, now)
            return status.write_status(deployment, {**deployment.status, "conditions": conditions})
        created = ReplicaSetView.of(body)
        state_with_new_set = DeploymentState(deployment=deployment, new=created, old_sets=state.old_sets)
        conditions = status.with_created_new_replica_set(deployment, created.name, present, now)
        return status.write_status(
            deployment, status.status_while_rolling(state_with_new_set, conditions, now), str(number)
        )

    return Plan(
        actions=(Create(resource=REPLICA_SETS, bodies=(body,), event=_create_event(state, replicas)),),
        last=record_outcome,
    )


def _create_event(state: DeploymentState, replicas: int) -> EventTemplate:
    scale_up = (REASON_SCALING_REPLICA_SET, f"Scaled up replica set {{name}} from 0 to {replicas}")
    failed = (status.REPLICA_SET_CREATE_ERROR, 'Failed to create new replica set "{name}": {error}')
    return EventTemplate(
        about=state.deployment.object, on_success=scale_up if replicas else ("", ""), on_failure=failed
    )


def _increment_collision_count(state: DeploymentState) -> Plan:
    """Return the plan that increments the collision count, which changes the next hash."""
    deployment = state.deployment
    collisions = (deployment.status.get("collisionCount") or 0) + 1
    return Plan(actions=status.write_status(deployment, {**deployment.status, "collisionCount": collisions}))


# --- proportional scaling: during a rollout each set changes by its share, so that the rollout's progress does not change


def is_scaling_event(state: DeploymentState) -> bool:
    """Return whether the Deployment was scaled: a set's annotation has another number of desired replicas."""
    desired = state.deployment.replicas
    return any(replica_set.desired_annotation not in (None, desired) for replica_set in _active(state.sets))


def _scale_actions(state: DeploymentState) -> tuple[Update, ...]:
    sizes = scaled_sizes(state)
    return (
        *revision.resize_actions(state.deployment, state.sets, sizes),
        *revision.desired_replicas_actions(state.deployment, state.sets, sizes),
    )


def scaled_sizes(state: DeploymentState) -> Sizes:
    """Return the sizes of the sets of a Deployment that was scaled or is paused. Absent sets keep their sizes."""
    deployment, active = state.deployment, _active(state.sets)
    if not state.sets:
        return {}
    if len(active) <= 1:
        single = active[0] if active else state.new or state.old_sets[-1]
        return {single.name: deployment.replicas}
    if state.new is not None and _is_saturated(deployment, state.new):
        return {old.name: 0 for old in _active(state.old_sets)}
    return _proportional_sizes(deployment, active) if deployment.is_rolling_update else {}


def _active(sets: Iterable[ReplicaSetView]) -> list[ReplicaSetView]:
    return [replica_set for replica_set in sets if replica_set.replicas > 0]


def _is_saturated(deployment: DeploymentView, new: ReplicaSetView) -> bool:
    """Return whether the set has all replicas of the Deployment, and they are available."""
    return new.replicas == new.desired_annotation == new.available == deployment.replicas


def _proportional_sizes(deployment: DeploymentView, active: Sequence[ReplicaSetView]) -> Sizes:
    """Return sizes in proportion to the current ones. The largest set also takes the remainder of rounding."""
    allowed = deployment.max_replicas if deployment.replicas > 0 else 0
    to_add = allowed - sum(replica_set.replicas for replica_set in active)
    by_age = sorted(active, key=lambda replica_set: replica_set.age, reverse=to_add > 0)
    largest_first = sorted(by_age, key=lambda replica_set: -replica_set.replicas)
    sizes: dict[str, int] = {}
    added = 0
    for replica_set in largest_first:
        share = _share(deployment, replica_set, to_add, added)
        sizes[replica_set.name] = replica_set.replicas + share
        added += share
    largest = largest_first[0].name
    return {**sizes, largest: max(sizes[largest] + to_add - added, 0)}


def _share(deployment: DeploymentView, replica_set: ReplicaSetView, to_add: int, added: int) -> int:
    if to_add == added:
        return 0
    limit = min if to_add > 0 else max
    return limit(_proportional_change(deployment, replica_set), to_add - added)


def _proportional_change(deployment: DeploymentView, replica_set: ReplicaSetView) -> int:
    """Return by how many replicas the set changes if its part of all pods stays the same."""
    if deployment.replicas == 0:
        return -replica_set.replicas
    before = replica_set.max_annotation or deployment.status.get("replicas") or 0
    if before == 0:
        return 0
    return (
        _round_half_away_from_zero(replica_set.replicas * deployment.max_replicas / before)
        - replica_set.replicas
    )


def _round_half_away_from_zero(number: float) -> int:
    """Round to the nearest integer; a half is rounded away from zero."""
    return int(number + copysign(0.5, number))
