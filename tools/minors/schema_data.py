"""Join what Go does with the fields of Kubernetes' types with how their lists and maps merge.

The former `tools/gotypes` finds by reflection, the latter stands in the OpenAPI definitions that the release publishes.
"""

from collections.abc import Mapping
from typing import Any, Final, TypeAlias

import orjson

from tools.minors.gomodules import Release

Json: TypeAlias = dict[str, Any]

PUBLISHED: Final = "api/openapi-spec/swagger.json"
"""Where k8s.io/kubernetes has the document that a release publishes."""
EXTENSIONS = {
    "x-kubernetes-list-type": "list_type",
    "x-kubernetes-list-map-keys": "map_keys",
    "x-kubernetes-map-type": "map_type",
    "x-kubernetes-patch-merge-key": "merge_key",
    "x-kubernetes-patch-strategy": "patch_strategy",
}
"""Facts of OpenAPI about a use of a type, and their names in the model."""


def definitions_of(release: Release) -> Mapping[str, Json]:
    definitions: Mapping[str, Json] = orjson.loads((release.source / PUBLISHED).read_bytes())["definitions"]
    return definitions


def merging(schema: Json) -> Json:
    """How a use of a type merges. Strategies come as one text, "merge,retainKeys"."""
    extensions = {ours: schema[theirs] for theirs, ours in EXTENSIONS.items() if theirs in schema}
    if "patch_strategy" in extensions:
        extensions["patch_strategy"] = extensions["patch_strategy"].split(",")
    return extensions


def merge_type(go: Json, schema: Json, definitions: Mapping[str, Json]) -> Json:
    """A use's own extensions count before those of the struct that is used."""
    merged = go | merging(definitions.get(go.get("name", ""), {})) | merging(schema)
    if "element" in go:
        below = schema.get("items") or schema.get("additionalProperties") or {}
        merged["element"] = merge_type(go["element"], below, definitions)
    return merged


def merge_struct(name: str, fields: list[Json], definitions: Mapping[str, Json]) -> list[Json]:
    definition = definitions.get(name, {})
    properties, required = definition.get("properties", {}), definition.get("required", ())
    merged = []
    for field in fields:
        merged_field = field | {
            "type": merge_type(field["type"], properties.get(field["name"], {}), definitions)
        }
        if field["name"] in required:
            merged_field["required"] = True
        merged.append(merged_field)
    return merged
