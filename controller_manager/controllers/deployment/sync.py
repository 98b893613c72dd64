"""Decide what to do for a Deployment: one step towards its spec, and its status.

The caches show each step before the next one: a set's annotations are updated, or a set is created, or sets are
resized, because the Deployment was scaled or because a rollout goes on (`rolling.py`).
"""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from math import copysign

from mockube.apimachinery import meta
from mockube.apimachinery.status import AlreadyExists, ApiError
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apimachinery.wellknown import ANNOTATION_REVISION, REASON_SCALING_REPLICA_SET
from mockube.controller_manager.client.kinds import REPLICA_SETS
from mockube.controller_manager.control.actions import Action, Create, EventTemplate, Plan, Update
from mockube.controller_manager.controllers.deployment import revision, status
from mockube.controller_manager.controllers.deployment.rolling import (
    new_set_size,
    recreate_actions,
    rolling_update_actions,
)
from mockube.controller_manager.controllers.deployment.state import (
    DeploymentState,
    DeploymentView,
    SetView,
    Sizes,
)
from mockube.controller_manager.controllers.deployment.status import Conditions


def plan(state: DeploymentState, now: datetime) -> Plan:
    deployment = state.deployment
    present: Conditions = deployment.status.get("conditions") or ()
    if meta.is_deleting(deployment.object):
        return _with_status(state, (), status.status_while_scaling(state, present, now))
    present = status.with_pause_reason(deployment, present, now)
    if state.new is not None:
        if update := revision.sync_new_replica_set(deployment, state.new, state.old_sets):
            return Plan(actions=(update,))
        present = status.with_found_set(deployment, state.new, present, now)
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
    if rollback_to is None and is_scaled(state):
        return _with_status(state, _scale_actions(state), status.status_while_scaling(state, present, now))
    if state.new is None and (deployment.is_rolling_update or _has_no_old_pods(state)):
        return _count_collision(state) if state.is_name_taken else _create_new_set(state, present, now)
    return _roll_out(state, present, now)


def _roll_out(state: DeploymentState, present: Conditions, now: datetime) -> Plan:
    actions: tuple[Action, ...] = (
        rolling_update_actions(state) if state.deployment.is_rolling_update else recreate_actions(state)
    )
    if not actions and status.is_complete(state.deployment, state.deployment.status):
        actions = revision.replica_sets_to_delete(state)
    after = status.status_while_rolling(state, present, now)
    return _with_status(state, actions, after, status.next_check(state.deployment, after, now))


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


# --- the set of a new revision


def _has_no_old_pods(state: DeploymentState) -> bool:
    """Whether nothing is left of old revisions, so that pods of the new one can be created beside none of them."""
    return not _active(state.old_sets) and not state.old_pods_run


def _create_new_set(state: DeploymentState, present: Conditions, now: datetime) -> Plan:
    deployment = state.deployment
    replicas = new_set_size(deployment, 0, state.old_sets)
    number = revision.max_revision(state.old_sets) + 1
    body = revision.new_replica_set(deployment, state.new_hash, replicas, number)

    def record_outcome(error: ApiError | None) -> tuple[Action, ...]:
        if isinstance(error, AlreadyExists):
            return ()  # the cache will show its owner
        if error is not None:
            conditions = status.with_create_error(deployment, meta.name(body), error, now)
            return status.write_status(deployment, {**deployment.status, "conditions": conditions})
        created = SetView.of(body)
        after = DeploymentState(deployment=deployment, new=created, old_sets=state.old_sets)
        conditions = status.with_created_set(deployment, created.name, present, now)
        return status.write_status(
            deployment, status.status_while_rolling(after, conditions, now), str(number)
        )

    return Plan(
        actions=(Create(resource=REPLICA_SETS, bodies=(body,), event=_create_event(state, replicas)),),
        last=record_outcome,
    )


def _create_event(state: DeploymentState, replicas: int) -> EventTemplate:
    scale_up = (REASON_SCALING_REPLICA_SET, f"Scaled up replica set {{name}} from 0 to {replicas}")
    failed = (status.REPLICA_SET_CREATE_ERROR, 'Failed to create new replica set "{name}": {error}')
    return EventTemplate(
        about=state.deployment.object, done=scale_up if replicas else ("", ""), failed=failed
    )


def _count_collision(state: DeploymentState) -> Plan:
    """Increase the collision count, so that the next hash is another one."""
    deployment = state.deployment
    collisions = (deployment.status.get("collisionCount") or 0) + 1
    return Plan(actions=status.write_status(deployment, {**deployment.status, "collisionCount": collisions}))


# --- scaling: in mid-rollout each set grows or shrinks by its share, so that the rollout neither speeds up nor turns back


def is_scaled(state: DeploymentState) -> bool:
    """Whether a set was sized for another number of replicas than the Deployment's."""
    desired = state.deployment.replicas
    return any(replica_set.desired_annotation not in (None, desired) for replica_set in _active(state.sets))


def _scale_actions(state: DeploymentState) -> tuple[Update, ...]:
    sizes = scaled_sizes(state)
    return (
        *revision.resize_actions(state.deployment, state.sets, sizes),
        *revision.desired_replicas_actions(state.deployment, state.sets, sizes),
    )


def scaled_sizes(state: DeploymentState) -> Sizes:
    """Return the sizes of the sets of a Deployment that was scaled or is paused. Sets that are not named keep theirs."""
    deployment, active = state.deployment, _active(state.sets)
    if not state.sets:
        return {}
    if len(active) <= 1:
        only = active[0] if active else state.new or state.old_sets[-1]
        return {only.name: deployment.replicas}
    if state.new is not None and _is_saturated(deployment, state.new):
        return {old.name: 0 for old in _active(state.old_sets)}
    return _in_proportion(deployment, active) if deployment.is_rolling_update else {}


def _active(sets: Iterable[SetView]) -> list[SetView]:
    return [replica_set for replica_set in sets if replica_set.replicas > 0]


def _is_saturated(deployment: DeploymentView, new: SetView) -> bool:
    """Whether the set has all replicas of the Deployment, and its status is current."""
    return new.replicas == new.desired_annotation == new.available == deployment.replicas


def _in_proportion(deployment: DeploymentView, active: Sequence[SetView]) -> Sizes:
    """In proportion to the sets' sizes, the largest first; the largest also takes the remainder of rounding."""
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


def _share(deployment: DeploymentView, replica_set: SetView, to_add: int, added: int) -> int:
    if to_add == added:
        return 0
    limit = min if to_add > 0 else max
    return limit(_fraction(deployment, replica_set), to_add - added)


def _fraction(deployment: DeploymentView, replica_set: SetView) -> int:
    """Return by how much the set would change if it kept its part of all pods."""
    if deployment.replicas == 0:
        return -replica_set.replicas
    before = replica_set.max_annotation or deployment.status.get("replicas") or 0
    if before == 0:
        return 0
    return _round(replica_set.replicas * deployment.max_replicas / before) - replica_set.replicas


def _round(number: float) -> int:
    """A half is rounded away from zero."""
    return int(number + copysign(0.5, number))
