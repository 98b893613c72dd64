"""What of nodes the volumes of one pod tell apart, besides what the pod's class knows. Pure.

Pods of a StatefulSet have a class together, but each has claims of its own. A filter of claims is asked once for all nodes of a group, if
these have the same traits.
"""

from collections.abc import Callable, Collection, Hashable, Iterator
from typing import Final, NamedTuple

from msgspec import Struct

from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apimachinery.wellknown import LABEL_HOSTNAME
from mockube.controller_manager.workloads.node_selectors import required_hostnames, required_names

from .cluster import ClusterSnapshot
from .nodeinfo import NodeInfo
from .podinfo import PodInfo
from .volumes import (
    PodVolumeClaims,
    Storage,
    claims_of,
    required_affinity,
    selected_node,
    topology_selectors,
)

_MAX_CANDIDATES: Final = 100
"""With more candidates for a claim, looking at the labels that they select costs more than looking at nodes."""


class NeedsReference(Exception):
    """Nodes that are alike for a class may differ for the pod in more than labels: the reference has to judge each."""


class NodePart(NamedTuple):
    """What is not in the labels of nodes: their devices, or how many volumes they can attach."""

    key: Hashable
    """Two parts with the same key are the same."""
    of: Callable[[NodeInfo], Hashable]


class NodeTraits(Struct, frozen=True, kw_only=True):
    """Nodes of one group with the same values of these labels, and the same parts, are alike for a pod."""

    label_keys: frozenset[str] = frozenset()
    parts: tuple[NodePart, ...] = ()
    hosts: frozenset[str] | None = None
    """The hostname labels of the only nodes that can be feasible; None if others can be, too."""
    names: frozenset[str] | None = None
    """The names of the only nodes that can be feasible."""

    def join(self, other: "NodeTraits") -> "NodeTraits":
        return NodeTraits(
            label_keys=self.label_keys | other.label_keys,
            parts=(*self.parts, *(part for part in other.parts if part.key not in self._keys_of_parts)),
            hosts=_common(self.hosts, other.hosts),
            names=_common(self.names, other.names),
        )

    @property
    def key(self) -> Hashable:
        """Pods whose traits have the same key can have a class together."""
        return self.label_keys, self._keys_of_parts

    @property
    def _keys_of_parts(self) -> tuple[Hashable, ...]:
        return tuple(part.key for part in self.parts)

    def of(self, node: NodeInfo) -> tuple[Hashable, ...]:
        return (*map(node.labels.get, sorted(self.label_keys)), *self.parts_of(node))

    def parts_of(self, node: NodeInfo) -> tuple[Hashable, ...]:
        return tuple(part.of(node) for part in self.parts)


NO_TRAITS: Final = NodeTraits()


def _common(one: frozenset[str] | None, other: frozenset[str] | None) -> frozenset[str] | None:
    if one is None or other is None:
        return other if one is None else one
    return one & other


def volume_binding_traits(pod: PodInfo, snapshot: ClusterSnapshot) -> NodeTraits:
    """Return the traits for the claims of a pod that has some. Raises NeedsReference."""
    claims = claims_of(pod, snapshot.storage)
    assert not isinstance(claims, str)  # the filter has rejected all nodes then
    traits = NO_TRAITS
    for claim_traits in _of_claims(claims, snapshot.storage):
        traits = traits.join(claim_traits)
    return traits


def _of_claims(claims: PodVolumeClaims, storage: Storage) -> Iterator[NodeTraits]:
    for claim in claims.bound:
        volume = storage.volumes.get("", claim["spec"]["volumeName"])
        if volume is not None:
            yield traits_of_selector(required_affinity(volume))
    for claim in claims.unbound:
        name = selected_node(claim, storage)
        if name is not None:
            yield NodeTraits(names=frozenset({name}))
        else:
            yield _of_unbound(claims, claim, storage)


def _of_unbound(claims: PodVolumeClaims, claim: ReadOnlyTree, storage: Storage) -> NodeTraits:
    candidates = claims.candidates(claim, storage)
    if candidates.has_hosts or len(candidates.of_many_hosts) > _MAX_CANDIDATES:
        raise NeedsReference
    keys: set[str] = set()
    for volume in candidates.of_many_hosts:
        keys |= _label_keys(required_affinity(volume))
    for selector in topology_selectors(claim, storage):
        keys.update(_keys_of_expressions(selector))
    return NodeTraits(label_keys=_without_names(keys))


def traits_of_selector(required: ReadOnlyTree | None) -> NodeTraits:
    """Return the traits for a selector of nodes. Raises NeedsReference."""
    hosts = required_hostnames(required)
    if hosts is not None:
        return NodeTraits(hosts=hosts)
    names = required_names(required)
    if names is not None:
        return NodeTraits(names=names)
    return NodeTraits(label_keys=_without_names(_label_keys(required)))


def _label_keys(required: ReadOnlyTree | None) -> set[str]:
    keys: set[str] = set()
    for term in (required or {}).get("nodeSelectorTerms") or ():
        if term.get("matchFields"):
            raise NeedsReference
        keys.update(expression["key"] for expression in term.get("matchExpressions") or ())
    return keys


def _keys_of_expressions(selector: ReadOnlyTree) -> Iterator[str]:
    """Yield the keys of a label selector or of a term of allowedTopologies."""
    yield from selector.get("matchLabels") or ()
    for name in ("matchExpressions", "matchLabelExpressions"):
        yield from (expression["key"] for expression in selector.get(name) or ())


def _without_names(keys: Collection[str]) -> frozenset[str]:
    if LABEL_HOSTNAME in keys:
        raise NeedsReference
    return frozenset(keys)
