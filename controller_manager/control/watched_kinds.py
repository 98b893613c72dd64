"""The resources that a controller of all kinds watches, as discovery finds them."""

from collections.abc import Collection, Iterable
from typing import Any

from mockube.apimachinery.groups import GroupResource
from mockube.client.cache.informer import Informers
from mockube.client.discovery import Discovery
from mockube.client.resources import Resource


class WatchedKinds:
    """The watched resources. As upstream's monitors, the informer of a resource that is no longer served is stopped."""

    def __init__(
        self, informers: Informers, *, verbs: Collection[str], ignored: Collection[GroupResource]
    ) -> None:
        self._informers = informers
        self._verbs = verbs
        self._ignored = ignored
        self._rows: dict[GroupResource, Resource[Any]] = {}

    def __len__(self) -> int:
        return len(self._rows)

    def __contains__(self, name: GroupResource) -> bool:
        return name in self._rows

    def rows(self) -> Iterable[Resource[Any]]:
        return self._rows.values()

    def row(self, name: GroupResource) -> Resource[Any] | None:
        """Return the row whose informer watches a resource."""
        return self._rows.get(name)

    def update(self, discovery: Discovery) -> list[Resource[Any]]:
        """Watch what discovery found; return the rows whose informers are new and have no handler of the controller.

        A group whose API server is unavailable keeps its informers.
        """
        served = {
            resource.group_resource: resource
            for resource in discovery.with_verbs(*self._verbs)
            if resource.group_resource not in self._ignored
        }
        if not served:
            return []
        unavailable = {version.rpartition("/")[0] for version in discovery.failures}
        for name in [name for name in self._rows if name not in served and name.group not in unavailable]:
            self._informers.stop(self._rows.pop(name))
        new_rows = []
        for name, resource in served.items():
            row = self._informers.row(resource)
            if self._rows.get(name) is not row:
                self._rows[name] = row
                new_rows.append(row)
        return new_rows
