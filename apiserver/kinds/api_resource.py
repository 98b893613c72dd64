"""A resource as a row of data: everything that discovery, routing, storage and printing need to know of it."""

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from msgspec import Struct, field
from msgspec.structs import force_setattr

from mockube.apimachinery.fields import SelectableField
from mockube.apimachinery.groups import GroupKind, GroupResource

GroupVersion: TypeAlias = tuple[str, str]

ALL_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
READ_WRITE = ("get", "patch", "update")


class Subresource(Struct, frozen=True, kw_only=True):
    """A subresource such as `pods/status`. `kind` and `group_version` are those of its bodies, if not the resource's."""

    name: str
    verbs: tuple[str, ...] = READ_WRITE
    kind: str = ""
    group_version: GroupVersion | None = None
    has_table: bool = False
    """Its responses can be rendered as a Table."""


class Replicas(Struct, frozen=True, kw_only=True):
    """The paths of the fields in an object from which /scale is built."""

    spec_path: tuple[str, ...] = ("spec", "replicas")
    status_path: tuple[str, ...] = ("status", "replicas")
    selector: tuple[str, ...] = ("spec", "selector")
    selector_is_text: bool = False
    """The selector is a string, as in /scale."""
    spec_paths: Mapping[str, tuple[str, ...]] | None = None
    """Of a custom resource: `spec_path` by API version, () where it has no /scale."""


_TERMINATING = ("delete", "deletecollection", "get", "list", "watch")
STATUS = Subresource(name="status", has_table=True)
STATUS_WITHOUT_TABLE = Subresource(name="status")
SCALE = Subresource(name="scale", kind="Scale", group_version=("autoscaling", "v1"), has_table=True)


class Resource(Struct, frozen=True, kw_only=True, eq=False):
    """One resource in one version. Compared by identity, because it is the key of many caches."""

    group: str
    version: str
    name: str
    kind: str
    singular: str = ""
    has_singular: bool = True
    """Some servers publish none, though the kind could be one."""
    listed_as: str = ""
    """The kind of its lists, if it is not its own kind with the suffix `List`."""
    namespaced: bool = True
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ALL_VERBS
    subresources: tuple[Subresource, ...] = ()
    stored_at: str = ""
    """Its key prefix under /registry, if it is not its name."""
    storage_version: GroupVersion | None = None
    """What it is stored as, where that is another version or group than its own: `events` of two groups are one."""
    uncached: bool = False
    """Upstream has no watch cache of it, so that its lists of any age come in pages as well."""
    hashed_version: str = ""
    """Whose hash discovery publishes, where upstream stores another version than is stored here."""
    deprecated: str = ""
    """The warning in every response."""
    selectable: tuple[SelectableField, ...] = ()
    """The field labels of field selectors besides metadata.name and metadata.namespace."""
    refused_label: str = ""
    """The message about an unsupported `label` of a field selector, if it is not the usual one."""
    replicas: Replicas = field(default_factory=Replicas)
    relabelled: tuple[str, ...] = ()
    """Other API versions of it, whose objects differ in apiVersion only."""
    custom: bool = False
    """A definition defines it: upstream decodes its objects to trees, not structs, which some messages show."""
    terminating: bool = False
    """Its definition is being deleted: nothing more is created."""
    work: int = 1
    """The factor by which a byte of its objects may take longer to check, estimated in `apiserver/customresources/cost.py`."""

    # Derived from the others, because every request reads them often.
    has_table: bool = False
    """It can be rendered as a Table, unlike a review."""
    group_resource: GroupResource = GroupResource("", "")
    group_kind: GroupKind = GroupKind("", "")
    group_version: GroupVersion = ("", "")
    api_version: str = ""
    folder: bytes = b""
    """Where all its objects lie, as `pods/` or `services/specs/`, below the store's prefix."""

    def __post_init__(self) -> None:
        force_setattr(self, "has_table", "get" in self.verbs)
        force_setattr(self, "group_resource", GroupResource(self.group, self.name))
        force_setattr(self, "group_kind", GroupKind(self.group, self.kind))
        force_setattr(self, "group_version", (self.group, self.version))
        api_version = f"{self.group}/{self.version}" if self.group else self.version
        force_setattr(self, "api_version", api_version)
        force_setattr(self, "folder", f"{self.stored_at or self.name}/".encode())

    @property
    def discovery_verbs(self) -> Sequence[str]:
        """The verbs that discovery names."""
        return _TERMINATING if self.terminating else self.verbs

    @property
    def list_kind(self) -> str:
        return self.listed_as or f"{self.kind}List"

    @property
    def singular_name(self) -> str:
        return (self.singular or self.kind.lower()) if self.has_singular else ""

    def subresource(self, name: str) -> Subresource | None:
        return next((subresource for subresource in self.subresources if subresource.name == name), None)
