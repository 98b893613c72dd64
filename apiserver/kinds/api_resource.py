"""Resources as data: the properties that discovery, routing, storage and printing need."""

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import TypeAlias

from msgspec import Struct, field
from msgspec.structs import force_setattr

from mockube.apimachinery.groups import GroupKind, GroupResource
from mockube.apiserver.fields import SelectableField

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
    """Whether responses can be rendered as a Table."""


class SelectorForm(Enum):
    """The form of the selector in an object that has /scale."""

    LABEL_SELECTOR = "matchLabels and matchExpressions"
    LABELS = "a map of labels"
    TEXT = "a string, as in /scale"


class Replicas(Struct, frozen=True, kw_only=True):
    """The paths of the fields in an object from which /scale is built."""

    spec_path: tuple[str, ...] = ("spec", "replicas")
    status_path: tuple[str, ...] = ("status", "replicas")
    selector: tuple[str, ...] = ("spec", "selector")
    selector_form: SelectorForm = SelectorForm.LABEL_SELECTOR
    spec_paths: Mapping[str, tuple[str, ...]] | None = None
    """The `spec_path` of a custom resource by API version; () for a version without /scale."""


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
    """Whether discovery has a singular name; some servers publish none."""
    listed_as: str = ""
    """The kind of lists, if it is not the kind with the suffix `List`."""
    namespaced: bool = True
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ALL_VERBS
    subresources: tuple[Subresource, ...] = ()
    stored_at: str = ""
    """The key prefix below /registry, if it is not the name."""
    storage_version: GroupVersion | None = None
    """The stored version, if its group or version differs: the `events` of two groups are stored as one resource."""
    uncached: bool = False
    """Whether upstream has no watch cache of the resource: then lists at any age are paginated, too."""
    hashed_version: str = ""
    """The version whose hash discovery publishes, if upstream stores another version than this server."""
    deprecated: str = ""
    """The warning in every response."""
    selectable: tuple[SelectableField, ...] = ()
    """The field labels of field selectors besides metadata.name and metadata.namespace."""
    indexed: str = ""
    """The field label for whose values upstream's watch cache has an index."""
    selects_namespace: bool = True
    """Whether field selectors may use `metadata.namespace`, if the resource is namespaced."""
    refused_label: str = ""
    """The error message for an unsupported `label` of a field selector, if it is not the default one."""
    replicas: Replicas = field(default_factory=Replicas)
    relabelled: tuple[str, ...] = ()
    """Other API versions of the resource, whose objects differ in apiVersion only."""
    custom: bool = False
    """Whether it is a custom resource, whose objects upstream decodes to trees instead of structs, as some messages show."""
    terminating: bool = False
    """Whether the definition is being deleted: creates are refused."""
    virtual: bool = False
    """Whether the store of the cluster has no object of it, as of metrics and of mockube's own resources."""
    unlisted_verbs: tuple[str, ...] = ()
    """The verbs that discovery omits, so that programs which handle all resources with them leave this one alone."""
    work: int = 1
    """The factor by which a byte of an object may take longer to check; `apiserver/customresources/cost.py` estimates it."""

    # Derived from the other fields, because every request reads them often.
    has_table: bool = False
    """Whether objects can be rendered as a Table, unlike reviews."""
    group_resource: GroupResource = GroupResource("", "")
    group_kind: GroupKind = GroupKind("", "")
    group_version: GroupVersion = ("", "")
    api_version: str = ""
    folder: bytes = b""
    """The key prefix of all objects below that of the store, such as `pods/` or `services/specs/`."""

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
        """The verbs in discovery documents."""
        if self.terminating:
            return _TERMINATING
        unlisted = self.unlisted_verbs
        return [verb for verb in self.verbs if verb not in unlisted] if unlisted else self.verbs

    @property
    def list_kind(self) -> str:
        return self.listed_as or f"{self.kind}List"

    @property
    def singular_name(self) -> str:
        return (self.singular or self.kind.lower()) if self.has_singular else ""

    def subresource(self, name: str) -> Subresource | None:
        return next((subresource for subresource in self.subresources if subresource.name == name), None)
