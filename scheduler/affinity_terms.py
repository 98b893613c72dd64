"""The terms of pod affinity and anti-affinity, and the pods that they match. Pure. Upstream: framework, AffinityTerm."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from msgspec import Struct

from mockube.apimachinery.labels import Selector, from_label_selector
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apimachinery.wellknown import LABEL_HOSTNAME
from mockube.client.podview import PodView

Labels = Mapping[str, str]
TopologyCounts = Counter[tuple[str, str]]
"""Numbers of pods, or weights of terms, by topology key and value."""
HOST: Final = (LABEL_HOSTNAME, "")
"""The topology key and value of a host whose name does not matter."""


class AffinityTerm(Struct, frozen=True, kw_only=True):
    """A term of pod affinity or anti-affinity."""

    topology_key: str
    selector: Selector
    namespaces: frozenset[str]
    namespace_selector: Selector | None
    """Selects further namespaces; None selects none, an empty selector all."""
    weight: int = 0
    """The weight of a preferred term; 0 for a required one."""

    def matches(self, pod: PodView, labels_of_namespace: Callable[[str], Labels]) -> bool:
        namespace = pod.key.namespace
        is_in_namespaces = namespace in self.namespaces or (
            self.namespace_selector is not None
            and self.namespace_selector.matches(labels_of_namespace(namespace))
        )
        return is_in_namespaces and self.selector.matches(pod.labels)


class AffinityTerms(Struct, frozen=True, kw_only=True):
    """The required and preferred terms of one pod's affinity and anti-affinity."""

    affinity: tuple[AffinityTerm, ...] = ()
    anti_affinity: tuple[AffinityTerm, ...] = ()
    preferred_affinity: tuple[AffinityTerm, ...] = ()
    preferred_anti_affinity: tuple[AffinityTerm, ...] = ()

    @property
    def topology_keys(self) -> list[str]:
        """The keys of all terms, as often as there are terms."""
        terms = (*self.affinity, *self.anti_affinity, *self.preferred_affinity, *self.preferred_anti_affinity)
        return [term.topology_key for term in terms]

    def __bool__(self) -> bool:
        return bool(
            self.affinity or self.anti_affinity or self.preferred_affinity or self.preferred_anti_affinity
        )


NO_TERMS = AffinityTerms()


def terms_of(pod: PodView) -> AffinityTerms:
    affinity = pod.object["spec"].get("affinity") or {}
    pod_affinity, pod_anti_affinity = affinity.get("podAffinity") or {}, affinity.get("podAntiAffinity") or {}
    if not pod_affinity and not pod_anti_affinity:
        return NO_TERMS
    namespace = pod.key.namespace
    return AffinityTerms(
        affinity=_required_terms(pod_affinity, namespace),
        anti_affinity=_required_terms(pod_anti_affinity, namespace),
        preferred_affinity=_preferred_terms(pod_affinity, namespace),
        preferred_anti_affinity=_preferred_terms(pod_anti_affinity, namespace),
    )


def _required_terms(affinity: ReadOnlyTree, namespace: str) -> tuple[AffinityTerm, ...]:
    terms: Iterable[ReadOnlyTree] = affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or ()
    return tuple(_term(term, namespace) for term in terms)


def _preferred_terms(affinity: ReadOnlyTree, namespace: str) -> tuple[AffinityTerm, ...]:
    terms: Iterable[ReadOnlyTree] = affinity.get("preferredDuringSchedulingIgnoredDuringExecution") or ()
    return tuple(_term(term["podAffinityTerm"], namespace, term["weight"]) for term in terms)


def _term(term: ReadOnlyTree, namespace: str, weight: int = 0) -> AffinityTerm:
    explicit_namespaces = frozenset(term.get("namespaces") or ())
    selector = term.get("namespaceSelector")
    default_namespaces = (
        frozenset() if explicit_namespaces or selector is not None else frozenset({namespace})
    )
    return AffinityTerm(
        topology_key=term["topologyKey"],
        selector=from_label_selector(term.get("labelSelector")),
        namespaces=explicit_namespaces | default_namespaces,
        namespace_selector=None if selector is None else from_label_selector(selector),
        weight=weight,
    )


def without_hostname(counts: TopologyCounts) -> TopologyCounts:
    """Return the counts of one node with those of its host, which is a domain of its own, under `HOST`."""
    return Counter({(HOST if pair[0] == LABEL_HOSTNAME else pair): count for pair, count in counts.items()})
