"""The status of a UnitedDeployment. It describes observed workloads and pods, not planned ones."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from mockube.apimachinery import conditions as conditions_of
from mockube.apimachinery import meta
from mockube.apimachinery.conditions import Conditions
from mockube.apimachinery.timestamps import format_time
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.controller_manager.control.actions import Update
from mockube.packs.kruise.kinds import UNITED_DEPLOYMENTS

from .rescheduling import SubsetCondition
from .snapshot import Snapshot
from .subset import CONDITION_FAILURE, CONDITION_PROVISIONED, CONDITION_SUBSETS_UPDATED, LABEL_RESERVED_POD
from .workload import DesiredSubset

_REQUIRED_FIELDS = ("replicas", "updatedReplicas", "currentRevision")
"""The fields that are written even if they are 0 or empty."""


def status_update(
    snapshot: Snapshot,
    desired_subsets: Mapping[str, DesiredSubset],
    subset_conditions: Mapping[str, SubsetCondition],
    *,
    provisioned: bool,
) -> tuple[Update, ...]:
    """Return the update of the status; none if the status is the same."""
    status = _status(snapshot, desired_subsets, subset_conditions, provisioned=provisioned)
    if status == snapshot.view.status:
        return ()
    body = {**snapshot.view.object, "status": status}
    return (Update(resource=UNITED_DEPLOYMENTS, body=body, subresource="status"),)


def _status(
    snapshot: Snapshot,
    desired_subsets: Mapping[str, DesiredSubset],
    subset_conditions: Mapping[str, SubsetCondition],
    *,
    provisioned: bool,
) -> dict[str, Any]:
    view, counts = snapshot.view, _counts(snapshot)
    status = {
        **view.status,
        "observedGeneration": meta.generation(view.object),
        **counts,
        "currentRevision": _current_revision(snapshot, counts),
        "subsetReplicas": {name: desired.replicas for name, desired in desired_subsets.items()},
        "updateStatus": _update_status(snapshot, desired_subsets),
        "subsetStatuses": _subset_statuses(snapshot, desired_subsets, subset_conditions),
        "conditions": [*_conditions(snapshot, provisioned=provisioned)],
        "labelSelector": _selector(snapshot),
    }
    return {field: value for field, value in status.items() if value or field in _REQUIRED_FIELDS}


def _counts(snapshot: Snapshot) -> dict[str, int]:
    subsets = snapshot.subsets.values()
    updated = [pod for subset in subsets for pod in subset.pods_of_revision(snapshot.history.expected)]
    reserved = sum(
        snapshot.subset_conditions[name].reserved
        for name in snapshot.subsets.keys() & snapshot.subset_conditions.keys()
    )
    return {
        "replicas": sum(subset.replicas for subset in subsets) - reserved,
        "readyReplicas": sum(subset.ready_replicas for subset in subsets),
        "updatedReplicas": len(updated),
        "updatedReadyReplicas": sum(pod.is_ready for pod in updated),
        "reservedPods": reserved,
    }


def _current_revision(snapshot: Snapshot, counts: Mapping[str, int]) -> str:
    """Return the last revision of all pods: the expected one as soon as enough of its pods are ready."""
    if counts["updatedReadyReplicas"] >= counts["replicas"]:
        return snapshot.history.expected
    return snapshot.view.status.get("currentRevision") or snapshot.history.current


def _update_status(snapshot: Snapshot, desired_subsets: Mapping[str, DesiredSubset]) -> ReadOnlyTree:
    current = {name: desired.partition for name, desired in desired_subsets.items()}
    return {
        "updatedRevision": snapshot.history.expected,
        **({"currentPartitions": current} if current else {}),
    }


def _subset_statuses(
    snapshot: Snapshot,
    desired_subsets: Mapping[str, DesiredSubset],
    subset_conditions: Mapping[str, SubsetCondition],
) -> Sequence[ReadOnlyTree]:
    previous = {entry["name"]: entry for entry in snapshot.view.status.get("subsetStatuses") or ()}
    return [
        _subset_status(
            snapshot, previous.get(name) or {"name": name}, desired_subsets.get(name), subset_condition
        )
        for name, subset_condition in subset_conditions.items()
    ]


def _subset_status(
    snapshot: Snapshot,
    previous: ReadOnlyTree,
    desired: DesiredSubset | None,
    subset_condition: SubsetCondition,
) -> ReadOnlyTree:
    """Return the status of a subset. Without a workload it keeps its last status."""
    subset = snapshot.subsets.get(previous["name"])
    counts = (
        {
            "replicas": subset.replicas,
            "readyReplicas": subset.ready_replicas,
            "partition": desired.partition if desired else 0,
            "reservedPods": subset_condition.reserved,
        }
        if subset
        else {}
    )
    entry = {**previous, **counts, "conditions": [*subset_condition.conditions]}
    return {field: value for field, value in entry.items() if value}


def _selector(snapshot: Snapshot) -> str:
    """Return the selector for autoscalers, which excludes reserved pods."""
    selector = str(snapshot.view.selector)
    return f"{selector},{LABEL_RESERVED_POD}=false" if snapshot.view.schedule.reserves else selector


# --- conditions of a UnitedDeployment


def _set_true(conditions: Conditions, condition_type: str, now: datetime) -> Conditions:
    """Set a condition to True, without a reason."""
    old = conditions_of.find(conditions, condition_type)
    if old is not None and old["status"] == "True" and not old.get("reason"):
        return conditions
    since = old["lastTransitionTime"] if old is not None and old["status"] == "True" else format_time(now)
    condition = {"type": condition_type, "status": "True", "lastTransitionTime": since}
    return [*conditions_of.without(conditions, condition_type), condition]


def _conditions(snapshot: Snapshot, *, provisioned: bool) -> Conditions:
    """Return the conditions of a successful reconciliation: after a failure the status is not written.

    SubsetProvisioned is set if subsets exist, too: the reconciliation that created them may have failed.
    """
    new_conditions = snapshot.conditions
    if provisioned or snapshot.subsets:
        new_conditions = _set_true(new_conditions, CONDITION_PROVISIONED, snapshot.now)
    new_conditions = _set_true(new_conditions, CONDITION_SUBSETS_UPDATED, snapshot.now)
    return conditions_of.without(new_conditions, CONDITION_FAILURE)
