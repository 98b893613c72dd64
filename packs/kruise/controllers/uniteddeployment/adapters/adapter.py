"""The interface between the UnitedDeployment controller and a kind of workload."""

from collections.abc import Callable, Iterable, Sequence

from msgspec import Struct

from mockube.apimachinery import meta
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.cache.store import Caches
from mockube.client.kinds import PODS
from mockube.client.podview import PodView
from mockube.client.resources import Resource
from mockube.controller_manager.workloads.ownership import BY_OWNER
from mockube.packs.kruise.controllers.uniteddeployment.subset import Subset


def pods_of(caches: Caches, workload: ReadOnlyTree) -> Sequence[PodView]:
    return caches.of(PODS).by_index(BY_OWNER, meta.uid(workload))


def no_stuck_pods(_: Subset, __: str, ___: int) -> Iterable[PodView]:
    return ()


class Adapter(Struct, frozen=True, kw_only=True):
    type: str
    """The name of the kind in messages."""
    template: str
    """The field of `spec.template` for this kind."""
    resource: Resource[ReadOnlyTree]
    partition: Callable[[ReadOnlyTree, Sequence[PodView]], int]
    """Returns the number of a workload's pods that are not updated."""
    with_partition: Callable[[ReadOnlyTree, int], ReadOnlyTree]
    """Returns a spec with a partition; unchanged if the kind or its update strategy has none."""
    max_unavailable_path: Callable[[ReadOnlyTree], tuple[str, ...]]
    """Returns the path of maxUnavailable in a spec; empty if the update strategy has none."""
    pods: Callable[[Caches, ReadOnlyTree], Sequence[PodView]] = pods_of
    stuck_pods: Callable[[Subset, str, int], Iterable[PodView]] = no_stuck_pods
    """Returns the pods of another revision than this one that will never be replaced, given the partition."""
