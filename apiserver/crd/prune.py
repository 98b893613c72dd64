"""Fields that a schema does not know are dropped from an object, and named."""

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from apiserver.crd.schema import ANYTHING, HEAD, Schema, is_embedded, is_object, items, properties, values

Unknown: TypeAlias = list[str]
"""Takes the path of each field that is dropped, from the value that is looked at."""

Prune: TypeAlias = Callable[[Any, Unknown], Any]
"""A new value, which may share with the old one what is kept whole."""


def _keep(value: Any, _unknown: Unknown) -> Any:
    return value


def pruner(schema: Schema) -> Prune:
    if is_object(schema):
        return _object(schema, frozenset())
    if schema.get("type") == "array":
        return _array(pruner(items(schema)))
    return _keep


def root_pruner(schema: Schema) -> Prune:
    """For a whole object, of which metadata and the like are looked at elsewhere."""
    return _object(schema, HEAD)


def _object(schema: Schema, kept: frozenset[str]) -> Prune:
    known = {name: pruner(inner) for name, inner in properties(schema).items()}
    known |= dict.fromkeys(HEAD if is_embedded(schema) else kept, _keep)
    rest = values(schema)
    if rest is ANYTHING and all(inner is _keep for inner in known.values()):
        return _keep
    return _members(known, None if rest is None else pruner(rest))


def _members(known: Mapping[str, Prune], rest: Prune | None) -> Prune:
    def prune(value: Any, unknown: Unknown) -> Any:
        if value.__class__ is not dict:
            return value
        made = {}
        for name, item in value.items():
            inner = known.get(name, rest)
            if inner is None:
                unknown.append(name)
                continue
            before = len(unknown)
            made[name] = inner(item, unknown)
            if len(unknown) > before:
                unknown[before:] = [_below(name, path) for path in unknown[before:]]
        return made

    return prune


def _array(inner: Prune) -> Prune:
    if inner is _keep:
        return _keep

    def prune(value: Any, unknown: Unknown) -> Any:
        if value.__class__ is not list:
            return value
        made = []
        for index, item in enumerate(value):
            before = len(unknown)
            made.append(inner(item, unknown))
            if len(unknown) > before:
                unknown[before:] = [_below(f"[{index}]", path) for path in unknown[before:]]
        return made

    return prune


def _below(step: str, path: str) -> str:
    return f"{step}{path}" if path.startswith("[") else f"{step}.{path}"
