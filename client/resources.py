"""Resources as rows: the path in the API, and the view of cached objects. `kinds` defines the rows."""

from collections.abc import Callable
from typing import Any, Generic, NamedTuple, TypeVar

from msgspec import Struct

from mockube.apimachinery import meta
from mockube.apimachinery.groups import GroupKind, GroupResource
from mockube.apimachinery.tree import ReadOnlyTree

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class Key(NamedTuple):
    """The namespace and name of an object; the namespace of a cluster-scoped object is empty."""

    namespace: str
    name: str

    @classmethod
    def of(cls, obj: ReadOnlyTree) -> "Key":
        return cls(meta.namespace(obj), meta.name(obj))

    @classmethod
    def parse(cls, text: str) -> "Key":
        """Parse the text that `str` returns for the key of a namespaced object."""
        namespace, _, name = text.partition("/")
        return cls(namespace, name)

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


def whole_tree(tree: ReadOnlyTree) -> ReadOnlyTree:
    """Return the object itself: the view of resources without a view of their own."""
    return tree


class Resource(Struct, Generic[T_co], frozen=True, kw_only=True, eq=False):
    """The row of a resource, predefined or from discovery. Rows are compared by identity."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool
    view: Callable[[ReadOnlyTree], T_co]
    """Returns the view of an object, which a cache stores in its place; called once for each version of the object."""
    tree: Callable[[Any], ReadOnlyTree] = whole_tree
    """Returns the object of a view."""
    metadata_only: bool = False
    """Whether the resource is listed and watched as PartialObjectMetadata."""

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def group_resource(self) -> GroupResource:
        return GroupResource(self.group, self.plural)

    @property
    def group_kind(self) -> GroupKind:
        return GroupKind(self.group, self.kind)

    def is_called(self, group: str, name: str) -> bool:
        """Return whether a name is that of the resource or of its kind: the details of an error have either."""
        return group == self.group and name in (self.plural, self.kind)

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """Return the path of an object or a collection; without a namespace, of the collection in all namespaces."""
        root = f"/apis/{self.group}" if self.group else "/api"
        namespace_part = f"/namespaces/{namespace}" if namespace and self.namespaced else ""
        object_part = "".join(f"/{part}" for part in (name, subresource) if part)
        return f"{root}/{self.version}{namespace_part}/{self.plural}{object_part}"

    def __str__(self) -> str:
        return str(self.group_resource)


AnyResource = Resource[Any]


def row(api_version: str, plural: str, kind: str, *, namespaced: bool = True) -> Resource[ReadOnlyTree]:
    """Return the row of a resource whose cached objects are whole trees."""
    group, _, version = api_version.rpartition("/")
    return Resource(
        group=group, version=version, plural=plural, kind=kind, namespaced=namespaced, view=whole_tree
    )
