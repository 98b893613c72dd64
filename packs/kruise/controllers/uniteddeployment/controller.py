"""The UnitedDeployment controller: its watches, and its reconcile function."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final

from mockube.apimachinery import meta
from mockube.apimachinery.groups import GroupKind, GroupVersion
from mockube.apimachinery.labels import SelectorError
from mockube.apimachinery.patch.errors import PatchError
from mockube.apimachinery.status import ApiError
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.cache.store import Caches, Change
from mockube.client.kinds import CONTROLLER_REVISIONS, PODS, REPLICA_SETS
from mockube.client.resources import Key, Resource
from mockube.controller_manager.control.actions import EMPTY_PLAN, Action, Delete, Plan, RecordEvent
from mockube.controller_manager.control.controller import Controller, ToKeys, Watch
from mockube.controller_manager.workloads import ownership
from mockube.controller_manager.workloads.watches import watches_of
from mockube.packs.kruise.kinds import UNITED_DEPLOYMENTS

from . import status, subset
from .adapters import ADAPTERS
from .allocator import AllocationError, calculate_desired_subsets, resolved_conditions
from .rescheduling import soonest
from .snapshot import Snapshot, duplicates, observe, owned_by, ownership_actions, unlabelled_problem
from .spec import UnitedView, UnknownTemplate
from .workload import DesiredSubset
from .workload_actions import WorkloadActions, manage_subsets, mark_reserved_pods


def reconcile(caches: Caches, key: Key, now: datetime) -> Plan:
    view = _view(caches, key)
    if view is None:
        return EMPTY_PLAN
    owned = owned_by(caches, view)
    # Adoption and release are a reconciliation of their own: workloads are counted after the caches show them.
    if first := ownership_actions(view, owned):
        return Plan(actions=first)
    workloads = owned.of(view.adapter)
    if problem := unlabelled_problem(workloads):
        return Plan(
            actions=_subsets_not_found_events(view, subset.REASON_FAILED_FIND, problem, "get all Subsets for")
        )
    if surplus := duplicates(workloads):
        return _delete_duplicates_plan(view, surplus)
    return decide(observe(caches, view, owned, now))


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
    return _warning(view, reason, problem), _warning(view, subset.REASON_NOT_FOUND_SUBSETS, wrapped)


def _delete_duplicates_plan(view: UnitedView, surplus: Sequence[ReadOnlyTree]) -> Plan:
    """Return the plan that deletes surplus workloads. Their deletion requeues the key."""
    resource = view.adapter.resource
    delete = Delete(
        resource=resource,
        objects=tuple(ownership.object_ref(resource, workload) for workload in surplus),
        propagation="Background",
    )

    def status_action(error: ApiError | None) -> tuple[Action, ...]:
        if error is None:
            return ()
        return _subsets_not_found_events(
            view, subset.REASON_FAILED_DUPLICATES, str(error), "manage duplicate Subset of"
        )

    return Plan(actions=(delete,), last=status_action)


def _warning(view: UnitedView, reason: str, message: str) -> RecordEvent:
    return RecordEvent(about=view.object, type="Warning", reason=reason, message=message)


# --- the plan


def decide(snapshot: Snapshot) -> Plan:
    """Return the plan that makes the workloads those that the spec demands, and then writes the status."""
    first = (*snapshot.history.actions, *mark_reserved_pods(snapshot))
    requeue_after = soonest(
        subset_condition.check_after for subset_condition in snapshot.subset_conditions.values()
    )
    try:
        desired_subsets = calculate_desired_subsets(snapshot)
        workload_actions = manage_subsets(snapshot, desired_subsets)
    except AllocationError as error:
        message = f"Specified subset replicas is ineffective: {error}"
        return Plan(actions=(*first, _warning(snapshot.view, subset.REASON_FAILED_ALLOCATION, message)))
    except PatchError as error:
        return Plan(actions=(*first, _warning(snapshot.view, subset.REASON_FAILED_SUBSETS, str(error))))
    return Plan(
        actions=(*first, *workload_actions.actions),
        last=partial(_final_actions, snapshot, desired_subsets, workload_actions),
        requeue_after=requeue_after,
    )


def _final_actions(
    snapshot: Snapshot,
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


# --- the keys of UnitedDeployments that a change of another object affects


def _keys_of_owned(resource: Resource[ReadOnlyTree]) -> ToKeys:
    """Map a change of an object that a UnitedDeployment owns or may adopt."""
    return ownership.keys_of_owners(resource, UNITED_DEPLOYMENTS, ownership.selector_of)


_POSSIBLE_OWNERS: Final[Mapping[GroupKind, Resource[Any]]] = {
    resource.group_kind: resource
    for resource in (REPLICA_SETS, UNITED_DEPLOYMENTS, *(adapter.resource for adapter in ADAPTERS))
}
"""The resources in the chain of owners from a pod to a UnitedDeployment."""


def _keys_of_pod(caches: Caches, change: Change) -> Iterable[Key]:
    """Map a change of a pod."""
    return {key for pod in change if pod is not None for key in _top_owner(caches, PODS.tree(pod))}


def _keys_of_replica_set(caches: Caches, change: Change) -> Iterable[Key]:
    """Map a change of a ReplicaSet: it may enter its cache after its pods, whose keys were unknown until then."""
    return {key for tree in change if tree is not None for key in _top_owner(caches, tree)}


def _top_owner(caches: Caches, obj: ReadOnlyTree) -> Iterable[Key]:
    """Return the key of the UnitedDeployment at the end of the chain of owners; none if it ends otherwise."""
    resource: Resource[Any] | None = None
    owner: ReadOnlyTree | None = obj
    while owner is not None and resource is not UNITED_DEPLOYMENTS:
        obj = owner
        resource, owner = _owner(caches, obj)
    return (Key.of(owner),) if owner is not None else ()


def _owner(caches: Caches, obj: ReadOnlyTree) -> tuple[Resource[Any] | None, ReadOnlyTree | None]:
    reference = meta.controller_of(obj)
    if reference is None:
        return None, None
    group = GroupVersion.parse(reference["apiVersion"]).group
    resource = _POSSIBLE_OWNERS.get(GroupKind(group, reference["kind"]))
    owner = caches.of(resource).get(meta.namespace(obj), reference["name"]) if resource else None
    is_same_owner = owner is not None and meta.uid(owner) == reference["uid"]
    return resource, owner if is_same_owner else None


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
        *watches_of(UNITED_DEPLOYMENTS, delay=_BATCH_DELAY, max_delay=_MAX_BATCH_DELAY),
        Watch(resource=CONTROLLER_REVISIONS, keys=_keys_of_owned(CONTROLLER_REVISIONS)),
        *(
            Watch(
                resource=adapter.resource,
                keys=_keys_of_owned(adapter.resource),
                delay=_BATCH_DELAY,
                max_delay=_MAX_BATCH_DELAY,
            )
            for adapter in ADAPTERS
        ),
        Watch(
            resource=REPLICA_SETS, keys=_keys_of_replica_set, delay=_BATCH_DELAY, max_delay=_MAX_BATCH_DELAY
        ),
        Watch(resource=PODS, keys=_keys_of_pod, delay=_BATCH_DELAY, max_delay=_MAX_BATCH_DELAY),
    ),
    indexes={
        PODS: {ownership.BY_OWNER: ownership.owner_of_pod},
        REPLICA_SETS: {ownership.BY_OWNER: ownership.owner_of},
        CONTROLLER_REVISIONS: {ownership.BY_OWNER: ownership.owner_of},
        **{adapter.resource: {ownership.BY_OWNER: ownership.owner_of} for adapter in ADAPTERS},
    },
    reconcile=reconcile,
    workers=3,
)
