"""API services of other servers: which group and version each of them serves, its address, and its documents."""

import base64
import binascii
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import orjson
from msgspec import Struct, field

from mockube.apimachinery import conditions
from mockube.apimachinery.groups import GroupVersion
from mockube.apimachinery.tree import ReadOnlyTree, Tree
from mockube.apiserver.kinds.api_resource import Resource
from mockube.apiserver.registry.backend import OF_WRONG_TYPES, Backend
from mockube.apiserver.storage.resource_cache import Change
from mockube.apiserver.storage.stored import Stored

_PORT: Final = 443
_OF_ANOTHER: Final = b'"service":'
"""What the text of an APIService has that another server serves."""


class Remote(Struct, frozen=True, kw_only=True):
    """One API service that another server serves."""

    name: str
    served: GroupVersion
    service: tuple[str, str, int]
    """Its namespace, name and port."""
    authority: bytes = b""
    """The CA's certificates in PEM; without them those of the system count."""
    is_insecure: bool = False
    priority: tuple[int, int] = (0, 0)
    """Of the group, and of the version in it."""
    is_available: bool = False

    @property
    def host(self) -> str:
        """The name that its certificate has."""
        namespace, name, _ = self.service
        return f"{name}.{namespace}.svc"

    @property
    def path(self) -> str:
        return f"/apis/{self.served.group}/{self.served.version}"


class Documents(Struct, kw_only=True):
    """The discovery and OpenAPI documents of another server."""

    resources: Sequence[Tree] | None = None
    """As in aggregated discovery; None if they are unknown."""
    index: Mapping[str, Any] = field(default_factory=dict)
    """Where its documents of OpenAPI 3 are, by their names."""
    v2: bytes = b""
    """Its document of OpenAPI 2."""


def remote_of(tree: ReadOnlyTree) -> Remote | None:
    """The server of an APIService; None if that is this one."""
    spec = tree["spec"]
    service = spec.get("service")
    if service is None:
        return None
    try:
        authority = base64.b64decode(spec.get("caBundle") or "")
    except binascii.Error:
        authority = b""
    return Remote(
        name=tree["metadata"]["name"],
        served=GroupVersion(spec.get("group") or "", spec["version"]),
        service=(service.get("namespace") or "", service.get("name") or "", service.get("port") or _PORT),
        authority=authority,
        is_insecure=bool(spec.get("insecureSkipTLSVerify")),
        priority=(spec.get("groupPriorityMinimum") or 0, spec.get("versionPriority") or 0),
        is_available=conditions.is_true(tree, "Available"),
    )


class Remotes:
    """All of them, as the watch cache has them: a follower of API services. It is false while there are none."""

    def __init__(self, backend: Backend, api_services: Resource) -> None:
        self._backend = backend
        self._api_services = api_services
        self.prefix = backend.layout.resource_cache(api_services)
        self._entries: dict[bytes, tuple[int, Remote | None]] = {}
        self._served: dict[GroupVersion, Remote] = {}
        self._groups: frozenset[str] = frozenset()
        self._is_outdated = False
        self.documents: dict[str, Documents] = {}
        """By the name of the APIService."""
        self.on_change: list[Callable[[], None]] = []

    def __bool__(self) -> bool:
        if self._is_outdated:
            self._look()
        return bool(self._served)

    @property
    def served_remotes(self) -> Mapping[GroupVersion, Remote]:
        if self._is_outdated:
            self._look()
        return self._served

    @property
    def groups(self) -> frozenset[str]:
        if self._is_outdated:
            self._look()
        return self._groups

    def follow(self) -> None:
        """Begin, once the watch cache has listed everything."""
        watch_cache = self._backend.watch_cache
        watch_cache.resource_cache(self.prefix).follow(self)
        watch_cache.on_reset.append(self.miss)
        self.miss()

    def offer(self, change: Change) -> None:
        before = b"" if change.before is None else change.before.value
        if _OF_ANOTHER in change.after.value or _OF_ANOTHER in before:
            self.miss()

    def miss(self) -> None:
        self._is_outdated = True
        self.notify()

    def notify(self) -> None:
        """Outdate all pages that describe what is served."""
        for notify in self.on_change:
            notify()

    def _look(self) -> None:
        self._is_outdated = False
        before, self._entries = self._entries, {}
        for stored in self._backend.all_seen(self._api_services.group_resource):
            entry = before.get(stored.key)
            if entry is None or entry[0] != stored.revision:
                entry = stored.revision, self._read(stored)
            self._entries[stored.key] = entry
        self._served = {remote.served: remote for _, remote in self._entries.values() if remote is not None}
        self._groups = frozenset(version.group for version in self._served)
        for name in self.documents.keys() - {remote.name for remote in self._served.values()}:
            del self.documents[name]

    def _read(self, stored: Stored) -> Remote | None:
        if _OF_ANOTHER not in stored.value:
            return None
        try:
            return remote_of(stored.tree())
        except OF_WRONG_TYPES as error:
            self._backend.watch_cache.report_malformed(stored, error)
            return None

    def of_path(self, path: str) -> Remote | None:
        """The server that a path leads to: a resource, discovery of its version, or the version's OpenAPI document."""
        parts = path.removeprefix("/openapi/v3").split("/", 4)
        if len(parts) < 4 or parts[1] != "apis":
            return None
        return self.served_remotes.get(GroupVersion(parts[2], parts[3]))


def index_of(data: bytes, remote: Remote) -> Mapping[str, Any]:
    """The place of a server's own document in its index of OpenAPI 3; ValueError if that is none."""
    paths = orjson.loads(data)["paths"]
    folder = remote.path.removeprefix("/")
    return {folder: paths[folder]} if folder in paths else {}
