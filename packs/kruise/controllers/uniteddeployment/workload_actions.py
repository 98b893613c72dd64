"""The creations, updates and deletions of a UnitedDeployment's workloads."""

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from mockube.apimachinery import meta
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.kinds import PODS
from mockube.client.podview import PodView
from mockube.controller_manager.control.actions import (
    Action,
    Create,
    Delete,
    EventTemplate,
    Patch,
    RecordEvent,
    SlowStart,
    Update,
)
from mockube.controller_manager.workloads.ownership import object_ref

from . import workload
from .adapters.adapter import Adapter
from .snapshot import Snapshot
from .subset import LABEL_RESERVED_POD, REASON_FAILED_SUBSETS, REASON_UPDATED_SUBSETS, Subset
from .workload import DesiredSubset


class WorkloadActions(Struct, frozen=True, kw_only=True):
    actions: tuple[Action, ...]
    provisioned: bool
    """Whether a workload is created or deleted."""


def manage_subsets(snapshot: Snapshot, desired_subsets: Mapping[str, DesiredSubset]) -> WorkloadActions:
    """Return the actions on workloads; raise `PatchError` if a subset's patch cannot be applied."""
    # Deletions come first: a server that rejects a creation would reject it each time, and block them.
    provision = (
        *_delete_workloads(snapshot, desired_subsets),
        *_delete_workloads_of_other_kinds(snapshot),
        *_create_workloads(snapshot, desired_subsets),
    )
    return WorkloadActions(
        actions=(
            *provision,
            *_update_workloads(snapshot, desired_subsets),
            *_delete_stuck_pods(snapshot, desired_subsets),
        ),
        provisioned=bool(provision),
    )


# --- creating and deleting workloads


def _create_workloads(snapshot: Snapshot, desired_subsets: Mapping[str, DesiredSubset]) -> Iterable[Action]:
    names = sorted(desired_subsets.keys() - snapshot.subsets.keys())
    if not names:
        return
    yield SlowStart(effects=tuple(_creation(snapshot, desired_subsets[name]) for name in names))
    yield _success_event(snapshot, f"Create {len(names)} Subset ({snapshot.view.adapter.type})")


def _creation(snapshot: Snapshot, desired: DesiredSubset) -> Create:
    adapter = snapshot.view.adapter
    failed = f"fail to create Subset ({adapter.type}) {desired.subset.name}: {{error}}"
    return Create(
        resource=adapter.resource,
        bodies=(workload.new_workload(snapshot.view, desired),),
        event=_event_template(snapshot, f"fail to manage Subset provision: {failed}"),
    )


def _delete_workloads(snapshot: Snapshot, desired_subsets: Mapping[str, DesiredSubset]) -> Iterable[Action]:
    adapter = snapshot.view.adapter
    names = sorted(snapshot.subsets.keys() - desired_subsets.keys())
    workloads = [(name, snapshot.subsets[name].workload) for name in names]
    to_delete = [(name, tree) for name, tree in workloads if not meta.is_deleting(tree)]
    for name, tree in to_delete:
        failed = (
            f"fail to delete Subset ({adapter.type}) {meta.namespace(tree)}/{{name}} for {name}: {{error}}"
        )
        yield _deletion(snapshot, adapter, [tree], failed)
    if to_delete:
        yield _success_event(snapshot, f"Delete {len(to_delete)} Subset ({adapter.type})")


def _delete_workloads_of_other_kinds(snapshot: Snapshot) -> Iterable[Action]:
    """Delete the workloads of other kinds, which an earlier template had."""
    owner = str(snapshot.view.key)
    for adapter, workloads in snapshot.other_workloads:
        to_delete = [tree for tree in workloads if not meta.is_deleting(tree)]
        failed = f"fail to delete Subset {{name}} of other type {adapter.type} for UnitedDeployment {owner}: {{error}}"
        if to_delete:
            yield _deletion(snapshot, adapter, to_delete, failed)


def _deletion(snapshot: Snapshot, adapter: Adapter, workloads: Sequence[ReadOnlyTree], failed: str) -> Delete:
    return Delete(
        resource=adapter.resource,
        objects=tuple(object_ref(adapter.resource, tree) for tree in workloads),
        propagation="Background",
        event=_event_template(snapshot, f"fail to manage Subset provision: {failed}"),
    )


