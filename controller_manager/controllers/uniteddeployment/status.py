"""The status of a UnitedDeployment: counted on what was seen, never on what was just done."""

from collections.abc import Mapping, Sequence
from typing import Any

from apimachinery import meta
from controller_manager.controllers.uniteddeployment import conditions
from controller_manager.controllers.uniteddeployment.conditions import Conditions
from controller_manager.controllers.uniteddeployment.names import (
    CONDITION_FAILURE,
    CONDITION_PROVISIONED,
    CONDITION_SUBSETS_UPDATED,
    LABEL_RESERVED_POD,
)
from controller_manager.controllers.uniteddeployment.scene import Scene
from controller_manager.controllers.uniteddeployment.standing import Standing
from controller_manager.controllers.uniteddeployment.workload import Goal
from controller_manager.kinds import UNITED_DEPLOYMENTS
from controller_manager.runtime.actions import Update
from controller_manager.runtime.resource import Tree

_ALWAYS = ("replicas", "updatedReplicas", "currentRevision")
"""Told even if they are none."""


def told(
    scene: Scene, goals: Mapping[str, Goal], standings: Mapping[str, Standing], *, provisioned: bool
) -> tuple[Update, ...]:
    """The write of the status, if it says anything new."""
    status = _status(scene, goals, standings, provisioned=provisioned)
    if status == scene.view.status:
        return ()
    body = {**scene.view.object, "status": status}
    return (Update(resource=UNITED_DEPLOYMENTS, body=body, subresource="status"),)


def _status(
    scene: Scene, goals: Mapping[str, Goal], standings: Mapping[str, Standing], *, provisioned: bool
) -> dict[str, Any]:
    view, counts = scene.view, _counts(scene)
    status = {
        **view.status,
        "observedGeneration": meta.generation(view.object),
        **counts,
        "currentRevision": _current(scene, counts),
        "subsetReplicas": {name: goal.replicas for name, goal in goals.items()},
        "updateStatus": _update_status(scene, goals),
        "subsetStatuses": _of_subsets(scene, goals, standings),
        "conditions": [*_conditions(scene, provisioned=provisioned)],
        "labelSelector": _selector(scene),
    }
    return {field: value for field, value in status.items() if value or field in _ALWAYS}


def _counts(scene: Scene) -> dict[str, int]:
    subsets = scene.subsets.values()
    updated = [pod for one in subsets for pod in one.updated(scene.history.expected)]
    reserved = sum(scene.standings[name].reserved for name in scene.subsets.keys() & scene.standings.keys())
    return {
        "replicas": sum(subset.replicas for subset in subsets) - reserved,
        "readyReplicas": sum(subset.ready_replicas for subset in subsets),
        "updatedReplicas": len(updated),
        "updatedReadyReplicas": sum(pod.is_ready for pod in updated),
        "reservedPods": reserved,
    }


def _current(scene: Scene, counts: Mapping[str, int]) -> str:
    """The revision that all pods are of; the expected one as soon as enough of its pods are ready."""
    if counts["updatedReadyReplicas"] >= counts["replicas"]:
        return scene.history.expected
    return scene.view.status.get("currentRevision") or scene.history.current


def _update_status(scene: Scene, goals: Mapping[str, Goal]) -> Tree:
    kept = {name: goal.partition for name, goal in goals.items()}
    return {"updatedRevision": scene.history.expected, **({"currentPartitions": kept} if kept else {})}


def _of_subsets(scene: Scene, goals: Mapping[str, Goal], standings: Mapping[str, Standing]) -> Sequence[Tree]:
    before = {one["name"]: one for one in scene.view.status.get("subsetStatuses") or ()}
    return [
        _of_subset(scene, before.get(name) or {"name": name}, goals.get(name), standing)
        for name, standing in standings.items()
    ]


def _of_subset(scene: Scene, before: Tree, goal: Goal | None, standing: Standing) -> Tree:
    """Of a subset without a workload what was told last stays."""
    subset = scene.subsets.get(before["name"])
    counts = (
        {
            "replicas": subset.replicas,
            "readyReplicas": subset.ready_replicas,
            "partition": goal.partition if goal else 0,
            "reservedPods": standing.reserved,
        }
        if subset
        else {}
    )
    entry = {**before, **counts, "conditions": [*standing.conditions]}
    return {field: value for field, value in entry.items() if value}


def _conditions(scene: Scene, *, provisioned: bool) -> Conditions:
    """Nothing that failed is ever told here: then the status is not written.

    That there are subsets is told by whoever sees them: who made them may have come to no end.
    """
    said = scene.conditions
    if provisioned or scene.subsets:
        said = conditions.holding(said, CONDITION_PROVISIONED, scene.now)
    said = conditions.holding(said, CONDITION_SUBSETS_UPDATED, scene.now)
    return conditions.without(said, CONDITION_FAILURE)


def _selector(scene: Scene) -> str:
    """Which pods a scaler is to count: not those that others stand for."""
    selector = str(scene.view.selector)
    return f"{selector},{LABEL_RESERVED_POD}=false" if scene.view.schedule.reserves else selector
