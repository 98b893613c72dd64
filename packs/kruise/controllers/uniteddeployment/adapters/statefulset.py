"""Subsets with StatefulSets, built-in or OpenKruise's.

Pods from the partition on are updated, the highest ordinal first, and each waits for the previous one. A pod that never
becomes ready blocks its own replacement, so it is deleted. OpenKruise's partition is a number of pods; its update
strategy's type is not written.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from mockube.apimachinery import meta
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.kinds import STATEFUL_SETS
from mockube.client.podview import PodView
from mockube.packs.kruise.controllers.uniteddeployment.subset import LABEL_REVISION, Subset, revision_of
from mockube.packs.kruise.kinds import ADVANCED_STATEFUL_SETS

from .adapter import Adapter

_MAX_UNAVAILABLE = ("updateStrategy", "rollingUpdate", "maxUnavailable")


def strategy_of(spec: ReadOnlyTree) -> ReadOnlyTree:
    return spec.get("updateStrategy") or {}


def is_on_delete(spec: ReadOnlyTree) -> bool:
    return strategy_of(spec).get("type") == "OnDelete"


def partition(workload: ReadOnlyTree, pods: Sequence[PodView]) -> int:
    """Return the partition; with OnDelete, the number of pods of other revisions, which users have not deleted yet."""
    if is_on_delete(workload["spec"]):
        revisions = Counter(map(revision_of, pods))
        return len(pods) - revisions[meta.labels(workload).get(LABEL_REVISION, "")]
    return (strategy_of(workload["spec"]).get("rollingUpdate") or {}).get("partition") or 0


def with_partition(spec: ReadOnlyTree, partition: int) -> ReadOnlyTree:
    strategy = strategy_of(spec)
    rolling = {**(strategy.get("rollingUpdate") or {}), "partition": partition}
    return {**spec, "updateStrategy": {**strategy, "rollingUpdate": rolling}}


def max_unavailable_path(spec: ReadOnlyTree) -> tuple[str, ...]:
    return () if is_on_delete(spec) else _MAX_UNAVAILABLE


def _with_partition(spec: ReadOnlyTree, partition: int) -> ReadOnlyTree:
    if is_on_delete(spec):
        return spec
    return with_partition(
        {**spec, "updateStrategy": {**strategy_of(spec), "type": "RollingUpdate"}}, partition
    )


def _stuck_pods(subset: Subset, revision: str, partition: int) -> Iterator[PodView]:
    workload = subset.workload
    observed = (workload.get("status") or {}).get("observedGeneration") or 0
    if is_on_delete(workload["spec"]) or observed < meta.generation(workload):
        return  # until the set has observed the new template, it recreates a deleted pod from the old one
    for pod in subset.pods:
        ordinal = pod.key.name.rpartition("-")[2]
        is_old = revision_of(pod) != revision and not pod.is_ready and not pod.deleting
        if is_old and ordinal.isdecimal() and int(ordinal) >= partition:
            yield pod


STATEFUL_SET_SUBSETS: Final = Adapter(
    type="StatefulSet",
    template="statefulSetTemplate",
    resource=STATEFUL_SETS,
    partition=partition,
    with_partition=_with_partition,
    max_unavailable_path=max_unavailable_path,
    stuck_pods=_stuck_pods,
)


def _with_partition_of_advanced(spec: ReadOnlyTree, partition: int) -> ReadOnlyTree:
    return spec if is_on_delete(spec) else with_partition(spec, partition)


ADVANCED_STATEFUL_SET_SUBSETS: Final = Adapter(
    type="AdvancedStatefulSet",
    template="advancedStatefulSetTemplate",
    resource=ADVANCED_STATEFUL_SETS,
    partition=partition,
    with_partition=_with_partition_of_advanced,
    max_unavailable_path=max_unavailable_path,
)
