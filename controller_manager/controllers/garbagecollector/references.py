"""The owner references, finalizers and resources of objects, and the cache of absent owners.

Absent owners are cached by uid, because a uid is never used again.
"""

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from mockube.apimachinery import meta
from mockube.apimachinery.groups import GroupKind, GroupResource, GroupVersion
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apimachinery.wellknown import FINALIZER_FOREGROUND, FINALIZER_ORPHAN
from mockube.client.discovery import Discovery
from mockube.client.resources import Key, Resource


class OwnerReference(NamedTuple):
    api_version: str
    kind: str
    name: str
    uid: str
    blocks: bool
    """`blockOwnerDeletion`: the owner waits for this dependent when it is deleted in the foreground."""

    def describe(self, namespace: str) -> str:
        return f"[{self.api_version}/{self.kind}, namespace: {namespace}, name: {self.name}, uid: {self.uid}]"


class ObjectIdentity(NamedTuple):
    """The identity of an object: its uid; the other fields are needed to read it."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str

    @property
    def key(self) -> Key:
        return Key(self.namespace, self.name)


def owners_of(obj: ReadOnlyTree) -> tuple[OwnerReference, ...]:
    return tuple(map(_owner, meta.owner_references(obj)))


def _owner(reference: ReadOnlyTree) -> OwnerReference:
    return OwnerReference(
        api_version=reference.get("apiVersion", ""),
        kind=reference.get("kind", ""),
        name=reference.get("name", ""),
        uid=reference.get("uid", ""),
        blocks=reference.get("blockOwnerDeletion") is True,
    )


def waits_for_dependents(obj: ReadOnlyTree) -> bool:
    """Return whether the object is being deleted in the foreground."""
    return meta.is_deleting(obj) and FINALIZER_FOREGROUND in meta.finalizers(obj)


def waits_for_orphans(obj: ReadOnlyTree) -> bool:
    """Return whether the object is being deleted, and its dependents have to be orphaned first."""
    return meta.is_deleting(obj) and FINALIZER_ORPHAN in meta.finalizers(obj)


def without_finalizer_patch(obj: ReadOnlyTree, finalizer: str) -> dict[str, Any]:
    """Return a merge patch that removes a finalizer from this version of the object."""
    remaining = [other for other in meta.finalizers(obj) if other != finalizer]
    return {"metadata": {"resourceVersion": meta.resource_version(obj), "finalizers": remaining}}


def with_owners_patch(obj: ReadOnlyTree, owners: Sequence[ReadOnlyTree]) -> dict[str, Any]:
    """Return a merge patch that sets the owner references of this version of the object."""
    return {
        "metadata": {
            "resourceVersion": meta.resource_version(obj),
            "uid": meta.uid(obj),
            "ownerReferences": list(owners),
        }
    }


IGNORED_RESOURCES: Final = {GroupResource("", "events"), GroupResource("events.k8s.io", "events")}
"""The resources that are not watched: they have many objects, and none has an owner."""


class KindMap:
    """The resources of kinds, from discovery."""

    def __init__(self) -> None:
        self._by_kind: dict[GroupKind, Resource[ReadOnlyTree]] = {}

    def update(self, discovery: Discovery) -> None:
        """Add the discovered resources, in the versions in which they are served now."""
        served: dict[GroupKind, Resource[ReadOnlyTree]] = {}
        for entry in discovery.resources:
            served.setdefault(entry.resource.group_kind, entry.resource)
        self._by_kind |= served

    def resource(self, api_version: str, kind: str) -> Resource[ReadOnlyTree] | None:
        """Return the resource of a kind, to read metadata of objects; None if the server does not serve the kind."""
        return self._by_kind.get(GroupKind(GroupVersion.parse(api_version).group, kind))


_MAX_UIDS: Final = 500
"""As upstream (pkg/controller/garbagecollector/graph_builder.go)."""


class AbsentOwnerCache:
    """The uids of owners that are known to be absent, the most recently used ones.

    A Rewind brings owners back with their uids, and with dependents. So an owner is known to be absent for those dependents only that the
    graph had when that was found; for newer ones the server is asked.
    """

    def __init__(self) -> None:
        self._newest: OrderedDict[str, int] = OrderedDict()
        """By uid, the number of the newest node at that time."""

    def is_absent(self, uid: str, dependent: int) -> bool:
        """Return whether an owner is absent for the node with a number."""
        if self._newest.get(uid, 0) < dependent:
            return False
        self._newest.move_to_end(uid)
        return True

    def add(self, uid: str, newest: int) -> None:
        self._newest[uid] = newest
        self._newest.move_to_end(uid)
        if len(self._newest) > _MAX_UIDS:
            self._newest.popitem(last=False)

    def discard(self, uid: str) -> None:
        self._newest.pop(uid, None)
