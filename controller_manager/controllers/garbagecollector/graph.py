"""The graph of owners and dependents, built from watch events.

It is pure and synchronous. An owner without a watch event yet is a virtual node in the graph, until it is observed or
found to be absent. Each step returns the nodes that have to be processed; the collector processes them.
"""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final

from msgspec import Struct, field

from mockube.apimachinery import meta
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.resources import Resource

from .references import ObjectIdentity, OwnerReference, owners_of, waits_for_dependents, waits_for_orphans

_NO_NODES: Final[Mapping[str, "Node"]] = MappingProxyType({})
"""Most nodes have no dependents, and need no dict."""
MAX_OWNERS: Final = 10_000
"""The number of remembered owners; then they are forgotten."""


class Node(Struct, eq=False):
    identity: ObjectIdentity
    owners: tuple[OwnerReference, ...] = ()
    dependents: Mapping[str, "Node"] = _NO_NODES
    """The dependents by uid."""
    is_deleting: bool = False
    waits_for_dependents: bool = False
    """Whether it is being deleted in the foreground. This is never reset: only the collector removes the finalizer."""
    is_virtual: bool = False
    number: int = 0
    """How many nodes the graph had had with this one."""

    @property
    def uid(self) -> str:
        return self.identity.uid

    def add_dependent(self, node: "Node") -> None:
        if not isinstance(self.dependents, dict):
            self.dependents = {}
        self.dependents[node.uid] = node

    def remove_dependent(self, uid: str) -> None:
        if isinstance(self.dependents, dict):
            self.dependents.pop(uid, None)

    @property
    def blocking_dependents(self) -> list["Node"]:
        return [
            dependent
            for dependent in self.dependents.values()
            if any(owner.uid == self.uid and owner.blocks for owner in dependent.owners)
        ]


class GraphStep(Struct):
    """The nodes to process after a step: nodes to delete if their owners are absent, and owners with dependents to
    orphan.
    """

    delete: list[Node] = field(default_factory=list)
    orphan: list[Node] = field(default_factory=list)


