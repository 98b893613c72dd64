"""Decide which workloads are created, updated and deleted."""

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from mockube.apimachinery import meta
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.controller_manager.client.kinds import PODS
from mockube.controller_manager.client.podview import PodView
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
from mockube.controller_manager.controllers.kruise.uniteddeployment import workload
from mockube.controller_manager.controllers.kruise.uniteddeployment.adapters.adapter import Adapter
from mockube.controller_manager.controllers.kruise.uniteddeployment.state import UnitedDeploymentState
from mockube.controller_manager.controllers.kruise.uniteddeployment.subset import (
    LABEL_RESERVED_POD,
    REASON_FAILED_SUBSETS,
    REASON_UPDATED_SUBSETS,
    Subset,
)
from mockube.controller_manager.controllers.kruise.uniteddeployment.workload import Goal
from mockube.controller_manager.workloads.ownership import object_ref


class WorkloadActions(Struct, frozen=True, kw_only=True):
    actions: tuple[Action, ...]
    provisioned: bool
    """A workload is created or deleted."""


def manage(state: UnitedDeploymentState, goals: Mapping[str, Goal]) -> WorkloadActions:
    """Or `PatchError`."""
    # Whatever refuses a creation refuses it again and again; what is to go shall not wait for that.
    provision = (*_delete_workloads(state, goals), *_delete_foreign(state), *_create_workloads(state, goals))
    return WorkloadActions(
        actions=(*provision, *_update_workloads(state, goals), *_delete_stuck_pods(state, goals)),
        provisioned=bool(provision),
    )


# --- creating and deleting workloads


def _create_workloads(state: UnitedDeploymentState, goals: Mapping[str, Goal]) -> Iterable[Action]:
    names = sorted(goals.keys() - state.subsets.keys())
    if not names:
        return
    yield SlowStart(effects=tuple(_creation(state, goals[name]) for name in names))
    yield _success_event(state, f"Create {len(names)} Subset ({state.view.adapter.type})")


def _creation(state: UnitedDeploymentState, goal: Goal) -> Create:
    adapter = state.view.adapter
    failed = f"fail to create Subset ({adapter.type}) {goal.subset.name}: {{error}}"
    return Create(
        resource=adapter.resource,
        bodies=(workload.new_workload(state.view, goal),),
        event=_event_template(state, f"fail to manage Subset provision: {failed}"),
    )


def _delete_workloads(state: UnitedDeploymentState, goals: Mapping[str, Goal]) -> Iterable[Action]:
    adapter = state.view.adapter
    names = sorted(state.subsets.keys() - goals.keys())
    workloads = [(name, state.subsets[name].workload) for name in names]
    going = [(name, tree) for name, tree in workloads if not meta.is_deleting(tree)]
    for name, tree in going:
        failed = (
            f"fail to delete Subset ({adapter.type}) {meta.namespace(tree)}/{{name}} for {name}: {{error}}"
        )
        yield _deletion(state, adapter, [tree], failed)
    if going:
        yield _success_event(state, f"Delete {len(going)} Subset ({adapter.type})")


def _delete_foreign(state: UnitedDeploymentState) -> Iterable[Action]:
    """The workloads of another kind, of an earlier template."""
    owner = str(state.view.key)
    for adapter, workloads in state.foreign:
        going = [tree for tree in workloads if not meta.is_deleting(tree)]
        failed = f"fail to delete Subset {{name}} of other type {adapter.type} for UnitedDeployment {owner}: {{error}}"
        if going:
            yield _deletion(state, adapter, going, failed)


def _deletion(
    state: UnitedDeploymentState, adapter: Adapter, workloads: Sequence[ReadOnlyTree], failed: str
) -> Delete:
    return Delete(
        resource=adapter.resource,
        objects=tuple(object_ref(adapter.resource, tree) for tree in workloads),
        propagation="Background",
        event=_event_template(state, f"fail to manage Subset provision: {failed}"),
    )


def _event_template(state: UnitedDeploymentState, failed: str) -> EventTemplate:
    return EventTemplate(about=state.view.object, failed=(REASON_FAILED_SUBSETS, failed))


def _success_event(state: UnitedDeploymentState, message: str) -> RecordEvent:
    return RecordEvent(about=state.view.object, type="Normal", reason=REASON_UPDATED_SUBSETS, message=message)


# --- workloads change


def _update_workloads(state: UnitedDeploymentState, goals: Mapping[str, Goal]) -> Iterable[Action]:
    """All in the same round: how fast pods follow is the partitions' and the workloads' own business."""
    names = sorted(goals.keys() & state.subsets.keys())
    effects = tuple(
        _update(state, state.subsets[name], goals[name])
        for name in names
        if _is_outdated(state.view.adapter, state.subsets[name], goals[name])
    )
    if effects:
        yield SlowStart(effects=effects)


def _update(state: UnitedDeploymentState, subset: Subset, goal: Goal) -> Update:
    adapter = state.view.adapter
    failed = f"Error updating PodSet ({adapter.type}) {{name}} when updating: {{error}}"
    return Update(
        resource=adapter.resource,
        body=workload.rewritten(state.view, goal, subset.workload),
        event=_event_template(state, failed),
    )


def _is_outdated(adapter: Adapter, subset: Subset, goal: Goal) -> bool:
    """Compares only the fields that the controller sets: servers fill specs with defaults."""
    decided = (goal.revision, goal.replicas, workload.patch_text(goal.subset))
    if (subset.revision, subset.spec_replicas, subset.patch) != decided:
        return True
    return _has_other_partition(adapter, subset, goal) or _holds_up(adapter, subset, goal)


def _has_other_partition(adapter: Adapter, subset: Subset, goal: Goal) -> bool:
    spec = subset.workload["spec"]
    return subset.partition != goal.partition and adapter.partitioned(spec, goal.partition) != spec


def _holds_up(adapter: Adapter, subset: Subset, goal: Goal) -> bool:
    """Pods that cannot run hold up the update of the others."""
    spec = subset.workload["spec"]
    place = adapter.unavailability(spec)
    if (
        goal.max_unavailable is None
        or not place
        or len(subset.pods_of_revision(goal.revision)) >= subset.replicas
    ):
        return False
    return bool(meta.with_value(spec, place, goal.max_unavailable) != spec)


def _delete_stuck_pods(state: UnitedDeploymentState, goals: Mapping[str, Goal]) -> Iterable[Action]:
    """Once a workload is up to date: delete pods that block their own replacement."""
    adapter = state.view.adapter
    for name in sorted(goals.keys() & state.subsets.keys()):
        subset, goal = state.subsets[name], goals[name]
        if _is_outdated(adapter, subset, goal):
            continue
        if stuck := [*adapter.stuck(subset, goal.revision, goal.partition)]:
            refs = tuple(object_ref(PODS, pod) for pod in stuck)
            yield Delete(resource=PODS, objects=refs, propagation="Background")


# --- the reserved label of pods


def mark_reserved_pods(state: UnitedDeploymentState) -> Iterable[Action]:
    marks = [mark for subset_condition in state.subset_conditions.values() for mark in subset_condition.marks]
    if marks:
        yield SlowStart(effects=tuple(_mark(pod, is_reserved=reserved) for pod, reserved in marks))


def _mark(pod: PodView, *, is_reserved: bool) -> Patch:
    value = "true" if is_reserved else "false"
    body = {"metadata": {"uid": pod.uid, "labels": {LABEL_RESERVED_POD: value}}}
    return Patch(resource=PODS, key=pod.key, body=body, kind="strategic")
