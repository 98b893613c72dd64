"""The discovery documents of other servers: resource lists, or all groups and versions in one document."""

from collections.abc import Mapping, Sequence
from email.message import Message
from typing import Final, TypeAlias

import msgspec

from mockube.apimachinery.groups import GroupVersion
from mockube.apimachinery.tree import Tree

_LIST: Final = "APIGroupDiscoveryList"
_GROUP: Final = "apidiscovery.k8s.io"
_VERSIONS: Final = ("v2", "v2beta1")
ACCEPT: Final = ",".join(f"application/json;g={_GROUP};v={version};as={_LIST}" for version in _VERSIONS)
"""The Accept header of a request for the document of all groups."""

DiscoveredVersions: TypeAlias = Mapping[GroupVersion, Sequence[Tree]]
"""The resources of each version, in the form of aggregated discovery."""


def is_aggregated(content_type: str) -> bool:
    """Return whether a response is the document of all groups; servers without it return another one."""
    header = Message()
    header["Content-Type"] = content_type
    if header.get_content_type() != "application/json":
        return False
    names = (header.get_param("g"), header.get_param("v"), header.get_param("as"))
    return names[0] == _GROUP and names[1] in _VERSIONS and names[2] == _LIST


class _Kind(msgspec.Struct):
    group: str | None = ""
    version: str | None = ""
    kind: str | None = ""

    def tree(self) -> Tree:
        return {"group": self.group or "", "version": self.version or "", "kind": self.kind or ""}


class _ApiResource(msgspec.Struct, rename="camel"):
    """An entry of an APIResourceList."""

    name: str | None = ""
    singular_name: str | None = ""
    namespaced: bool | None = False
    kind: str | None = ""
    group: str | None = ""
    version: str | None = ""
    verbs: list[str] | None = None
    short_names: list[str] | None = None
    categories: list[str] | None = None

    @property
    def scope(self) -> str:
        return "Namespaced" if self.namespaced else "Cluster"

    def response_kind(self) -> Tree:
        return _Kind(self.group, self.version, self.kind).tree()


class _ApiResourceList(msgspec.Struct, rename="camel"):
    kind: str = ""
    api_version: str = ""
    resources: list[_ApiResource] | None = None


class _Subresource(msgspec.Struct, rename="camel"):
    subresource: str | None = ""
    response_kind: _Kind | None = None
    accepted_types: list[_Kind] | None = None
    verbs: list[str] | None = None

    def tree(self) -> Tree:
        tree: Tree = {
            "subresource": self.subresource or "",
            "responseKind": (self.response_kind or _Kind()).tree(),
        }
        if self.accepted_types:
            tree["acceptedTypes"] = [accepted_type.tree() for accepted_type in self.accepted_types]
        return tree | {"verbs": self.verbs}


class _Resource(msgspec.Struct, rename="camel"):
    """A resource of an APIGroupDiscoveryList."""

    resource: str | None = ""
    response_kind: _Kind | None = None
    scope: str | None = ""
    singular_resource: str | None = ""
    verbs: list[str] | None = None
    short_names: list[str] | None = None
    categories: list[str] | None = None
    subresources: list[_Subresource] | None = None

    def tree(self) -> Tree:
        lists = {"shortNames": self.short_names, "categories": self.categories}
        tree: Tree = {
            "resource": self.resource or "",
            "responseKind": (self.response_kind or _Kind()).tree(),
            "scope": self.scope or "",
            "singularResource": self.singular_resource or "",
            "verbs": self.verbs,
            **{name: values for name, values in lists.items() if values},
        }
        if self.subresources:
            tree["subresources"] = [subresource.tree() for subresource in self.subresources]
        return tree


class _Metadata(msgspec.Struct, frozen=True):
    name: str | None = ""


class _Version(msgspec.Struct):
    version: str | None = ""
    resources: list[_Resource] | None = None


class _Group(msgspec.Struct):
    metadata: _Metadata = _Metadata()
    versions: list[_Version] | None = None


class _GroupList(msgspec.Struct, rename="camel"):
    kind: str = ""
    api_version: str = ""
    items: list[_Group] | None = None


def versions_of(data: bytes) -> DiscoveredVersions:
    """Return the versions of an APIGroupDiscoveryList; raise ValueError for other data."""
    groups = msgspec.json.decode(data, type=_GroupList)
    _check(groups.kind, groups.api_version, _LIST, [f"{_GROUP}/{version}" for version in _VERSIONS])
    return {
        GroupVersion(group.metadata.name or "", version.version or ""): [
            resource.tree() for resource in version.resources or ()
        ]
        for group in groups.items or ()
        for version in group.versions or ()
    }


def resources_of(data: bytes) -> Sequence[Tree]:
    """Return an APIResourceList in the form of aggregated discovery; raise ValueError for other data."""
    api_resources = msgspec.json.decode(data, type=_ApiResourceList)
    _check(api_resources.kind, api_resources.api_version, "APIResourceList", ["v1"])
    rows = api_resources.resources or []
    resources = [_resource(row) for row in rows if "/" not in (row.name or "")]
    parents = {tree["resource"]: tree for tree in resources}
    for row in rows:
        name, slash, subresource = (row.name or "").partition("/")
        if not slash:
            continue
        parent = parents.get(name)
        if parent is None:
            parent = parents[name] = _Resource(resource=name, scope=row.scope).tree()
            resources.append(parent)
        if parent["scope"] != row.scope:
            raise ValueError(f"{row.name} has a different scope than {name}")
        kind = row.response_kind() if row.kind else _Kind().tree()
        entry = {"subresource": subresource, "responseKind": kind, "verbs": row.verbs}
        parent.setdefault("subresources", []).append(entry)
    return resources


def _resource(row: _ApiResource) -> Tree:
    return _Resource(
        resource=row.name,
        response_kind=_Kind(row.group, row.version, row.kind),
        scope=row.scope,
        singular_resource=row.singular_name,
        verbs=row.verbs,
        short_names=row.short_names,
        categories=row.categories,
    ).tree()


def _check(kind: str, api_version: str, expected_kind: str, versions: Sequence[str]) -> None:
    """Raise ValueError for an object of another kind; an object without kind and version is accepted."""
    if kind not in ("", expected_kind) or api_version not in ("", *versions):
        raise ValueError(f"an object of kind {kind!r} and version {api_version!r} is no {expected_kind}")
