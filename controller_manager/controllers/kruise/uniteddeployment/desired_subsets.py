"""The desired state of each subset: its replicas, partition, patch and maxUnavailable."""

from collections.abc import Mapping

from mockube.controller_manager.controllers.kruise.uniteddeployment import allocator, rescheduling
from mockube.controller_manager.controllers.kruise.uniteddeployment.allocator import SubsetInfo
from mockube.controller_manager.controllers.kruise.uniteddeployment.conditions import (
    SCHEDULABLE,
    SubsetCondition,
)
from mockube.controller_manager.controllers.kruise.uniteddeployment.spec import SubsetSpec
from mockube.controller_manager.controllers.kruise.uniteddeployment.state import UnitedDeploymentState
from mockube.controller_manager.controllers.kruise.uniteddeployment.workload import DesiredSubset


def partitions(requested: Mapping[str, int], replicas: Mapping[str, int]) -> Mapping[str, int]:
    """Return the partition of each subset: the requested one, but at most its replicas."""
    return {name: min(requested.get(name, 0), count) for name, count in replicas.items()}


def calculate_desired_subsets(state: UnitedDeploymentState) -> Mapping[str, DesiredSubset]:
    """Return the desired subsets in the topology's order; raise `AllocationError` if replicas cannot be allocated."""
    view, schedule = state.view, state.view.schedule
    subset_infos = [_subset_info(state, subset) for subset in view.subsets]
    replicas = allocator.allocate(
        view.replicas, subset_infos, adapts=schedule.is_adaptive, reserves=schedule.reserves
    )
    partition_by_name = partitions(view.partitions, replicas)
    return {
        subset.name: DesiredSubset(
            subset=subset,
            revision=state.history.expected,
            replicas=replicas[subset.name],
            partition=partition_by_name[subset.name],
            max_unavailable=_max_unavailable(state, subset.name),
        )
        for subset in view.subsets
    }


def _subset_info(state: UnitedDeploymentState, spec: SubsetSpec) -> SubsetInfo:
    subset, subset_condition = (
        state.subsets.get(spec.name),
        state.subset_conditions.get(spec.name, SCHEDULABLE),
    )
    return SubsetInfo(
        name=spec.name,
        replicas=spec.replicas,
        min_replicas=spec.min_replicas,
        max_replicas=spec.max_replicas,
        exists=subset is not None,
        current=subset.spec_replicas if subset else 0,
        ready=subset.ready_replicas if subset else 0,
        unschedulable=subset_condition.unschedulable,
        was_unschedulable=subset_condition.was_unschedulable,
        reserved=subset_condition.reserved,
    )


def _max_unavailable(state: UnitedDeploymentState, name: str) -> int | None:
    """Return the number of pods that are missing now: pods that cannot run do not block the update of the others."""
    subset, subset_condition = state.subsets.get(name), state.subset_conditions.get(name, SCHEDULABLE)
    if subset is None or not (state.view.schedule.reserves and subset_condition.unschedulable):
        return None
    missing = subset.spec_replicas - subset.ready_replicas + subset_condition.overdue
    return missing if missing > 0 else None


def resolved_conditions(
    state: UnitedDeploymentState, desired_subsets: Mapping[str, DesiredSubset]
) -> Mapping[str, SubsetCondition]:
    """Return the conditions of subsets after the allocation: new pods of a recovered subset begin as reserved."""
    if not state.view.schedule.reserves:
        return state.subset_conditions
    return {
        name: rescheduling.reserve_new_pods(subset_condition, state.now)
        if _recovers_and_grows(state, desired_subsets, name)
        else subset_condition
        for name, subset_condition in state.subset_conditions.items()
    }


def _recovers_and_grows(
    state: UnitedDeploymentState, desired_subsets: Mapping[str, DesiredSubset], name: str
) -> bool:
    subset, desired, subset_condition = (
        state.subsets.get(name),
        desired_subsets.get(name),
        state.subset_conditions[name],
    )
    if (
        subset is None
        or desired is None
        or subset_condition.unschedulable
        or not subset_condition.was_unschedulable
    ):
        return False
    return desired.replicas > subset.spec_replicas
