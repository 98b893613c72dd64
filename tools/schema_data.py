"""Derive `apimachinery/schema/data/` from Kubernetes' Go types and its OpenAPI definitions.

What Go does with each field `tools/gotypes` finds by reflection; how lists and maps merge stands in the OpenAPI
definitions that `kubernetes-validate` carries. The two are put together, field by field, into one file for a release:

    cd tools/gotypes && go run . | python ../schema_data.py

The definitions must be of the minor release that the Go modules are of, and are looked for under it.
"""

import gzip
import sys
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeAlias

import orjson

Json: TypeAlias = dict[str, Any]

DATA = Path(__file__).resolve().parents[1] / "apimachinery/schema/data"

EXTENSIONS = {
    "x-kubernetes-list-type": "list_type",
    "x-kubernetes-list-map-keys": "map_keys",
    "x-kubernetes-map-type": "map_type",
    "x-kubernetes-patch-merge-key": "merge_key",
    "x-kubernetes-patch-strategy": "patch_strategy",
}
"""Facts of OpenAPI about a use of a type, and their names in the model."""


def minor_release(version: str) -> str:
    """Of a Kubernetes release "1.36" of a Go module's version "v0.36.3"."""
    return f"1.{version.split('.')[1]}"


def definitions_of(release: str) -> Mapping[str, Json]:
    folder = files("kubernetes_validate") / "kubernetes-json-schema" / f"v{release}.0-local"
    definitions: Mapping[str, Json] = orjson.loads((folder / "_definitions.json").read_bytes())["$defs"]
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


def main() -> None:
    facts = orjson.loads(sys.stdin.buffer.read())
    release = minor_release(facts["modules"]["k8s.io/api"])
    definitions = definitions_of(release)
    facts["structs"] = {
        name: merge_struct(name, fields, definitions) for name, fields in facts["structs"].items()
    }
    text = orjson.dumps(facts)
    path = DATA / f"{release}.json.gz"
    # Without a time in it, the same facts make the same file.
    path.write_bytes(gzip.compress(text, mtime=0))
    print(f"{path}: {len(facts['structs'])} structs, {len(text)} bytes, {path.stat().st_size} packed")


if __name__ == "__main__":
    main()
