"""The graph of owners and dependents, as far as the watches have shown it.

Pure and synchronous. An owner that no watch has shown yet is a virtual node in the graph, until it is seen or found
to be absent. Each step returns the nodes to process because of it; the collector processes them.
"""

from collections.abc import Iterable

from msgspec import Struct, field

from mockube.apimachinery import meta
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.controller_manager.client.resources import Key, Resource
from mockube.controller_manager.controllers.garbagecollector.references import (
    Identity,
    OwnerReference,
    owners_of,
    waits_for_dependents,
    waits_for_orphans,
)


class Node(Struct, eq=False):
    identity: Identity
    owners: tuple[OwnerReference, ...] = ()
    dependents: dict[str, "Node"] = field(default_factory=dict)
    """By uid."""
    is_deleting: bool = False
    waits_for_dependents: bool = False
    """Being deleted in the foreground. Once so, it stays so: the finalizer is only ever taken out by us or by force."""
    is_virtual: bool = False

    @property
    def uid(self) -> str:
        return self.identity.uid

    @property
    def blocking_dependents(self) -> list["Node"]:
        return [
            dependent
            for dependent in self.dependents.values()
            if any(owner.uid == self.uid and owner.blocks for owner in dependent.owners)
        ]


class GraphStep(Struct):
    """Nodes to process because of a step: to delete if their owners are absent, or to orphan their dependents."""

    delete: list[Node] = field(default_factory=list)
    orphan: list[Node] = field(default_factory=list)


class Graph:
    def __init__(self) -> None:
        self._nodes: dict[str, Node] = {}

    def __len__(self) -> int:
        return len(self._nodes)

    def node(self, uid: str) -> Node | None:
        return self._nodes.get(uid)

    def observe(self, resource: Resource[ReadOnlyTree], obj: ReadOnlyTree) -> GraphStep:
        """A watch showed an object, for the first time or changed."""
        node = self._nodes.get(meta.uid(obj))
        return self._add_node(resource, obj) if node is None else self._update_node(node, resource, obj)

    def remove(self, uid: str) -> GraphStep:
        """An object is deleted: by a watch event, or by the server's answer for a virtual one."""
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
        node = Node(identity=identity_of(resource, obj), owners=owners_of(obj))
        self._nodes[node.uid] = node
        self._join(node, node.owners, step)
        self._begin_deletion(node, obj, step)
        return step

    def _update_node(self, node: Node, resource: Resource[ReadOnlyTree], obj: ReadOnlyTree) -> GraphStep:
        step = GraphStep()
        if node.is_virtual:
            self._make_real(node, identity_of(resource, obj), step)
        before, now = {*node.owners}, {*owners_of(obj)}
        present = {owner.uid for owner in now}
        earlier_uids = {owner.uid for owner in before}
        # An owner that waits for its dependents may wait no longer for this one.
        freed = [owner for owner in before - now if owner.blocks]
        step.delete += self._waiting_owners(freed)
        node.owners = owners_of(obj)
        self._join(node, [owner for owner in now if owner.uid not in earlier_uids], step)
        self._remove_dependent(node, [owner for owner in before if owner.uid not in present])
        self._begin_deletion(node, obj, step)
        return step

    def _make_real(self, node: Node, identity: Identity, step: GraphStep) -> None:
        """A virtual node is real after all. Dependents that name it with another namespace or kind must be processed."""
        node.identity, node.is_virtual = identity, False
        step.delete += [
            dependent for dependent in node.dependents.values() if not _is_named_rightly(dependent, node)
        ]

    def _begin_deletion(self, node: Node, obj: ReadOnlyTree, step: GraphStep) -> None:
        began = meta.is_deleting(obj) and not node.is_deleting
        node.is_deleting = node.is_deleting or began
        if began and waits_for_orphans(obj):
            step.orphan.append(node)
        if waits_for_dependents(obj) and not node.waits_for_dependents:
            node.waits_for_dependents = True
            step.delete += [*node.dependents.values(), node]

    # --- edges

    def _join(self, node: Node, owners: Iterable[OwnerReference], step: GraphStep) -> None:
        for reference in owners:
            owner = self._nodes.get(reference.uid)
            if owner is None:
                owner = Node(
                    identity=_owner_identity(reference, node.identity.key.namespace), is_virtual=True
                )
                self._nodes[owner.uid] = owner
                step.delete.append(owner)
            owner.dependents[node.uid] = node
            if owner.is_virtual:
                continue
            if owner.waits_for_dependents or not _is_named_rightly(node, owner):
                step.delete.append(node)

    def _remove_dependent(self, node: Node, owners: Iterable[OwnerReference]) -> None:
        for reference in owners:
            owner = self._nodes.get(reference.uid)
            if owner is None:
                continue
            owner.dependents.pop(node.uid, None)
            if owner.is_virtual and not owner.dependents:
                del self._nodes[owner.uid]

    def _waiting_owners(self, owners: Iterable[OwnerReference]) -> list[Node]:
        nodes = (self._nodes.get(owner.uid) for owner in owners)
        return [node for node in nodes if node is not None and node.waits_for_dependents]


def identity_of(resource: Resource[ReadOnlyTree], obj: ReadOnlyTree) -> Identity:
    return Identity(resource.api_version, resource.kind, Key.of(obj), meta.uid(obj))


def _owner_identity(reference: OwnerReference, namespace: str) -> Identity:
    """Return the identity of an owner that is in its dependent's namespace, or in none."""
    return Identity(reference.api_version, reference.kind, Key(namespace, reference.name), reference.uid)


def _is_named_rightly(dependent: Node, owner: Node) -> bool:
    """The reference names the owner that has its uid: its group and kind, its name, and a namespace it may be in."""
    reference = next((candidate for candidate in dependent.owners if candidate.uid == owner.uid), None)
    if reference is None:
        return True
    _, kind, key, _ = owner.identity
    matching_addresses = not key.namespace or key.namespace == dependent.identity.key.namespace
    same_group = _group(reference.api_version) == _group(owner.identity.api_version)
    return matching_addresses and same_group and reference.kind == kind and reference.name == key.name


def _group(api_version: str) -> str:
    return api_version.rpartition("/")[0]
