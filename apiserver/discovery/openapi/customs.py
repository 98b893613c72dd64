"""The definitions of a custom resource and of its list, written as those of the built-in kinds are."""

from collections.abc import Mapping
from typing import Any, Final, TypeAlias

from apiserver.crd.custom import Custom

Schema: TypeAlias = dict[str, Any]

_META: Final = "#/$defs/io.k8s.apimachinery.pkg.apis.meta.v1."
_API_VERSION: Final = (
    "APIVersion defines the versioned schema of this representation of an object. Servers should convert recognized "
    "schemas to the latest internal value, and may reject unrecognized values. More info: "
    "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#resources"
)
_KIND: Final = (
    "Kind is a string value representing the REST resource this object represents. Servers may infer this from the "
    "endpoint the client submits requests to. Cannot be updated. In CamelCase. More info: "
    "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#types-kinds"
)
_HEAD: Final = {
    "apiVersion": {"type": "string", "description": _API_VERSION},
    "kind": {"type": "string", "description": _KIND},
}


def definitions_of(custom: Custom) -> Mapping[str, Schema]:
    name, row = custom.definition_name, custom.row
    given = dict(custom.schema)
    metadata = {
        "description": "Standard object's metadata. More info: "
        "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata",
        "$ref": f"{_META}ObjectMeta",
    }
    if "properties" in given or "type" in given:
        given["properties"] = {**(given.get("properties") or {}), **_HEAD, "metadata": metadata}
    items = {"description": f"List of {row.name}.", "type": "array", "items": {"$ref": f"#/$defs/{name}"}}
    listed = {
        "description": f"{row.list_kind} is a list of {row.kind}",
        "type": "object",
        "required": ["items"],
        "properties": {
            **_HEAD,
            "items": items,
            "metadata": {"description": metadata["description"], "$ref": f"{_META}ListMeta"},
        },
    }
    return {name: given | _kind(custom, row.kind), f"{name}List": listed | _kind(custom, row.list_kind)}


def _kind(custom: Custom, kind: str) -> Schema:
    row = custom.row
    return {"x-kubernetes-group-version-kind": [{"group": row.group, "kind": kind, "version": row.version}]}
