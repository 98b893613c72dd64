"""The definitions of types in OpenAPI documents: upstream's, and those of custom resources.

Upstream's published definitions lack enumerations, defaults and some descriptions; `data/` has them, and `data/README.md` has its source.
"""

import gzip
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from pkgutil import get_data
from typing import Any, Final, TypeAlias

import orjson
from msgspec import Raw, Struct
from msgspec.json import decode

from mockube.apimachinery.schema import minors
from mockube.apimachinery.tree import sorted_keys
from mockube.apiserver.customresources.custom_version import CustomVersion

from .order import ordered_rules, ordered_schema

Schema: TypeAlias = dict[str, Any]

_GVK: Final = "x-kubernetes-group-version-kind"
_ONE_SCHEMA: Final = ("items", "additionalProperties")
"""Keywords whose value is a schema."""


class _Data(Struct):
    """Encoded definitions by name."""

    additions: Mapping[str, Raw]
    """Additions to the published definitions."""
    definitions: Mapping[str, Raw]
    """Definitions that are not published."""


class _Kinds(Struct, rename={"kinds": _GVK}):
    """The kinds of a definition, without the rest of it."""

    kinds: Sequence[Mapping[str, str]] = ()


def load(release: str) -> _Data:
    packed = get_data(__package__, "data/newest.json.gz")
    assert packed is not None, "the package is installed where its files can be read"
    data = decode(gzip.decompress(packed), type=_Data)
    return _Data(
        additions=minors.table_of_minor(data.additions, release, "additions"),
        definitions=minors.table_of_minor(data.definitions, release, "definitions"),
    )


def extend_schema(schema: Schema, addition: Schema) -> Schema:
    """Return the schema merged with an addition of the same form. A description is appended to that of the schema.

    Properties that the schema lacks are not added: they are not published.
    """
    extended_schema = schema | addition
    for keyword in _ONE_SCHEMA:
        if keyword in addition and keyword in schema:
            extended_schema[keyword] = extend_schema(schema[keyword], addition[keyword])
    if "properties" in addition:
        fields = schema.get("properties", {})
        extended_schema["properties"] = fields | {
            name: extend_schema(fields[name], added)
            for name, added in addition["properties"].items()
            if name in fields
        }
    if "description" in addition:
        extended_schema["description"] = schema.get("description", "") + addition["description"]
    return extended_schema


V2: Final = "#/definitions/"
V3: Final = "#/components/schemas/"

_META: Final = f"{V2}io.k8s.apimachinery.pkg.apis.meta.v1."
_CONVENTIONS: Final = "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md"
_API_VERSION: Final = (
    "APIVersion defines the versioned schema of this representation of an object. Servers should convert recognized "
    "schemas to the latest internal value, and may reject unrecognized values. More info: "
    f"{_CONVENTIONS}#resources"
)
_KIND: Final = (
    "Kind is a string value representing the REST resource this object represents. Servers may infer this from the "
    "endpoint the client submits requests to. Cannot be updated. In CamelCase. More info: "
    f"{_CONVENTIONS}#types-kinds"
)
_TYPE_META_PROPERTIES: Final = {
    "apiVersion": {"type": "string", "description": _API_VERSION},
    "kind": {"type": "string", "description": _KIND},
}
_METADATA: Final = {
    "description": f"Standard object's metadata. More info: {_CONVENTIONS}#metadata",
    "$ref": f"{_META}ObjectMeta",
}
_EMBEDDED: Final = {
    "apiVersion": {
        "type": "string",
        "description": "apiVersion defines the versioned schema of this representation of an object. "
        f"More info: {_CONVENTIONS}#resources",
    },
    "kind": {
        "type": "string",
        "description": "kind is a string value representing the type of this object. In CamelCase. "
        f"More info: {_CONVENTIONS}#types-kinds",
    },
    "metadata": _METADATA,
}


def definitions_of(custom: CustomVersion, prefix: str) -> Mapping[str, Schema]:
    """Return the definitions of a custom kind and its list for a version of OpenAPI."""
    name, row = custom.definition_name, custom.row
    schema = custom.schema
    if prefix == V2 and schema.get("x-kubernetes-preserve-unknown-fields"):
        published_schema: Schema = {"type": "object"}
    else:
        published_schema = _express_extensions(
            _without_unsupported(schema) if prefix == V2 else schema, prefix
        )
        if "properties" in published_schema or "type" in published_schema:
            published_schema["properties"] = {
                **(published_schema.get("properties") or {}),
                **_TYPE_META_PROPERTIES,
                "metadata": _METADATA,
            }
    items = {
        "description": f"List of {row.name}. More info: {_CONVENTIONS}",
        "type": "array",
        "items": {"$ref": f"{V2}{name}"},
    }
    list_schema = {
        "description": f"{row.list_kind} is a list of {row.kind}",
        "type": "object",
        "required": ["items"],
        "properties": {
            **_TYPE_META_PROPERTIES,
            "items": items,
            "metadata": {
                "description": f"Standard list metadata. More info: {_CONVENTIONS}#types-kinds",
                "$ref": f"{_META}ListMeta",
            },
        },
    }
    return {
        name: published_schema | _gvk_extensions(custom, row.kind),
        f"{name}List": list_schema | _gvk_extensions(custom, row.list_kind),
    }


