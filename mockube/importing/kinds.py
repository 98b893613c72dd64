"""Which resources a server has, by the kinds that objects are of."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from mockube.apimachinery import meta
from mockube.apimachinery.groups import GroupKind, GroupVersion
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.controller_manager.client.client import AnyResource, Client
from mockube.controller_manager.client.discovery import Offered, discover
from mockube.failure import Failure


class NotServed(Failure):
    """The server knows no such kind, or lets nobody make one."""


@dataclass(frozen=True, slots=True)
class Kinds:
    offered: Mapping[GroupKind, Offered]

    def resource_of(self, tree: ReadOnlyTree) -> AnyResource:
        """In the version that the object is of."""
        version = GroupVersion.parse(meta.api_version(tree))
        found = self._find(GroupKind(version.group, meta.kind(tree)))
        return replace(found.resource, version=version.version, metadata_only=False)

    def has_status(self, tree: ReadOnlyTree) -> bool:
        return "status" in self._find(_kind(tree)).subresources

    def is_namespaced(self, tree: ReadOnlyTree) -> bool:
        """Of a kind that is not served yet, what the object says itself."""
        found = self.offered.get(_kind(tree))
        return bool(meta.namespace(tree)) if found is None else found.resource.namespaced

    def _find(self, kind: GroupKind) -> Offered:
        found = self.offered.get(kind)
        if found is None:
            raise NotServed(f"the server has no kind {kind}")
        if "create" not in found.verbs:
            raise NotServed(f"the server lets nobody make a {kind}")
        return found


async def kinds_of(client: Client) -> Kinds:
    offered = (await discover(client)).offered
    return Kinds({one.resource.group_kind: one for one in reversed(offered)})


def _kind(tree: ReadOnlyTree) -> GroupKind:
    return GroupKind(GroupVersion.parse(meta.api_version(tree)).group, meta.kind(tree))
