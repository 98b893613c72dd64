"""A resource in the controller manager: its path in the API, and the view of its cached objects.

The rows themselves are in `mockube.controller_manager.client.kinds`.
"""

from collections.abc import Callable
from typing import Any, Generic, NamedTuple, TypeVar

from msgspec import Struct

from mockube.apimachinery import meta
from mockube.apimachinery.groups import GroupKind, GroupResource
from mockube.apimachinery.tree import ReadOnlyTree

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class Key(NamedTuple):
    """Which object of a resource; the namespace of a cluster-wide one is empty."""

    namespace: str
    name: str

    @classmethod
    def of(cls, obj: ReadOnlyTree) -> "Key":
        return cls(meta.namespace(obj), meta.name(obj))

    @classmethod
    def parse(cls, text: str) -> "Key":
        """Return the key of an object in a namespace from the text that `str` returns."""
        namespace, _, name = text.partition("/")
        return cls(namespace, name)

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


def whole_tree(tree: ReadOnlyTree) -> ReadOnlyTree:
    """The view of a resource that needs none."""
    return tree


class Resource(Struct, Generic[T_co], frozen=True, kw_only=True, eq=False):
    """Compared by identity: there is one row for each resource, or one made from discovery."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool
    view: Callable[[ReadOnlyTree], T_co]
    """Made once for each version of an object when it enters a cache; caches hold views and nothing else."""
    tree: Callable[[Any], ReadOnlyTree] = whole_tree
    """The object behind a view."""
    metadata_only: bool = False
    """Listed and watched as PartialObjectMetadata."""

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def group_resource(self) -> GroupResource:
        return GroupResource(self.group, self.plural)

    @property
    def group_kind(self) -> GroupKind:
        return GroupKind(self.group, self.kind)

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """Without a namespace, the path of the collection over all of them."""
        root = f"/apis/{self.group}" if self.group else "/api"
        inside = f"/namespaces/{namespace}" if namespace and self.namespaced else ""
        rest = "".join(f"/{part}" for part in (name, subresource) if part)
        return f"{root}/{self.version}{inside}/{self.plural}{rest}"

    def __str__(self) -> str:
        return str(self.group_resource)