def _event_template(snapshot: Snapshot, failed: str) -> EventTemplate:
    return EventTemplate(about=snapshot.view.object, on_failure=(REASON_FAILED_SUBSETS, failed))


def _success_event(snapshot: Snapshot, message: str) -> RecordEvent:
    return RecordEvent(
        about=snapshot.view.object, type="Normal", reason=REASON_UPDATED_SUBSETS, message=message
    )


# --- updating workloads


def _update_workloads(snapshot: Snapshot, desired_subsets: Mapping[str, DesiredSubset]) -> Iterable[Action]:
    """Update all outdated workloads at once: the partitions and the workloads' strategies limit the rollout."""
    names = sorted(desired_subsets.keys() & snapshot.subsets.keys())
    effects = tuple(
        _update(snapshot, snapshot.subsets[name], desired_subsets[name])
        for name in names
        if _is_outdated(snapshot.view.adapter, snapshot.subsets[name], desired_subsets[name])
    )
    if effects:
        yield SlowStart(effects=effects)


def _update(snapshot: Snapshot, subset: Subset, desired: DesiredSubset) -> Update:
    adapter = snapshot.view.adapter
    failed = f"Error updating PodSet ({adapter.type}) {{name}} when updating: {{error}}"
    return Update(
        resource=adapter.resource,
        body=workload.updated_workload(snapshot.view, desired, subset.workload),
        event=_event_template(snapshot, failed),
    )


def _is_outdated(adapter: Adapter, subset: Subset, desired: DesiredSubset) -> bool:
    """Return whether a workload differs in fields that the controller sets; servers add defaults to other fields."""
    desired_values = (desired.revision, desired.replicas, workload.patch_text(desired.subset))
    if (subset.revision, subset.spec_replicas, subset.patch) != desired_values:
        return True
    return _has_other_partition(adapter, subset, desired) or _blocks_update(adapter, subset, desired)


def _has_other_partition(adapter: Adapter, subset: Subset, desired: DesiredSubset) -> bool:
    spec = subset.workload["spec"]
    return subset.partition != desired.partition and adapter.with_partition(spec, desired.partition) != spec


def _blocks_update(adapter: Adapter, subset: Subset, desired: DesiredSubset) -> bool:
    """Return whether pods that cannot run block the update of the others, so that maxUnavailable has to change."""
    spec = subset.workload["spec"]
    path = adapter.max_unavailable_path(spec)
    if (
        desired.max_unavailable is None
        or not path
        or len(subset.pods_of_revision(desired.revision)) >= subset.replicas
    ):
        return False
    return bool(meta.with_value(spec, path, desired.max_unavailable) != spec)


def _delete_stuck_pods(snapshot: Snapshot, desired_subsets: Mapping[str, DesiredSubset]) -> Iterable[Action]:
    """Delete pods that block their own replacement, in workloads that are up to date."""
    adapter = snapshot.view.adapter
    for name in sorted(desired_subsets.keys() & snapshot.subsets.keys()):
        subset, desired = snapshot.subsets[name], desired_subsets[name]
        if _is_outdated(adapter, subset, desired):
            continue
        if stuck_pods := [*adapter.stuck_pods(subset, desired.revision, desired.partition)]:
            refs = tuple(object_ref(PODS, pod) for pod in stuck_pods)
            yield Delete(resource=PODS, objects=refs, propagation="Background")


# --- the reserved label of pods


def mark_reserved_pods(snapshot: Snapshot) -> Iterable[Action]:
    changes = [
        change
        for subset_condition in snapshot.subset_conditions.values()
        for change in subset_condition.label_changes
    ]
    if changes:
        yield SlowStart(
            effects=tuple(_set_reserved_label(pod, is_reserved=reserved) for pod, reserved in changes)
        )


def _set_reserved_label(pod: PodView, *, is_reserved: bool) -> Patch:
    value = "true" if is_reserved else "false"
    body = {"metadata": {"uid": pod.uid, "labels": {LABEL_RESERVED_POD: value}}}
    return Patch(resource=PODS, key=pod.key, body=body, kind="strategic")
