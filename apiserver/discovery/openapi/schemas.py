"""Definitions of types, as each version of OpenAPI writes them, and which of them a kind needs."""

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any, Final, TypeAlias

import orjson

from apimachinery.schema.descriptions import openapi_definitions
from apiserver.crd.custom import Custom
from apiserver.discovery.openapi import additions
from apiserver.discovery.openapi.customs import definitions_of

Schema: TypeAlias = dict[str, Any]

_LOCAL: Final = "#/$defs/"
_DROPPED: Final = frozenset({"$schema", "$id", "additionalProperties"})
_TYPE_META: Final = frozenset({"apiVersion", "kind"})
"""Their allowed values are the package's addition; upstream says only that they are texts."""

V2: Final = "#/definitions/"
V3: Final = "#/components/schemas/"
_EITHER: Final[Mapping[str, Mapping[str, Schema]]] = {
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": {
        V2: {"type": "string", "format": "int-or-string"},
        V3: {"oneOf": [{"type": "integer"}, {"type": "string"}], "format": "int-or-string"},
    },
    "io.k8s.apimachinery.pkg.api.resource.Quantity": {
        V2: {"type": "string"},
        V3: {"oneOf": [{"type": "string"}, {"type": "number"}]},
    },
}
"""Types that may be either of two, which version 2 has no words for."""


class Definitions:
    """The definitions of one release."""

    def __init__(self, release: str = "1.36", *, customs: Iterable[Custom] = ()) -> None:
        added = {
            name: orjson.dumps(tree) for custom in customs for name, tree in definitions_of(custom).items()
        }
        self._texts = {**openapi_definitions(release), **added}
        self._additions = additions.load(release)
        self._tree = cache(self._read)
        self.names = tuple(self._texts)

    def __contains__(self, name: str) -> bool:
        return name in self._texts

    def schema(self, name: str, prefix: str) -> Schema:
        """A definition whose references begin with `prefix`, as the version of OpenAPI has it."""
        return _written(self._tree(name), prefix, name)

    def needed(self, names: Iterable[str]) -> list[str]:
        """These definitions and all that they refer to, in order of their names."""
        found: set[str] = set()
        left = [name for name in names if name in self._texts]
        while left:
            name = left.pop()
            if name not in found:
                found.add(name)
                left += _references(self._tree(name))
        return sorted(found)

    def of_kinds(self) -> Mapping[tuple[str, str, str], str]:
        """The definition of each group, version and kind."""
        found = {}
        for name in self.names:
            for gvk in self._tree(name).get("x-kubernetes-group-version-kind", ()):
                found[gvk["group"], gvk["version"], gvk["kind"]] = name
        return found

    def _read(self, name: str) -> Schema:
        read: Schema = orjson.loads(bytes(self._texts[name]))
        added = self._additions.get(name)
        return additions.extended(read, orjson.loads(bytes(added))) if added else read


def _references(tree: Any) -> list[str]:
    if isinstance(tree, list):
        return [name for item in tree for name in _references(item)]
    if not isinstance(tree, dict):
        return []
    here = [tree["$ref"].removeprefix(_LOCAL)] if isinstance(tree.get("$ref"), str) else []
    return here + [name for item in tree.values() for name in _references(item)]


def _written(tree: Schema, prefix: str, name: str) -> Schema:
    """A whole definition in a version's way of writing."""
    if name in _EITHER:
        return {"description": tree["description"]} | _EITHER[name][prefix]
    return _schema(tree, prefix)


def _schema(tree: Schema, prefix: str) -> Schema:
    made: Schema = {}
    for key, value in tree.items():
        if key == "properties":
            made[key] = {field: _property(field, schema, prefix) for field, schema in value.items()}
        elif key not in _DROPPED:
            made |= _KEYWORDS.get(key, _as_it_is)(key, value, prefix)
    if isinstance(tree.get("additionalProperties"), dict):
        made["additionalProperties"] = _schema(tree["additionalProperties"], prefix)
    if prefix == V3 and "$ref" in made and len(made) > 1:
        # Version 3.0 reads nothing that stands beside a reference.
        made["allOf"] = [{"$ref": made.pop("$ref")}]
    return made


def _property(field: str, tree: Schema, prefix: str) -> Schema:
    schema = _schema(tree, prefix)
    if field in _TYPE_META:
        schema.pop("enum", None)
    return schema


def _as_it_is(key: str, value: Any, _prefix: str) -> Schema:
    return {key: value}


def _type(key: str, value: Any, _prefix: str) -> Schema:
    """The package lets every optional field be null; upstream does not say so."""
    named = value if isinstance(value, str) else next(name for name in value if name != "null")
    return {key: named}


def _reference(key: str, value: str, prefix: str) -> Schema:
    return {key: prefix + value.removeprefix(_LOCAL)}


def _items(key: str, value: Schema, prefix: str) -> Schema:
    return {key: _schema(value, prefix)}


def _enum(key: str, value: list[Any], _prefix: str) -> Schema:
    return {key: [item for item in value if item is not None]}


def _default(key: str, value: Any, prefix: str) -> Schema:
    """Upstream keeps defaults out of version 2, whose clients would send them."""
    return {key: value} if prefix == V3 else {}


_KEYWORDS: Final[Mapping[str, Callable[[str, Any, str], Schema]]] = {
    "type": _type,
    "$ref": _reference,
    "items": _items,
    "enum": _enum,
    "default": _default,
}
