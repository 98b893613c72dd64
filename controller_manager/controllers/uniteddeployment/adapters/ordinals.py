"""What the two kinds of StatefulSets have in common: partitions, and how they update."""

from collections import Counter
from collections.abc import Sequence

from apimachinery import meta
from controller_manager.controllers.uniteddeployment.names import LABEL_REVISION
from controller_manager.controllers.uniteddeployment.subset import revision_of
from controller_manager.runtime.resource import Tree
from controller_manager.workloads.podview import PodView

_MAX_UNAVAILABLE = ("updateStrategy", "rollingUpdate", "maxUnavailable")


def strategy_of(spec: Tree) -> Tree:
    return spec.get("updateStrategy") or {}


def is_on_delete(spec: Tree) -> bool:
    return strategy_of(spec).get("type") == "OnDelete"


def partition(workload: Tree, pods: Sequence[PodView]) -> int:
    """Where only somebody's deletions replace pods, those that nobody has replaced yet."""
    if is_on_delete(workload["spec"]):
        revisions = Counter(map(revision_of, pods))
        return len(pods) - revisions[meta.labels(workload).get(LABEL_REVISION, "")]
    return (strategy_of(workload["spec"]).get("rollingUpdate") or {}).get("partition") or 0


def with_partition(spec: Tree, kept: int) -> Tree:
    strategy = strategy_of(spec)
    rolling = {**(strategy.get("rollingUpdate") or {}), "partition": kept}
    return {**spec, "updateStrategy": {**strategy, "rollingUpdate": rolling}}


def unavailability(spec: Tree) -> tuple[str, ...]:
    return () if is_on_delete(spec) else _MAX_UNAVAILABLE
