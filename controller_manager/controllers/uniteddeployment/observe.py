"""Read from the caches what a UnitedDeployment is decided on: its workloads of all kinds, their pods, its history."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from apimachinery import meta
from controller_manager.controllers.uniteddeployment.adapters.adapter import Adapter
from controller_manager.controllers.uniteddeployment.adapters.rows import ADAPTERS
from controller_manager.controllers.uniteddeployment.names import LABEL_SUBSET_NAME
from controller_manager.controllers.uniteddeployment.subset import Subset
from controller_manager.controllers.uniteddeployment.views import UnitedView
from controller_manager.kinds import CONTROLLER_REVISIONS, UNITED_DEPLOYMENTS
from controller_manager.runtime.actions import Action
from controller_manager.runtime.caches import Caches
from controller_manager.runtime.resource import Tree
from controller_manager.workloads.claims import Claims, claims_of, settled


@dataclass(frozen=True, slots=True, kw_only=True)
class Belongings:
    workloads: Mapping[str, Claims[Tree]]
    """By the type of their adapter."""
    revisions: Claims[Tree]

    def of(self, adapter: Adapter) -> Sequence[Tree]:
        """Those that stay longest first, then by name."""
        owned = self.workloads[adapter.type].owned
        return sorted(owned, key=lambda workload: (meta.is_deleting(workload), meta.name(workload)))


def belongings(caches: Caches, view: UnitedView) -> Belongings:
    recorded = claims_of(caches, CONTROLLER_REVISIONS, view.object, view.selector)
    return Belongings(
        workloads={one.type: claims_of(caches, one.resource, view.object, view.selector) for one in ADAPTERS},
        # What it recorded stays its own, whatever its labels are: a template may have other ones than the selector's.
        revisions=replace(recorded, owned=(*recorded.owned, *recorded.strays), strays=()),
    )


def claimed(view: UnitedView, found: Belongings) -> tuple[Action, ...]:
    """What makes ownership as it should be; nothing, if it is."""
    owner = view.object
    taken = (settled(found.workloads[one.type], one.resource, owner, UNITED_DEPLOYMENTS) for one in ADAPTERS)
    history = settled(found.revisions, CONTROLLER_REVISIONS, owner, UNITED_DEPLOYMENTS)
    return (*history, *(action for actions in taken for action in actions))


def subset_of(caches: Caches, adapter: Adapter, workload: Tree) -> Subset:
    pods = tuple(adapter.pods(caches, workload))
    return Subset(workload=workload, pods=pods, partition=adapter.partition(workload, pods))


def nameless(workloads: Sequence[Tree]) -> str:
    """What is wrong with the first workload that belongs to no subset; empty if all do."""
    for workload in workloads:
        labels = meta.labels(workload)
        if not labels.get(LABEL_SUBSET_NAME):
            problem = (
                f"label {LABEL_SUBSET_NAME} has an empty value"
                if LABEL_SUBSET_NAME in labels
                else f"no label {LABEL_SUBSET_NAME} found"
            )
            named = f"{meta.namespace(workload)}/{meta.name(workload)}"
            return f"fail to get subSet name from label of subset {named}: {problem}"
    return ""


def duplicates(workloads: Sequence[Tree]) -> list[Tree]:
    """Of each subset all but the first; those that go already need not be told."""
    seen: set[str] = set()
    surplus = []
    for workload in workloads:
        name = meta.labels(workload)[LABEL_SUBSET_NAME]
        if name in seen and not meta.is_deleting(workload):
            surplus.append(workload)
        seen.add(name)
    return surplus