def _map_subschemas(schema: Mapping[str, Any], change: Callable[[Mapping[str, Any]], Schema]) -> Schema:
    """Return the schema with its direct subschemas changed."""
    copy = dict(schema)
    for keyword in _ONE_SCHEMA:
        if isinstance(copy.get(keyword), dict):
            copy[keyword] = change(copy[keyword])
    if copy.get("properties"):
        copy["properties"] = {name: change(subschema) for name, subschema in copy["properties"].items()}
    return copy


def _express_extensions(schema: Mapping[str, Any], prefix: str) -> Schema:
    """Return the schema with its extensions expressed in OpenAPI."""
    expressed_schema = _map_subschemas(schema, lambda subschema: _express_extensions(subschema, prefix))
    if schema.get("x-kubernetes-int-or-string") and prefix == V3:
        expressed_schema.setdefault("anyOf", [{"type": "integer"}, {"type": "string"}])
    is_open = prefix == V2 and schema.get("x-kubernetes-preserve-unknown-fields")
    if schema.get("x-kubernetes-embedded-resource") and not is_open:
        expressed_schema["properties"] = {**(expressed_schema.get("properties") or {}), **_EMBEDDED}
        needed = expressed_schema.get("required", [])
        expressed_schema["required"] = [
            *needed,
            *(name for name in ("kind", "apiVersion") if name not in needed),
        ]
    return expressed_schema


def _without_unsupported(schema: Mapping[str, Any]) -> Schema:
    """Return the schema without parts that clients of version 2 cannot read, which upstream removes for kubectl."""
    supported_schema = {key: value for key, value in schema.items() if key not in _NOT_IN_V2}
    nullable, is_open = schema.get("nullable"), schema.get("x-kubernetes-preserve-unknown-fields")
    if nullable or is_open:
        supported_schema.pop("items", None)
        supported_schema.pop("properties", None)
    kind = supported_schema.get("type")
    if nullable or (kind == "array" and not supported_schema.get("items")) or (kind == "object" and is_open):
        supported_schema.pop("type", None)
    values = supported_schema.get("additionalProperties")
    nullables = {
        name
        for name, subschema in (supported_schema.get("properties") or {}).items()
        if subschema.get("nullable")
    }
    if isinstance(values, dict) and values.get("nullable"):
        nullables.update(supported_schema.get("required", ()))
    if "required" in supported_schema:
        supported_schema["required"] = [
            name for name in supported_schema["required"] if name not in nullables
        ]
        if not supported_schema["required"]:
            del supported_schema["required"]
    return _map_subschemas(supported_schema, _without_unsupported)


def _gvk_extensions(custom: CustomVersion, kind: str) -> Schema:
    """Return the extensions of a definition: its group, version and kind, and its selectable fields."""
    row = custom.row
    extensions: Schema = {_GVK: [{"group": row.group, "kind": kind, "version": row.version}]}
    if row.selectable:
        fields = [{"fieldPath": field.label} for field in row.selectable]
        extensions["x-kubernetes-selectable-fields"] = fields
    return extensions


_NOT_IN_V2: Final = frozenset({"allOf", "anyOf", "not", "nullable", "oneOf"})
_UNIONS: Final[Mapping[str, list[Schema]]] = {
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": [{"type": "integer"}, {"type": "string"}],
    "io.k8s.apimachinery.pkg.api.resource.Quantity": [{"type": "string"}, {"type": "number"}],
}
"""The types of definitions that are unions of two types, which version 2 cannot express."""


