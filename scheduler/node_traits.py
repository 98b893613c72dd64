"""What tells nodes apart for the claims of one pod, besides what the pod's class knows. Pure.

Pods of a StatefulSet have a class together, but each has claims of its own. A filter of claims checks one node of all those of a group
that have the same traits. The traits for a filter are beside it, in `filters`.
"""

from collections.abc import Callable, Collection, Hashable
from typing import Final, NamedTuple

from msgspec import Struct

from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apimachinery.wellknown import LABEL_HOSTNAME
from mockube.client.component_helpers.node_selectors import required_hostnames, required_names

from .nodeinfo import NodeInfo


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


def traits_of_selector(required: ReadOnlyTree | None) -> NodeTraits:
    """Return the traits for a selector of nodes. Raises NeedsReference."""
    hosts = required_hostnames(required)
    if hosts is not None:
        return NodeTraits(hosts=hosts)
    names = required_names(required)
    if names is not None:
        return NodeTraits(names=names)
    return traits_of_labels(label_keys(required))


def label_keys(selector: ReadOnlyTree | None) -> Collection[str]:
    """Return the keys of the labels that a selector of nodes reads. Raises NeedsReference if it reads fields."""
    keys: set[str] = set()
    for term in (selector or {}).get("nodeSelectorTerms") or ():
        if term.get("matchFields"):
            raise NeedsReference
        keys.update(expression["key"] for expression in term.get("matchExpressions") or ())
    return keys


def traits_of_labels(keys: Collection[str]) -> NodeTraits:
    """Return the traits for what reads labels of nodes. Raises NeedsReference for the hostname."""
    if LABEL_HOSTNAME in keys:
        raise NeedsReference
    return NodeTraits(label_keys=frozenset(keys))
