"""The APIServices of other servers: the group and version that each serves, its Service, and its documents."""

import base64
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

import orjson
from msgspec import Struct, field

from mockube.apimachinery import conditions
from mockube.apimachinery.groups import GroupVersion
from mockube.apimachinery.tree import ReadOnlyTree, Tree
from mockube.apiserver.kinds.api_resource import Resource
from mockube.apiserver.registry.registry import WRONG_TYPE_ERRORS, Backend
from mockube.apiserver.storage.recent_changes import Change
from mockube.apiserver.storage.stored_object import StoredObject

FindRow: TypeAlias = Callable[[str, str, str], Resource | None]
"""Returns the row of a resource by group, version and name."""

_PORT: Final = 443
_HAS_SERVICE: Final = b'"service":'
"""Part of the JSON of an APIService that another server serves."""


class RemoteAPIService(Struct, frozen=True, kw_only=True):
    """An APIService that another server serves."""

    name: str
    served: GroupVersion
    service: tuple[str, str, int]
    """The namespace, name and port of its Service."""
    authority: bytes = b""
    """The CA certificates in PEM; without any, those of the system."""
    is_insecure: bool = False
    priority: tuple[int, int] = (0, 0)
    """The priorities of the group and of the version."""
    is_available: bool = False

    @property
    def host(self) -> str:
        """The host name in its certificate."""
        namespace, name, _ = self.service
        return f"{name}.{namespace}.svc"

    @property
    def path(self) -> str:
        return f"/apis/{self.served.group}/{self.served.version}"


class RemoteDocuments(Struct, kw_only=True):
    """The discovery and OpenAPI documents of another server."""

    resources: Sequence[Tree] | None = None
    """The resources in the form of aggregated discovery; None if they are unknown."""
    index: Mapping[str, Any] = field(default_factory=dict)
    """The index of its OpenAPI 3 documents."""
    v2: bytes = b""
    """Its OpenAPI 2 document."""


def remote_of(tree: ReadOnlyTree) -> RemoteAPIService | None:
    """Return the server of an APIService; None for this server."""
    spec = tree["spec"]
    service = spec.get("service")
    if service is None:
        return None
    try:
        authority = base64.b64decode(spec.get("caBundle") or "")
    except ValueError:
        authority = b""
    return RemoteAPIService(
        name=tree["metadata"]["name"],
        served=GroupVersion(spec.get("group") or "", spec["version"]),
        service=(service.get("namespace") or "", service.get("name") or "", service.get("port") or _PORT),
        authority=authority,
        is_insecure=bool(spec.get("insecureSkipTLSVerify")),
        priority=(spec.get("groupPriorityMinimum") or 0, spec.get("versionPriority") or 0),
        is_available=conditions.is_true(tree, "Available"),
    )


class Remotes:
    """All APIServices of other servers in the watch cache, updated at each change. It is false while there are none."""

    def __init__(
        self,
        backend: Backend,
        api_services: Resource,
        is_simulated: Callable[[RemoteAPIService], bool] = lambda _: False,
    ) -> None:
        """`is_simulated` returns whether this server has the resources of a server whose pods are simulated."""
        self.is_simulated = is_simulated
        self._backend = backend
        self._api_services = api_services
        self.prefix = backend.layout.prefix(api_services)
        self._entries: dict[bytes, tuple[int, RemoteAPIService | None]] = {}
        self._served: dict[GroupVersion, RemoteAPIService] = {}
        self._is_outdated = False
        self.documents: dict[str, RemoteDocuments] = {}
        """By the name of the APIService."""
        self.on_change: list[Callable[[], None]] = []

    def __bool__(self) -> bool:
        if self._is_outdated:
            self._update()
        return bool(self._served)

    @property
    def served_remotes(self) -> Mapping[GroupVersion, RemoteAPIService]:
        if self._is_outdated:
            self._update()
        return self._served

    def watch(self) -> None:
        """Begin to receive changes of the watch cache, after that has listed all objects."""
        watch_cache = self._backend.watch_cache
        watch_cache.resource_cache(self.prefix).watchers.add(self)
        watch_cache.on_reset.append(self.handle_missed_change)
        self.handle_missed_change()

    def handle_change(self, change: Change) -> None:
        before = b"" if change.before is None else change.before.value
        if _HAS_SERVICE in change.after.value or _HAS_SERVICE in before:
            self.handle_missed_change()

    def handle_missed_change(self) -> None:
        self._is_outdated = True
        self.notify()

    def notify(self) -> None:
        """Invalidate the pages that describe the served resources."""
        for notify in self.on_change:
            notify()

    def _update(self) -> None:
        self._is_outdated = False
        before, self._entries = self._entries, {}
        for stored in self._backend.list_cached(self._api_services.group_resource):
            entry = before.get(stored.key)
            if entry is None or entry[0] != stored.revision:
                entry = stored.revision, self._read(stored)
            self._entries[stored.key] = entry
        self._served = {
            remote.served: remote
            for _, remote in self._entries.values()
            if remote is not None and not (remote.is_available and self.is_simulated(remote))
        }
        for name in self.documents.keys() - {remote.name for remote in self._served.values()}:
            del self.documents[name]

    def _read(self, stored: StoredObject) -> RemoteAPIService | None:
        if _HAS_SERVICE not in stored.value:
            return None
        try:
            return remote_of(stored.tree())
        except WRONG_TYPE_ERRORS as error:
            self._backend.watch_cache.report_malformed(stored, error)
            return None

    def of_path(self, path: str) -> RemoteAPIService | None:
        """Return the server of a path: a resource, the discovery of its version, or the version's OpenAPI document."""
        parts = path.removeprefix("/openapi/v3").split("/", 4)
        if len(parts) < 4 or parts[1] != "apis":
            return None
        return self.served_remotes.get(GroupVersion(parts[2], parts[3]))


def row_finder(rows: Mapping[tuple[str, str, str], Resource], remotes: Remotes) -> FindRow:
    """Return a function that finds the row of a resource; there is none if another server serves it."""

    def find_row(group: str, version: str, name: str) -> Resource | None:
        if remotes and GroupVersion(group, version) in remotes.served_remotes:
            return None
        return rows.get((group, version, name))

    return find_row


def index_of(data: bytes, remote: RemoteAPIService) -> Mapping[str, Any]:
    """Return the entry of a server's own version in its OpenAPI 3 index; raise ValueError if the index is invalid."""
    paths = orjson.loads(data)["paths"]
    folder = remote.path.removeprefix("/")
    return {folder: paths[folder]} if folder in paths else {}
