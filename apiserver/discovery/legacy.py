"""Discovery one group at a time: /api, /apis, /apis/GROUP, /api/v1, /apis/GROUP/VERSION."""

import base64
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from mockube.apiserver.kinds.api_resource import Resource, Subresource
from mockube.apiserver.kinds.kind import Group

Document: TypeAlias = dict[str, Any]


def core_versions(address: str) -> Document:
    """Return the document at /api; `address` is the server's for clients."""
    server_addresses = [{"clientCIDR": "0.0.0.0/0", "serverAddress": address}]
    return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": server_addresses}


def group_list(groups: Iterable[Document]) -> Document:
    """Return the document at /apis. The core group is not in it, but at /api."""
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": list(groups)}


def group(entry: Document) -> Document:
    """Return the document at /apis/GROUP from the group's entry in the list."""
    return {"kind": "APIGroup", "apiVersion": "v1"} | entry


def resource_list(group_: Group, version: str) -> Document:
    """Return the resources of one version. As upstream, the list of the core group has no apiVersion."""
    head = {"kind": "APIResourceList", "apiVersion": "v1"} if group_.name else {"kind": "APIResourceList"}
    rows = [row for row in group_.resources if row.version == version]
    resources = [
        entry
        for row in rows
        for entry in (_resource(row), *(_subresource(row, subresource) for subresource in row.subresources))
    ]
    return head | {"groupVersion": f"{group_.name}/{version}".lstrip("/"), "resources": resources}


def _resource(row: Resource) -> Document:
    entry: Document = {
        "name": row.name,
        "singularName": row.singular_name,
        "namespaced": row.namespaced,
        "kind": row.kind,
        "verbs": list(row.discovery_verbs),
    }
    entry |= _without_empty({"shortNames": row.short_names, "categories": row.categories})
    if "watch" in row.verbs:
        entry["storageVersionHash"] = _storage_version_hash(row)
    return entry


def _subresource(row: Resource, subresource: Subresource) -> Document:
    entry: Document = {
        "name": f"{row.name}/{subresource.name}",
        "singularName": "",
        "namespaced": row.namespaced,
    }
    if subresource.group_version is not None:
        entry["group"], entry["version"] = subresource.group_version
    return entry | {"kind": subresource.kind or row.kind, "verbs": list(subresource.verbs)}


def _without_empty(fields: Mapping[str, Sequence[str]]) -> Document:
    return {name: list(values) for name, values in fields.items() if values}


def _storage_version_hash(row: Resource) -> str:
    """Return a hash that changes with the storage version."""
    group_, version = row.storage_version or row.group_version
    digest = hashlib.sha256(f"{group_}/{row.hashed_version or version}/{row.kind}".encode()).digest()
    return base64.b64encode(digest[:8]).decode()
