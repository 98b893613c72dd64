"""Subsets that are Deployments: they have no partitions, and their pods are their ReplicaSets'."""

from collections.abc import Sequence
from typing import Final

from apimachinery import meta
from controller_manager.controllers.uniteddeployment.adapters.adapter import Adapter, pods_of
from controller_manager.indexes import BY_OWNER
from controller_manager.kinds import DEPLOYMENTS, REPLICA_SETS
from controller_manager.runtime.caches import Caches
from controller_manager.runtime.resource import Tree
from controller_manager.workloads.podview import PodView


def _pods(caches: Caches, workload: Tree) -> Sequence[PodView]:
    sets = caches.of(REPLICA_SETS).by_index(BY_OWNER, meta.uid(workload))
    return [pod for replica_set in sets for pod in pods_of(caches, replica_set)]


def _partition(_: Tree, __: Sequence[PodView]) -> int:
    return 0


def _partitioned(spec: Tree, _: int) -> Tree:
    return spec


def _unavailability(spec: Tree) -> tuple[str, ...]:
    recreates = (spec.get("strategy") or {}).get("type") == "Recreate"
    return () if recreates else ("strategy", "rollingUpdate", "maxUnavailable")


DEPLOYMENT_SUBSETS: Final = Adapter(
    type="Deployment",
    template="deploymentTemplate",
    resource=DEPLOYMENTS,
    partition=_partition,
    partitioned=_partitioned,
    unavailability=_unavailability,
    pods=_pods,
)
