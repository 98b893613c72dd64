"""The desired state of each subset: its replicas, its partition and its patch."""

from collections.abc import Mapping

from mockube.controller_manager.controllers.kruise.uniteddeployment import allocator, rescheduling
from mockube.controller_manager.controllers.kruise.uniteddeployment.allocator import SubsetInfo
from mockube.controller_manager.controllers.kruise.uniteddeployment.conditions import FREE, SubsetCondition
from mockube.controller_manager.controllers.kruise.uniteddeployment.spec import SubsetSpec
from mockube.controller_manager.controllers.kruise.uniteddeployment.state import UnitedDeploymentState
from mockube.controller_manager.controllers.kruise.uniteddeployment.workload import Goal


def partitions(requested: Mapping[str, int], replicas: Mapping[str, int]) -> Mapping[str, int]:
    return {name: min(requested.get(name, 0), count) for name, count in replicas.items()}


def desired_subsets(state: UnitedDeploymentState) -> Mapping[str, Goal]:
    """In the order of the topology. Or `AllocationError`."""
    view, schedule = state.view, state.view.schedule
    places = [_subset_info(state, subset) for subset in view.subsets]
    shares = allocator.allocate(
        view.replicas, places, adapts=schedule.is_adaptive, reserves=schedule.reserves
    )
    partition_of = partitions(view.partitions, shares)
    return {
        subset.name: Goal(
            subset=subset,
            revision=state.history.expected,
            replicas=shares[subset.name],
            partition=partition_of[subset.name],
            max_unavailable=_max_unavailable(state, subset.name),
        )
        for subset in view.subsets
    }


def _subset_info(state: UnitedDeploymentState, spec: SubsetSpec) -> SubsetInfo:
    subset, subset_condition = state.subsets.get(spec.name), state.subset_conditions.get(spec.name, FREE)
    return SubsetInfo(
        name=spec.name,
        replicas=spec.replicas,
        min_replicas=spec.min_replicas,
        max_replicas=spec.max_replicas,
        exists=subset is not None,
        current=subset.spec_replicas if subset else 0,
        ready=subset.ready_replicas if subset else 0,
        unschedulable=subset_condition.unschedulable,
        marked=subset_condition.marked,
        reserved=subset_condition.reserved,
    )


def _max_unavailable(state: UnitedDeploymentState, name: str) -> int | None:
    """Pods that cannot run shall not hold up the update of those that can: as many may be missing as are."""
    subset, subset_condition = state.subsets.get(name), state.subset_conditions.get(name, FREE)
    if subset is None or not (state.view.schedule.reserves and subset_condition.unschedulable):
        return None
    missing = subset.spec_replicas - subset.ready_replicas + subset_condition.overdue
    return missing if missing > 0 else None


def resolved_conditions(
    state: UnitedDeploymentState, goals: Mapping[str, Goal]
) -> Mapping[str, SubsetCondition]:
    """With what the shares make of them."""
    if not state.view.schedule.reserves:
        return state.subset_conditions
    return {
        name: rescheduling.reserve_new_pods(subset_condition, state.now)
        if _recovers_and_grows(state, goals, name)
        else subset_condition
        for name, subset_condition in state.subset_conditions.items()
    }


def _recovers_and_grows(state: UnitedDeploymentState, goals: Mapping[str, Goal], name: str) -> bool:
    subset, goal, subset_condition = state.subsets.get(name), goals.get(name), state.subset_conditions[name]
    if subset is None or goal is None or subset_condition.unschedulable or not subset_condition.marked:
        return False
    return goal.replicas > subset.spec_replicas