class Definitions:
    """The definitions of one release."""

    def __init__(
        self, release: str = minors.NEWEST, *, custom_versions: Iterable[CustomVersion] = ()
    ) -> None:
        self._release = release
        self._custom_versions = {
            name: custom
            for custom in custom_versions
            for name in (custom.definition_name, f"{custom.definition_name}List")
        }
        self._custom_definition = cache(self._make_custom_definition)
        data = load(release)
        published = minors.openapi_definitions(release)
        self._texts = {**data.definitions, **published}
        self._additions = {name: text for name, text in data.additions.items() if name in published}
        self._unpublished = data.definitions
        self._tree = cache(self._read)

    @property
    def names(self) -> Sequence[str]:
        return (*self._texts, *self._custom_versions)

    def __contains__(self, name: str) -> bool:
        return name in self._texts or name in self._custom_versions

    def _make_custom_definition(self, name: str, prefix: str) -> Schema:
        return definitions_of(self._custom_versions[name], prefix)[name]

    def schema(self, name: str, prefix: str) -> Schema:
        """Return a definition for the version of OpenAPI whose references begin with `prefix`."""
        if name in self._custom_versions:
            return _schema(self._custom_definition(name, prefix), prefix)
        return _definition(self._tree(name), prefix, name)

    def with_references(self, names: Iterable[str]) -> list[str]:
        """Return these definitions and all definitions to which they refer, sorted by name."""
        reachable_names: set[str] = set()
        remaining_names = [name for name in names if name in self]
        while remaining_names:
            name = remaining_names.pop()
            if name not in reachable_names:
                reachable_names.add(name)
                remaining_names += _references(self._tree(name))
        return sorted(reachable_names)

    def fields(self, name: str) -> Mapping[str, Schema]:
        """Return the fields of options, in the order of their names."""
        read: Schema = orjson.loads(bytes(self._unpublished[name]))
        return dict(sorted(read["properties"].items()))

    def definition_names_by_gvk(self) -> Mapping[tuple[str, str, str], str]:
        """Return the names of the definitions of kinds and lists, by group, version and kind."""
        names_by_kind = dict(_built_in_kinds(self._release))
        for name, custom in self._custom_versions.items():
            row = custom.row
            kind = row.kind if name == custom.definition_name else row.list_kind
            names_by_kind[row.group, row.version, kind] = name
        return names_by_kind

    def built_in_names_by_gvk(self) -> Mapping[tuple[str, str, str], str]:
        names_by_kind = {}
        for name, text in self._texts.items():
            for gvk in decode(text, type=_Kinds).kinds:
                names_by_kind[gvk["group"], gvk["version"], gvk["kind"]] = name
        return names_by_kind

    def _read(self, name: str) -> Schema:
        if name in self._custom_versions:
            return self._custom_definition(name, V3)
        read: Schema = orjson.loads(bytes(self._texts[name]))
        added = self._additions.get(name)
        return extend_schema(read, orjson.loads(bytes(added))) if added else read


@cache
def _built_in_kinds(release: str) -> Mapping[tuple[str, str, str], str]:
    return Definitions(release).built_in_names_by_gvk()


def _references(tree: Any) -> list[str]:
    if isinstance(tree, list):
        return [name for item in tree for name in _references(item)]
    if not isinstance(tree, dict):
        return []
    own_references = [tree["$ref"].removeprefix(V2)] if isinstance(tree.get("$ref"), str) else []
    return own_references + [name for item in tree.values() for name in _references(item)]


def _definition(tree: Schema, prefix: str, name: str) -> Schema:
    """Return a definition in the form of an OpenAPI version."""
    if prefix == V3 and name in _UNIONS:
        tree = {key: value for key, value in tree.items() if key != "type"} | {"oneOf": _UNIONS[name]}
    return _schema(tree, prefix)


def _schema(tree: Schema, prefix: str) -> Schema:
    """Return the schema for a version of OpenAPI, with the keywords in the order of upstream's documents."""
    openapi_schema: Schema = {}
    for key, value in tree.items():
        if key == "properties":
            openapi_schema[key] = {field: _schema(value[field], prefix) for field in sorted(value)}
        elif key != "additionalProperties":
            openapi_schema |= _KEYWORDS.get(key, _sort_value)(key, value, prefix)
    if isinstance(tree.get("additionalProperties"), dict):
        openapi_schema["additionalProperties"] = _schema(tree["additionalProperties"], prefix)
    if prefix == V3 and "$ref" in openapi_schema and len(openapi_schema) > 1:
        # In version 3.0, keywords beside a reference are ignored.
        openapi_schema["allOf"] = [{"$ref": openapi_schema.pop("$ref")}]
    return ordered_schema(openapi_schema)


def _sort_value(key: str, value: Any, _prefix: str) -> Schema:
    return {key: sorted_keys(value)}


def _rules(key: str, value: list[Schema], prefix: str) -> Schema:
    return {key: ordered_rules(value) if prefix == V3 else sorted_keys(value)}


def _reference(key: str, value: str, prefix: str) -> Schema:
    return {key: prefix + value.removeprefix(V2)}


def _items(key: str, value: Schema, prefix: str) -> Schema:
    return {key: _schema(value, prefix)}


def _enum(key: str, value: list[Any], _prefix: str) -> Schema:
    return {key: [item for item in value if item is not None]}


def _default(key: str, value: Any, prefix: str) -> Schema:
    """Return the default in version 3. Upstream omits it in version 2, whose clients would send it."""
    return {key: sorted_keys(value)} if prefix == V3 else {}


_KEYWORDS: Final[Mapping[str, Callable[[str, Any, str], Schema]]] = {
    "$ref": _reference,
    "items": _items,
    "enum": _enum,
    "default": _default,
    "x-kubernetes-validations": _rules,
}
