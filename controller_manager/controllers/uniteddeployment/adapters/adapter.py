"""What a kind of workload is to the UnitedDeployment controller: its row, and the few questions that it answers."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from apimachinery import meta
from controller_manager.controllers.uniteddeployment.subset import Subset
from controller_manager.indexes import BY_OWNER
from controller_manager.kinds import PODS
from controller_manager.runtime.caches import Caches
from controller_manager.runtime.resource import Resource, Tree
from controller_manager.workloads.podview import PodView


def pods_of(caches: Caches, workload: Tree) -> Sequence[PodView]:
    return caches.of(PODS).by_index(BY_OWNER, meta.uid(workload))


def none_stuck(_: Subset, __: str, ___: int) -> Iterable[PodView]:
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Adapter:
    type: str
    """What messages call a subset of this kind."""
    template: str
    """The field of `spec.template` that asks for this kind."""
    resource: Resource[Tree]
    partition: Callable[[Tree, Sequence[PodView]], int]
    """How many pods of a workload are kept as they are."""
    partitioned: Callable[[Tree, int], Tree]
    """The spec with a partition; unchanged where the kind, or the way in which it updates, has none."""
    unavailability: Callable[[Tree], tuple[str, ...]]
    """Where a spec says how many pods may be missing in an update; empty where its way to update does not ask that."""
    pods: Callable[[Caches, Tree], Sequence[PodView]] = pods_of
    stuck: Callable[[Subset, str, int], Iterable[PodView]] = none_stuck
    """Pods of another revision than this one that will never be replaced, given the partition."""
