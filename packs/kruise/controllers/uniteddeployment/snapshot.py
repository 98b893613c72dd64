"""What one reconciliation of a UnitedDeployment reads from the caches: workloads, pods and revisions."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from mockube.apimachinery import conditions as conditions_of
from mockube.apimachinery import meta
from mockube.apimachinery.conditions import Conditions
from mockube.apimachinery.timestamps import format_time
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.cache.store import Caches
from mockube.client.kinds import CONTROLLER_REVISIONS
from mockube.controller_manager.control.actions import Action
from mockube.controller_manager.workloads.ownership import (
    OwnedObjects,
    adoption_and_release_actions,
    owned_objects,
)
from mockube.packs.kruise.kinds import UNITED_DEPLOYMENTS

from . import revision
from .adapters import ADAPTERS
from .adapters.adapter import Adapter
from .rescheduling import SubsetCondition, subset_conditions
from .revision import History
from .spec import UnitedView
from .subset import CONDITION_UPDATED, LABEL_SUBSET_NAME, Subset


class Snapshot(Struct, frozen=True, kw_only=True):
    view: UnitedView
    history: History
    subsets: Mapping[str, Subset]
    """The subsets that have a workload, by name."""
    other_workloads: Sequence[tuple[Adapter, Sequence[ReadOnlyTree]]]
    """The workloads of other kinds than the template's, by adapter."""
    conditions: Conditions
    """The UnitedDeployment's conditions, including that of the present revision."""
    subset_conditions: Mapping[str, SubsetCondition]
    """The conditions of each subset in the status or in the spec."""
    now: datetime


class OwnedResources(Struct, frozen=True, kw_only=True):
    workloads: Mapping[str, OwnedObjects[ReadOnlyTree]]
    """The workloads by the type of their adapter."""
    revisions: OwnedObjects[ReadOnlyTree]

    def of(self, adapter: Adapter) -> Sequence[ReadOnlyTree]:
        """Return the workloads of a kind: those that are not being deleted first, then by name."""
        owned = self.workloads[adapter.type].owned
        return sorted(owned, key=lambda workload: (meta.is_deleting(workload), meta.name(workload)))


def owned_by(caches: Caches, view: UnitedView) -> OwnedResources:
    owned_revisions = owned_objects(caches, CONTROLLER_REVISIONS, view.object, view.selector)
    return OwnedResources(
        workloads={
            adapter.type: owned_objects(caches, adapter.resource, view.object, view.selector)
            for adapter in ADAPTERS
        },
        # Revisions are not released: they have the template's labels, which the selector may not match.
        revisions=replace(
            owned_revisions, owned=(*owned_revisions.owned, *owned_revisions.to_release), to_release=()
        ),
    )


def ownership_actions(view: UnitedView, owned: OwnedResources) -> tuple[Action, ...]:
    """Return the actions that adopt and release workloads and revisions."""
    owner = view.object
    by_adapter = (
        adoption_and_release_actions(
            owned.workloads[adapter.type], adapter.resource, owner, UNITED_DEPLOYMENTS
        )
        for adapter in ADAPTERS
    )
    history = adoption_and_release_actions(owned.revisions, CONTROLLER_REVISIONS, owner, UNITED_DEPLOYMENTS)
    return (*history, *(action for actions in by_adapter for action in actions))


def _subset_of(caches: Caches, adapter: Adapter, workload: ReadOnlyTree) -> Subset:
    pods = tuple(adapter.pods(caches, workload))
    return Subset(workload=workload, pods=pods, partition=adapter.partition(workload, pods))


def unlabelled_problem(workloads: Sequence[ReadOnlyTree]) -> str:
    """Return a message about the first workload without the label of a subset; empty if all have it."""
    for workload in workloads:
        labels = meta.labels(workload)
        if not labels.get(LABEL_SUBSET_NAME):
            problem = (
                f"label {LABEL_SUBSET_NAME} has an empty value"
                if LABEL_SUBSET_NAME in labels
                else f"no label {LABEL_SUBSET_NAME} found"
            )
            name = meta.namespaced_name(workload)
            return f"fail to get subSet name from label of subset {name}: {problem}"
    return ""


def duplicates(workloads: Sequence[ReadOnlyTree]) -> list[ReadOnlyTree]:
    """Return the workloads of each subset after the first one, except those that are being deleted."""
    seen: set[str] = set()
    surplus = []
    for workload in workloads:
        name = meta.labels(workload)[LABEL_SUBSET_NAME]
        if name in seen and not meta.is_deleting(workload):
            surplus.append(workload)
        seen.add(name)
    return surplus


def observe(caches: Caches, view: UnitedView, owned: OwnedResources, now: datetime) -> Snapshot:
    """Read what the plan depends on. No workload is without the label of its subset."""
    history = revision.sync_revisions(caches, view, owned.revisions.owned)
    subsets = [_subset_of(caches, view.adapter, workload) for workload in owned.of(view.adapter)]
    # The first workload of a name counts; the others are being deleted already.
    by_name = {subset.name: subset for subset in reversed(subsets)}
    present = _set_updated_condition(
        view.status.get("conditions") or (), history.current, history.expected, now
    )
    return Snapshot(
        view=view,
        history=history,
        subsets=by_name,
        other_workloads=[(other, owned.of(other)) for other in ADAPTERS if other is not view.adapter],
        conditions=present,
        subset_conditions=subset_conditions(view, by_name, present, history.expected, now),
        now=now,
    )


_REVISION_UPDATED: Final = ("UnitedDeploymentRevisionUpdated", "updated to revision {}")
_REVISION_UPDATING: Final = ("UnitedDeploymentRevisionUpdating", "updating to revision {}")


def _set_updated_condition(conditions: Conditions, current: str, expected: str, now: datetime) -> Conditions:
    """Set the condition that shows whether all pods have the expected revision.

    Its message changes only with its status.
    """
    status, (reason, message) = (
        ("True", _REVISION_UPDATED) if current == expected else ("False", _REVISION_UPDATING)
    )
    old = conditions_of.find(conditions, CONDITION_UPDATED)
    if old is not None and old["status"] == status:
        return conditions
    condition = {
        "type": CONDITION_UPDATED,
        "status": status,
        "lastTransitionTime": format_time(now),
        "reason": reason,
        "message": message.format(expected),
    }
    return [*conditions_of.without(conditions, CONDITION_UPDATED), condition]
