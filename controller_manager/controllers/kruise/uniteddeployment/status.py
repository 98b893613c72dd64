"""The status of a UnitedDeployment: counted on what was seen, never on what was just done."""

from collections.abc import Mapping, Sequence
from typing import Any

from mockube.apimachinery import meta
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.controller_manager.client.kinds import UNITED_DEPLOYMENTS
from mockube.controller_manager.control.actions import Update
from mockube.controller_manager.controllers.kruise.uniteddeployment import conditions
from mockube.controller_manager.controllers.kruise.uniteddeployment.conditions import (
    Conditions,
    SubsetCondition,
)
from mockube.controller_manager.controllers.kruise.uniteddeployment.state import UnitedDeploymentState
from mockube.controller_manager.controllers.kruise.uniteddeployment.subset import (
    CONDITION_FAILURE,
    CONDITION_PROVISIONED,
    CONDITION_SUBSETS_UPDATED,
    LABEL_RESERVED_POD,
)
from mockube.controller_manager.controllers.kruise.uniteddeployment.workload import Goal

_ALWAYS = ("replicas", "updatedReplicas", "currentRevision")
"""Counts that are written even if they are 0."""


def status_update(
    state: UnitedDeploymentState,
    goals: Mapping[str, Goal],
    subset_conditions: Mapping[str, SubsetCondition],
    *,
    provisioned: bool,
) -> tuple[Update, ...]:
    """Write the status if it differs."""
    status = _status(state, goals, subset_conditions, provisioned=provisioned)
    if status == state.view.status:
        return ()
    body = {**state.view.object, "status": status}
    return (Update(resource=UNITED_DEPLOYMENTS, body=body, subresource="status"),)


def _status(
    state: UnitedDeploymentState,
    goals: Mapping[str, Goal],
    subset_conditions: Mapping[str, SubsetCondition],
    *,
    provisioned: bool,
) -> dict[str, Any]:
    view, counts = state.view, _counts(state)
    status = {
        **view.status,
        "observedGeneration": meta.generation(view.object),
        **counts,
        "currentRevision": _current_revision(state, counts),
        "subsetReplicas": {name: goal.replicas for name, goal in goals.items()},
        "updateStatus": _update_status(state, goals),
        "subsetStatuses": _of_subsets(state, goals, subset_conditions),
        "conditions": [*_conditions(state, provisioned=provisioned)],
        "labelSelector": _selector(state),
    }
    return {field: value for field, value in status.items() if value or field in _ALWAYS}


def _counts(state: UnitedDeploymentState) -> dict[str, int]:
    subsets = state.subsets.values()
    updated = [pod for subset in subsets for pod in subset.pods_of_revision(state.history.expected)]
    reserved = sum(
        state.subset_conditions[name].reserved
        for name in state.subsets.keys() & state.subset_conditions.keys()
    )
    return {
        "replicas": sum(subset.replicas for subset in subsets) - reserved,
        "readyReplicas": sum(subset.ready_replicas for subset in subsets),
        "updatedReplicas": len(updated),
        "updatedReadyReplicas": sum(pod.is_ready for pod in updated),
        "reservedPods": reserved,
    }


def _current_revision(state: UnitedDeploymentState, counts: Mapping[str, int]) -> str:
    """The revision that all pods are of; the expected one as soon as enough of its pods are ready."""
    if counts["updatedReadyReplicas"] >= counts["replicas"]:
        return state.history.expected
    return state.view.status.get("currentRevision") or state.history.current


def _update_status(state: UnitedDeploymentState, goals: Mapping[str, Goal]) -> ReadOnlyTree:
    current = {name: goal.partition for name, goal in goals.items()}
    return {"updatedRevision": state.history.expected, **({"currentPartitions": current} if current else {})}


def _of_subsets(
    state: UnitedDeploymentState, goals: Mapping[str, Goal], subset_conditions: Mapping[str, SubsetCondition]
) -> Sequence[ReadOnlyTree]:
    before = {entry["name"]: entry for entry in state.view.status.get("subsetStatuses") or ()}
    return [
        _of_subset(state, before.get(name) or {"name": name}, goals.get(name), subset_condition)
        for name, subset_condition in subset_conditions.items()
    ]


def _of_subset(
    state: UnitedDeploymentState, before: ReadOnlyTree, goal: Goal | None, subset_condition: SubsetCondition
) -> ReadOnlyTree:
    """A subset without a workload keeps its last status."""
    subset = state.subsets.get(before["name"])
    counts = (
        {
            "replicas": subset.replicas,
            "readyReplicas": subset.ready_replicas,
            "partition": goal.partition if goal else 0,
            "reservedPods": subset_condition.reserved,
        }
        if subset
        else {}
    )
    entry = {**before, **counts, "conditions": [*subset_condition.conditions]}
    return {field: value for field, value in entry.items() if value}


def _conditions(state: UnitedDeploymentState, *, provisioned: bool) -> Conditions:
    """No failure is written here: the status is not written then.

    The Provisioned condition follows from existing subsets, too: the round that created them may have failed.
    """
    new_conditions = state.conditions
    if provisioned or state.subsets:
        new_conditions = conditions.with_true(new_conditions, CONDITION_PROVISIONED, state.now)
    new_conditions = conditions.with_true(new_conditions, CONDITION_SUBSETS_UPDATED, state.now)
    return conditions.without(new_conditions, CONDITION_FAILURE)


def _selector(state: UnitedDeploymentState) -> str:
    """The selector for autoscalers: without reserved pods."""
    selector = str(state.view.selector)
    return f"{selector},{LABEL_RESERVED_POD}=false" if state.view.schedule.reserves else selector
