"""Score nodes by the preferred node affinity of a pod.

Upstream: plugins/nodeaffinity.
"""

from collections.abc import Iterator, Sequence

from mockube.apimachinery.errors import FieldError, aggregate
from mockube.apimachinery.paths import ROOT
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.component_helpers.node_selectors import check_expression, matches_term
from mockube.scheduler.cluster import ClusterSnapshot
from mockube.scheduler.nodeinfo import NodeInfo
from mockube.scheduler.plugin_failure import PluginFailure
from mockube.scheduler.podinfo import PodInfo

from .score import NothingCounted, normalize_scores, score_nodes


def node_affinity_score(
    pod: PodInfo, snapshot: ClusterSnapshot, nodes: Sequence[NodeInfo], added: Sequence[ReadOnlyTree] = ()
) -> Sequence[int] | None:
    """Prefer nodes that match the preferences of the pod, and those that are `added` to all pods'."""
    preference = grouped_node_affinity(pod, snapshot, added)
    return None if preference is None else score_nodes(preference, nodes, snapshot)


class PreferredNodeAffinity(NothingCounted):
    """The part of a node is the sum of the weights of the terms that match it."""

    def __init__(self, terms: Sequence[ReadOnlyTree]) -> None:
        self._terms = terms
        self._errors = [*_errors_of(terms)]

    def part(self, node: NodeInfo, _: None) -> int:
        return sum(term["weight"] for term in self._terms if matches_term(term["preference"], node.node))

    def scores(self, parts: Sequence[int], _: Sequence[int], __: ClusterSnapshot) -> list[int]:
        if self._errors:
            raise PluginFailure(f'running PreScore plugin "NodeAffinity": {aggregate(self._errors)}')
        return normalize_scores(parts)


def _errors_of(terms: Sequence[ReadOnlyTree]) -> Iterator[FieldError]:
    for number, term in enumerate(terms):
        path = ROOT.index(number).child("matchExpressions")
        for index, one in enumerate(term["preference"].get("matchExpressions") or ()):
            yield from check_expression(
                one["key"], one["operator"], one.get("values") or (), path.index(index)
            )


def grouped_node_affinity(
    pod: PodInfo, _: ClusterSnapshot, added: Sequence[ReadOnlyTree] = ()
) -> PreferredNodeAffinity | None:
    affinity = pod.affinity.get("nodeAffinity") or {}
    terms = [*added, *(affinity.get("preferredDuringSchedulingIgnoredDuringExecution") or ())]
    return PreferredNodeAffinity(terms) if terms else None
