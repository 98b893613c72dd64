"""The UnitedDeployment controller: its watches, and its reconcile function."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Final

from mockube.apimachinery import meta
from mockube.apimachinery.labels import SelectorError
from mockube.apimachinery.patch.errors import PatchError
from mockube.apimachinery.status import ApiError
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.controller_manager.cache.store import Caches
from mockube.controller_manager.client.kinds import (
    CONTROLLER_REVISIONS,
    PODS,
    REPLICA_SETS,
    UNITED_DEPLOYMENTS,
)
from mockube.controller_manager.client.resources import Key
from mockube.controller_manager.control.actions import EMPTY_PLAN, Action, Delete, Plan, RecordEvent
from mockube.controller_manager.control.controller import Controller, Watch
from mockube.controller_manager.controllers.kruise.uniteddeployment import (
    conditions,
    keys,
    revision,
    state,
    status,
)
from mockube.controller_manager.controllers.kruise.uniteddeployment.adapters.rows import ADAPTERS
from mockube.controller_manager.controllers.kruise.uniteddeployment.allocator import AllocationError
from mockube.controller_manager.controllers.kruise.uniteddeployment.desired_subsets import (
    calculate_desired_subsets,
    resolved_conditions,
)
from mockube.controller_manager.controllers.kruise.uniteddeployment.rescheduling import (
    soonest,
    subset_conditions,
)
from mockube.controller_manager.controllers.kruise.uniteddeployment.spec import UnitedView, UnknownTemplate
from mockube.controller_manager.controllers.kruise.uniteddeployment.state import (
    OwnedResources,
    UnitedDeploymentState,
)
from mockube.controller_manager.controllers.kruise.uniteddeployment.subset import (
    REASON_FAILED_ALLOCATION,
    REASON_FAILED_DUPLICATES,
    REASON_FAILED_FIND,
    REASON_FAILED_SUBSETS,
    REASON_NOT_FOUND_SUBSETS,
)
from mockube.controller_manager.controllers.kruise.uniteddeployment.workload import DesiredSubset
from mockube.controller_manager.controllers.kruise.uniteddeployment.workload_actions import (
    WorkloadActions,
    manage_subsets,
    mark_reserved_pods,
)
from mockube.controller_manager.workloads import indexes as primary
from mockube.controller_manager.workloads.ownership import BY_OWNER, object_ref, owner_of, owner_of_pod


def reconcile(caches: Caches, key: Key, now: datetime) -> Plan:
    view = _view(caches, key)
    if view is None:
        return EMPTY_PLAN
    owned = state.owned_by(caches, view)
    # Adoption and release are a reconciliation of their own: workloads are counted after the caches show them.
    if first := state.ownership_actions(view, owned):
        return Plan(actions=first)
    workloads = owned.of(view.adapter)
    if problem := state.unlabelled_problem(workloads):
        return Plan(
            actions=_subsets_not_found_events(view, REASON_FAILED_FIND, problem, "get all Subsets for")
        )
    if surplus := state.duplicates(workloads):
        return _delete_duplicates_plan(view, surplus)
    return _plan(_state_of(caches, view, owned, now))


def _view(caches: Caches, key: Key) -> UnitedView | None:
    tree = caches.of(UNITED_DEPLOYMENTS).get(*key)
    if tree is None or meta.is_deleting(tree):
        return None  # the garbage collector deletes its dependents
    try:
        return UnitedView.of(tree)
    except (SelectorError, UnknownTemplate):
        return None  # no server accepts it, and a retry would not help


# --- errors of finding subsets


def _subsets_not_found_events(
    view: UnitedView, reason: str, problem: str, operation: str
) -> tuple[RecordEvent, RecordEvent]:
    wrapped = f"fail to {operation} UnitedDeployment {view.key}: {problem}"
    return _warning(view, reason, problem), _warning(view, REASON_NOT_FOUND_SUBSETS, wrapped)


def _delete_duplicates_plan(view: UnitedView, surplus: Sequence[ReadOnlyTree]) -> Plan:
    """Return the plan that deletes surplus workloads. Their deletion requeues the key."""
    resource = view.adapter.resource
    delete = Delete(
        resource=resource,
        objects=tuple(object_ref(resource, workload) for workload in surplus),
        propagation="Background",
    )

    def status_action(error: ApiError | None) -> tuple[Action, ...]:
        if error is None:
            return ()
        return _subsets_not_found_events(
            view, REASON_FAILED_DUPLICATES, str(error), "manage duplicate Subset of"
        )

    return Plan(actions=(delete,), last=status_action)


def _warning(view: UnitedView, reason: str, message: str) -> RecordEvent:
    return RecordEvent(about=view.object, type="Warning", reason=reason, message=message)


# --- the plan


def _state_of(
    caches: Caches, view: UnitedView, owned: OwnedResources, now: datetime
) -> UnitedDeploymentState:
    history = revision.sync_revisions(caches, view, owned.revisions.owned)
    subsets = [state.subset_of(caches, view.adapter, workload) for workload in owned.of(view.adapter)]
    # The first workload of a name counts; the others are being deleted already.
    by_name = {subset.name: subset for subset in reversed(subsets)}
    present = conditions.set_updated_condition(
        view.status.get("conditions") or (), history.current, history.expected, now
    )
    return UnitedDeploymentState(
        view=view,
        history=history,
        subsets=by_name,
        other_workloads=[(other, owned.of(other)) for other in ADAPTERS if other is not view.adapter],
        conditions=present,
        subset_conditions=subset_conditions(view, by_name, present, history.expected, now),
        now=now,
    )


def _plan(snapshot: UnitedDeploymentState) -> Plan:
    first = (*snapshot.history.actions, *mark_reserved_pods(snapshot))
    requeue_after = soonest(
        subset_condition.check_after for subset_condition in snapshot.subset_conditions.values()
    )
    try:
        desired_subsets = calculate_desired_subsets(snapshot)
        workload_actions = manage_subsets(snapshot, desired_subsets)
    except AllocationError as error:
        message = f"Specified subset replicas is ineffective: {error}"
        return Plan(actions=(*first, _warning(snapshot.view, REASON_FAILED_ALLOCATION, message)))
    except PatchError as error:
        return Plan(actions=(*first, _warning(snapshot.view, REASON_FAILED_SUBSETS, str(error))))
    return Plan(
        actions=(*first, *workload_actions.actions),
        last=partial(_final_actions, snapshot, desired_subsets, workload_actions),
        requeue_after=requeue_after,
    )


def _final_actions(
    snapshot: UnitedDeploymentState,
    desired_subsets: Mapping[str, DesiredSubset],
    workload_actions: WorkloadActions,
    error: ApiError | None,
) -> tuple[Action, ...]:
    """Return the update of the status. If an action failed, the retry writes it."""
    if error is not None:
        return ()
    new_conditions = resolved_conditions(snapshot, desired_subsets)
    return status.status_update(
        snapshot, desired_subsets, new_conditions, provisioned=workload_actions.provisioned
    )


_BATCH_DELAY: Final = timedelta(milliseconds=200)
_MAX_BATCH_DELAY: Final = timedelta(seconds=1)
"""The delays of a reconciliation after a change of a workload or pod: many pods become ready at once, and each
reconciliation counts all. A change of the spec is reconciled at once.
"""

UNITED_DEPLOYMENT: Final = Controller(
    name="uniteddeployment-controller",
    queue="uniteddeployment",
    service_account="",
    event_component="uniteddeployment-controller",
    metrics_name="uniteddeployment-controller",
    needs=tuple(
        resource
        for resource in (UNITED_DEPLOYMENTS, *(adapter.resource for adapter in ADAPTERS))
        if resource.group == UNITED_DEPLOYMENTS.group
    ),
    watches=(
        *primary.watches_of(UNITED_DEPLOYMENTS, delay=_BATCH_DELAY, max_delay=_MAX_BATCH_DELAY),
        Watch(resource=CONTROLLER_REVISIONS, keys=keys.of_revision),
        *(
            Watch(
                resource=adapter.resource,
                keys=keys.of_owned(adapter.resource),
                delay=_BATCH_DELAY,
                max_delay=_MAX_BATCH_DELAY,
            )
            for adapter in ADAPTERS
        ),
        Watch(
            resource=REPLICA_SETS, keys=keys.of_replica_set, delay=_BATCH_DELAY, max_delay=_MAX_BATCH_DELAY
        ),
        Watch(resource=PODS, keys=keys.of_pod, delay=_BATCH_DELAY, max_delay=_MAX_BATCH_DELAY),
    ),
    indexes={
        PODS: {BY_OWNER: owner_of_pod},
        REPLICA_SETS: {BY_OWNER: owner_of},
        CONTROLLER_REVISIONS: {BY_OWNER: owner_of},
        **{adapter.resource: {BY_OWNER: owner_of} for adapter in ADAPTERS},
    },
    reconcile=reconcile,
    workers=3,
)