class Graph:
    def __init__(self) -> None:
        self._nodes: dict[str, Node] = {}
        self.newest = 0
        """The number of the newest node."""
        self._owners: dict[tuple[OwnerReference, ...], tuple[OwnerReference, ...]] = {}
        """Owners of objects: many have the same, which take memory once."""

    def __len__(self) -> int:
        return len(self._nodes)

    def node(self, uid: str) -> Node | None:
        return self._nodes.get(uid)

    def observe(self, resource: Resource[ReadOnlyTree], obj: ReadOnlyTree) -> GraphStep:
        """Add or update the node of an object from a watch event."""
        node = self._nodes.get(meta.uid(obj))
        return self._add_node(resource, obj) if node is None else self._update_node(node, resource, obj)

    def remove(self, uid: str) -> GraphStep:
        """Remove the node of an object that is deleted according to a watch event or the server's response."""
        step = GraphStep()
        node = self._nodes.pop(uid, None)
        if node is None:
            return step
        self._remove_dependent(node, node.owners)
        step.delete += node.dependents.values()
        step.delete += self._waiting_owners(node.owners)
        return step

    # --- steps

    def _add_node(self, resource: Resource[ReadOnlyTree], obj: ReadOnlyTree) -> GraphStep:
        step = GraphStep()
        node = Node(identity=identity_of(resource, obj), owners=self._owners_of(obj))
        self._insert(node)
        self._add_dependent(node, node.owners, step)
        self._update_deletion(node, obj, step)
        return step

    def _update_node(self, node: Node, resource: Resource[ReadOnlyTree], obj: ReadOnlyTree) -> GraphStep:
        step = GraphStep()
        if node.is_virtual:
            self._set_real(node, identity_of(resource, obj), step)
        owners = self._owners_of(obj)
        if owners != node.owners:
            self._update_owners(node, owners, step)
        self._update_deletion(node, obj, step)
        return step

    def _update_owners(self, node: Node, owners: tuple[OwnerReference, ...], step: GraphStep) -> None:
        old_owners, new_owners = {*node.owners}, {*owners}
        new_uids = {owner.uid for owner in new_owners}
        old_uids = {owner.uid for owner in old_owners}
        # An owner that waits for its dependents no longer has to wait for this one.
        unblocked = [owner for owner in old_owners - new_owners if owner.blocks]
        step.delete += self._waiting_owners(unblocked)
        node.owners = owners
        self._add_dependent(node, [owner for owner in new_owners if owner.uid not in old_uids], step)
        self._remove_dependent(node, [owner for owner in old_owners if owner.uid not in new_uids])

    def _set_real(self, node: Node, identity: ObjectIdentity, step: GraphStep) -> None:
        """Make a virtual node real. Dependents that refer to it with another namespace or kind have to be processed."""
        node.identity, node.is_virtual = identity, False
        step.delete += [
            dependent for dependent in node.dependents.values() if not _reference_matches(dependent, node)
        ]

    def _update_deletion(self, node: Node, obj: ReadOnlyTree, step: GraphStep) -> None:
        began = meta.is_deleting(obj) and not node.is_deleting
        node.is_deleting = node.is_deleting or began
        if began and waits_for_orphans(obj):
            step.orphan.append(node)
        if waits_for_dependents(obj) and not node.waits_for_dependents:
            node.waits_for_dependents = True
            step.delete += [*node.dependents.values(), node]

    def _owners_of(self, obj: ReadOnlyTree) -> tuple[OwnerReference, ...]:
        owners = owners_of(obj)
        if len(self._owners) >= MAX_OWNERS:
            self._owners.clear()
        return self._owners.setdefault(owners, owners) if owners else ()

    def _insert(self, node: Node) -> None:
        self.newest += 1
        node.number = self.newest
        self._nodes[node.uid] = node

    # --- edges

    def _add_dependent(self, node: Node, owners: Iterable[OwnerReference], step: GraphStep) -> None:
        for reference in owners:
            owner = self._nodes.get(reference.uid)
            if owner is None:
                owner = Node(identity=_owner_identity(reference, node.identity.namespace), is_virtual=True)
                self._insert(owner)
                step.delete.append(owner)
            owner.add_dependent(node)
            if owner.is_virtual:
                continue
            if owner.waits_for_dependents or not _reference_matches(node, owner):
                step.delete.append(node)

    def _remove_dependent(self, node: Node, owners: Iterable[OwnerReference]) -> None:
        for reference in owners:
            owner = self._nodes.get(reference.uid)
            if owner is None:
                continue
            owner.remove_dependent(node.uid)
            if owner.is_virtual and not owner.dependents:
                del self._nodes[owner.uid]

    def _waiting_owners(self, owners: Iterable[OwnerReference]) -> list[Node]:
        nodes = (self._nodes.get(owner.uid) for owner in owners)
        return [node for node in nodes if node is not None and node.waits_for_dependents]


def identity_of(resource: Resource[ReadOnlyTree], obj: ReadOnlyTree) -> ObjectIdentity:
    return ObjectIdentity(
        resource.api_version, resource.kind, meta.namespace(obj), meta.name(obj), meta.uid(obj)
    )


def _owner_identity(reference: OwnerReference, namespace: str) -> ObjectIdentity:
    """Return the identity of an owner, assuming its dependent's namespace."""
    return ObjectIdentity(reference.api_version, reference.kind, namespace, reference.name, reference.uid)


def _reference_matches(dependent: Node, owner: Node) -> bool:
    """Return whether a dependent's reference has the group, kind and name of its owner, and a possible namespace."""
    reference = next((candidate for candidate in dependent.owners if candidate.uid == owner.uid), None)
    if reference is None:
        return True
    api_version, kind, namespace, name, _ = owner.identity
    is_possible_namespace = namespace in ("", dependent.identity.namespace)
    is_same_group = _group(reference.api_version) == _group(api_version)
    return is_possible_namespace and is_same_group and reference.kind == kind and reference.name == name


def _group(api_version: str) -> str:
    return api_version.rpartition("/")[0]
