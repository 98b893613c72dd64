"""Aggregated discovery: all groups, versions and resources in one document, for /api and for /apis."""

import hashlib
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

import orjson

from mockube.apimachinery.schema import minors
from mockube.apiserver.kinds.api_resource import GroupVersion, Resource, Subresource
from mockube.apiserver.kinds.kind import Group
from mockube.apiserver.wire.negotiation import EndpointType

Document: TypeAlias = dict[str, Any]


def endpoint(minor: str) -> EndpointType:
    """Return the endpoint with the versions of the document that a minor release serves."""
    if minors.is_before(minor, "1.30"):
        return EndpointType.DISCOVERY_UNTIL_1_29
    return EndpointType.DISCOVERY_UNTIL_1_32 if minors.is_before(minor, "1.33") else EndpointType.DISCOVERY


def discovery_items(groups: Iterable[Group]) -> Sequence[Document]:
    return [_group(group) for group in groups]


def items_of_minor(items: Sequence[Document], minor: str) -> Sequence[Document]:
    """Return the items as a minor release encodes them: until 1.33, a time that is not set was null."""
    if not minors.is_before(minor, "1.34"):
        return items
    unset = {"creationTimestamp": None}
    return [{**item, "metadata": {**item["metadata"], **unset}} for item in items]


def discovery(items: Sequence[Document], version: str) -> Document:
    return {
        "kind": "APIGroupDiscoveryList",
        "apiVersion": f"apidiscovery.k8s.io/{version}",
        "metadata": {},
        "items": items,
    }


def etag(items: Sequence[Document]) -> str:
    """Return the ETag of the document, which is the same for each of its versions: upstream hashes the list without its kind."""
    return f'"{hashlib.sha512(orjson.dumps({"metadata": {}, "items": items})).hexdigest().upper()}"'


def _group(group: Group) -> Document:
    metadata = {"name": group.name} if group.name else {}
    return {
        "metadata": metadata,
        "versions": [version_document(group, version) for version in group.versions],
    }


def version_document(group: Group, version: str) -> Document:
    rows = [_resource(row) for row in group.resources if row.version == version]
    return {"version": version, "resources": rows, "freshness": "Current"}


def _resource(row: Resource) -> Document:
    entry: Document = {
        "resource": row.name,
        "responseKind": _kind(_own_version(row), row.kind),
        "scope": "Namespaced" if row.namespaced else "Cluster",
        "singularResource": row.singular_name,
        "verbs": list(row.discovery_verbs),
    }
    lists = {"shortNames": row.short_names, "categories": row.categories}
    entry |= {name: list(values) for name, values in lists.items() if values}
    if row.subresources:
        entry["subresources"] = [_subresource(row, subresource) for subresource in row.subresources]
    return entry


def _subresource(row: Resource, subresource: Subresource) -> Document:
    kind = _kind(subresource.group_version or _own_version(row), subresource.kind or row.kind)
    return {"subresource": subresource.name, "responseKind": kind, "verbs": list(subresource.verbs)}


def _own_version(row: Resource) -> GroupVersion:
    """Return the group and version of the resource's kind: upstream leaves them empty, except for custom resources."""
    return (row.group, row.version) if row.custom else ("", "")


def _kind(group_version: GroupVersion, kind: str) -> Document:
    group, version = group_version
    return {"group": group, "version": version, "kind": kind}
