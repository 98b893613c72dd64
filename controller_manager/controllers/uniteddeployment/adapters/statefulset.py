"""Subsets that are StatefulSets.

Their pods from the partition on are updated, the highest first, and each waits for the one before: a pod that never
becomes ready blocks its own replacement, so it is taken away.
"""

from collections.abc import Iterator
from typing import Final

from apimachinery import meta
from controller_manager.controllers.uniteddeployment.adapters import ordinals
from controller_manager.controllers.uniteddeployment.adapters.adapter import Adapter
from controller_manager.controllers.uniteddeployment.subset import Subset, revision_of
from controller_manager.kinds import STATEFUL_SETS
from controller_manager.runtime.resource import Tree
from controller_manager.workloads.podview import PodView


def _partitioned(spec: Tree, kept: int) -> Tree:
    if ordinals.is_on_delete(spec):
        return spec
    return ordinals.with_partition(
        {**spec, "updateStrategy": {**ordinals.strategy_of(spec), "type": "RollingUpdate"}}, kept
    )


def _stuck(subset: Subset, revision: str, kept: int) -> Iterator[PodView]:
    workload = subset.workload
    observed = (workload.get("status") or {}).get("observedGeneration") or 0
    if ordinals.is_on_delete(workload["spec"]) or observed < meta.generation(workload):
        return  # taken away before the set knows the new template, it would come back as it was
    for pod in subset.pods:
        ordinal = pod.key.name.rpartition("-")[2]
        is_old = revision_of(pod) != revision and not pod.is_ready and not pod.deleting
        if is_old and ordinal.isdecimal() and int(ordinal) >= kept:
            yield pod


STATEFUL_SET_SUBSETS: Final = Adapter(
    type="StatefulSet",
    template="statefulSetTemplate",
    resource=STATEFUL_SETS,
    partition=ordinals.partition,
    partitioned=_partitioned,
    unavailability=ordinals.unavailability,
    stuck=_stuck,
)
