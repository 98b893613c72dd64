"""Pods that must be with others, or apart from them. Upstream: plugins/interpodaffinity, filtering."""

from collections import Counter
from collections.abc import Iterable
from typing import Final

from mockube.controller_manager.scheduler.affinity_terms import Term
from mockube.controller_manager.scheduler.cluster import ClusterSnapshot
from mockube.controller_manager.scheduler.filters.single_node import Check, Refusal
from mockube.controller_manager.scheduler.nodeinfo import NodeInfo
from mockube.controller_manager.scheduler.podinfo import PodInfo

_NOT_WITH: Final = Refusal(("node(s) didn't match pod affinity rules",), is_final=True)
_NOT_APART: Final = Refusal(("node(s) didn't match pod anti-affinity rules",))
_OTHERS_APART: Final = Refusal(("node(s) didn't satisfy existing pods anti-affinity rules",))

Places = Counter[tuple[str, str]]
"""How many pods are where: by topology key and its value."""


def inter_pod_affinity(pod: PodInfo, world: ClusterSnapshot) -> Check | None:
    shunning = _places_of_those_who_shun(pod, world)
    if not pod.terms.affinity and not pod.terms.anti_affinity and not shunning:
        return None
    affinity_counts = _places_with_all(pod.terms.affinity, world)
    anti_affinity_counts = _places_with_any(pod.terms.anti_affinity, world)
    is_first = not affinity_counts and _means_itself(pod, world)

    def check(node: NodeInfo) -> Refusal | None:
        if not _is_with(pod.terms.affinity, node, affinity_counts, is_first=is_first):
            return _NOT_WITH
        if any(_place(one, node) in anti_affinity_counts for one in pod.terms.anti_affinity):
            return _NOT_APART
        return _OTHERS_APART if any(item in shunning for item in node.labels.items()) else None

    return check


def _is_with(terms: Iterable[Term], node: NodeInfo, counts: Places, *, is_first: bool) -> bool:
    """The first pod of a group with affinity to itself may run on any node with the topology labels."""
    return all(one.topology_key in node.labels and (is_first or _place(one, node) in counts) for one in terms)


def _means_itself(pod: PodInfo, world: ClusterSnapshot) -> bool:
    return all(one.means(pod.view, world.labels_of_namespace) for one in pod.terms.affinity)


def _places_with_all(terms: tuple[Term, ...], world: ClusterSnapshot) -> Places:
    """Where pods are that all terms mean."""
    places: Places = Counter()
    for node in world.nodes if terms else ():
        for other in node.pods.values():
            if all(one.means(other.view, world.labels_of_namespace) for one in terms):
                places.update(_places(terms, node))
    return places


def _places_with_any(terms: tuple[Term, ...], world: ClusterSnapshot) -> Places:
    places: Places = Counter()
    for node in world.nodes if terms else ():
        for other in node.pods.values():
            matching = [one for one in terms if one.means(other.view, world.labels_of_namespace)]
            places.update(_places(matching, node))
    return places


def _places_of_those_who_shun(pod: PodInfo, world: ClusterSnapshot) -> Places:
    places: Places = Counter()
    for node in world.nodes:
        for other in node.with_terms.values():
            matching = [
                one for one in other.terms.anti_affinity if one.means(pod.view, world.labels_of_namespace)
            ]
            places.update(_places(matching, node))
    return places


def _places(terms: Iterable[Term], node: NodeInfo) -> list[tuple[str, str]]:
    return [_place(one, node) for one in terms if one.topology_key in node.labels]


def _place(term: Term, node: NodeInfo) -> tuple[str, str]:
    return term.topology_key, node.labels.get(term.topology_key, "")
