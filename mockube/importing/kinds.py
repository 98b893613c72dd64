"""The kinds that a server serves, and the new uids of owners."""

from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import replace

from mockube.apimachinery import meta
from mockube.apimachinery.groups import GroupKind, GroupVersion
from mockube.apimachinery.status import NotFound
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.discovery import DiscoveredResource, discover
from mockube.client.resources import Key
from mockube.client.verbs import AnyResource, Client
from mockube.failure import Failure

from .cleaning import kind_of


class NotServed(Failure):
    """The server does not serve the kind, or its objects cannot be created."""


class ServedKinds(Struct, frozen=True):
    """The resources of a server, by group and kind."""

    resources: Mapping[GroupKind, DiscoveredResource]

    def resource_of(self, tree: ReadOnlyTree) -> AnyResource:
        """Return the resource of an object's kind, in the object's version."""
        version = GroupVersion.parse(meta.api_version(tree)).version
        return replace(self._find(kind_of(tree)).resource, version=version, metadata_only=False)

    def has_status(self, tree: ReadOnlyTree) -> bool:
        return "status" in self._find(kind_of(tree)).subresources

    def is_namespaced(self, tree: ReadOnlyTree) -> bool:
        """Return whether the kind is namespaced; if it is not served yet, whether the object has a namespace."""
        entry = self.resources.get(kind_of(tree))
        return bool(meta.namespace(tree)) if entry is None else entry.resource.namespaced

    def _find(self, kind: GroupKind) -> DiscoveredResource:
        entry = self.resources.get(kind)
        if entry is None:
            raise NotServed(f"the server has no kind {kind}")
        if "create" not in entry.verbs:
            raise NotServed(f"{kind} cannot be created")
        return entry


async def discover_kinds(client: Client) -> ServedKinds:
    resources = (await discover(client)).resources
    return ServedKinds({entry.resource.group_kind: entry for entry in reversed(resources)})


class OwnerUIDs:
    """The uids that owners have in the cluster, by the uids that they had in the other cluster."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._uids: dict[str, str] = {}
        """The value is "" for an owner that does not exist in the cluster."""

    def record_uid(self, printed: str, live: str) -> None:
        if printed:
            self._uids[printed] = live

    async def references(
        self, tree: ReadOnlyTree, kinds: ServedKinds
    ) -> tuple[list[ReadOnlyTree], list[str]]:
        """Return the owner references with new uids, and the names of owners that do not exist, which are omitted."""
        references: list[ReadOnlyTree] = []
        absent: list[str] = []
        for reference in meta.owner_references(tree):
            uid = await self._uid(reference, meta.namespace(tree), kinds)
            if uid:
                references.append({**reference, "uid": uid})
            else:
                absent.append(f"{reference.get('kind')} {reference.get('name')}")
        return references, absent

    async def _uid(self, reference: ReadOnlyTree, namespace: str, kinds: ServedKinds) -> str:
        uid = str(reference.get("uid") or "")
        if uid not in self._uids:
            self._uids[uid] = await self._look_up(reference, namespace, kinds)
        return self._uids[uid]

    async def _look_up(self, reference: ReadOnlyTree, namespace: str, kinds: ServedKinds) -> str:
        """Return the uid of an owner that was not imported, by its name; "" if it does not exist."""
        try:
            owner = await self._client.get(kinds.resource_of(reference), Key(namespace, reference["name"]))
        except (NotFound, NotServed):
            return ""
        return meta.uid(owner)
