"""Subsets with Deployments: they have no partitions, and their ReplicaSets own the pods."""

from collections.abc import Sequence
from typing import Final

from mockube.apimachinery import meta
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.cache.store import Caches
from mockube.client.kinds import DEPLOYMENTS, REPLICA_SETS
from mockube.client.podview import PodView
from mockube.controller_manager.workloads.ownership import BY_OWNER

from .adapter import Adapter, pods_of


def _pods(caches: Caches, workload: ReadOnlyTree) -> Sequence[PodView]:
    sets = caches.of(REPLICA_SETS).by_index(BY_OWNER, meta.uid(workload))
    return [pod for replica_set in sets for pod in pods_of(caches, replica_set)]


def _partition(_: ReadOnlyTree, __: Sequence[PodView]) -> int:
    return 0


def _with_partition(spec: ReadOnlyTree, _: int) -> ReadOnlyTree:
    return spec


def _max_unavailable_path(spec: ReadOnlyTree) -> tuple[str, ...]:
    recreates = (spec.get("strategy") or {}).get("type") == "Recreate"
    return () if recreates else ("strategy", "rollingUpdate", "maxUnavailable")


DEPLOYMENT_SUBSETS: Final = Adapter(
    type="Deployment",
    template="deploymentTemplate",
    resource=DEPLOYMENTS,
    partition=_partition,
    with_partition=_with_partition,
    max_unavailable_path=_max_unavailable_path,
    pods=_pods,
)
