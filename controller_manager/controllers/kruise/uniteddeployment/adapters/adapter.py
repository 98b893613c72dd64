"""What a kind of workload is to the UnitedDeployment controller: its row, and the few questions that it answers."""

from collections.abc import Callable, Iterable, Sequence

from msgspec import Struct

from mockube.apimachinery import meta
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.controller_manager.cache.store import Caches
from mockube.controller_manager.client.kinds import PODS
from mockube.controller_manager.client.podview import PodView
from mockube.controller_manager.client.resources import Resource
from mockube.controller_manager.controllers.kruise.uniteddeployment.subset import Subset
from mockube.controller_manager.workloads.ownership import BY_OWNER


def pods_of(caches: Caches, workload: ReadOnlyTree) -> Sequence[PodView]:
    return caches.of(PODS).by_index(BY_OWNER, meta.uid(workload))


def no_pending_pods(_: Subset, __: str, ___: int) -> Iterable[PodView]:
    return ()


class Adapter(Struct, frozen=True, kw_only=True):
    type: str
    """What messages call a subset of this kind."""
    template: str
    """The field of `spec.template` for this kind."""
    resource: Resource[ReadOnlyTree]
    partition: Callable[[ReadOnlyTree, Sequence[PodView]], int]
    """How many pods of a workload are kept as they are."""
    partitioned: Callable[[ReadOnlyTree, int], ReadOnlyTree]
    """The spec with a partition; unchanged where the kind, or the way in which it updates, has none."""
    unavailability: Callable[[ReadOnlyTree], tuple[str, ...]]
    """The path of maxUnavailable in a spec; empty where its update strategy has none."""
    pods: Callable[[Caches, ReadOnlyTree], Sequence[PodView]] = pods_of
    stuck: Callable[[Subset, str, int], Iterable[PodView]] = no_pending_pods
    """Pods of another revision than this one that will never be replaced, given the partition."""
