"""Which resource a kind is, and how it is watched. Pure."""

from collections.abc import Iterable, Iterator
from typing import Any, Final

from apimachinery.groups import GroupKind, GroupResource, GroupVersion
from controller_manager import kinds
from controller_manager.runtime.discovery import Discovery
from controller_manager.runtime.resource import Resource, Tree

_IGNORED: Final = {GroupResource("", "events"), GroupResource("events.k8s.io", "events")}
"""Too many, and owned by nobody."""
_SHARED: Final = {row.group_resource: row for row in kinds.rows()}
"""What other controllers watch whole is watched once."""


class KindMap:
    def __init__(self) -> None:
        self._by_kind: dict[GroupKind, Resource[Tree]] = {}
        self._watched: dict[GroupResource, Resource[Any]] = {}

    def learn(self, discovery: Discovery) -> list[Resource[Any]]:
        """What is new and to be watched."""
        for one in discovery.offered:
            self._by_kind.setdefault(one.resource.group_kind, one.resource)
        return [*self._fresh(discovery.able("delete", "list", "watch"))]

    def _fresh(self, able: Iterable[Resource[Tree]]) -> Iterator[Resource[Any]]:
        for resource in able:
            name = resource.group_resource
            if name not in self._watched and name not in _IGNORED:
                self._watched[name] = _SHARED.get(name, resource)
                yield self._watched[name]

    def watched(self, resource: Resource[Tree]) -> Resource[Any] | None:
        """The row by whose informer this resource is watched."""
        return self._watched.get(resource.group_resource)

    def resource(self, api_version: str, kind: str) -> Resource[Tree] | None:
        """For reading the metadata of an object of this kind; None for a kind that the server does not know."""
        return self._by_kind.get(GroupKind(GroupVersion.parse(api_version).group, kind))
