"""Fields that a schema does not know are dropped from an object, and named; null is dropped where it may not be."""

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from mockube.apiserver.kinds.apiextensions.structural import PRESERVE
from mockube.apiserver.kinds.jsonschema.schema import (
    ANYTHING,
    HEAD,
    Schema,
    is_embedded,
    properties,
    values,
)

Unknown: TypeAlias = list[str]
"""Collects the path of each dropped field, relative to the pruned value."""

Prune: TypeAlias = Callable[[Any, Unknown], Any]
"""Returns the pruned value, which may share unchanged parts with the old one."""


def _keep(value: Any, _unknown: Unknown) -> Any:
    return value


def pruner(schema: Schema, *, drop_null: bool = True) -> Prune:
    """Return the pruner by the value's own type, whatever the schema's type is: an object in place of a string is emptied."""
    return _value(schema, frozenset(), drop_null=drop_null)


def root_pruner(schema: Schema, *, drop_null: bool = True) -> Prune:
    """Return the pruner of a whole object, whose metadata, kind and apiVersion are handled elsewhere."""
    return _value(schema, HEAD, drop_null=drop_null)


def _value(schema: Schema, preserved_names: frozenset[str], *, drop_null: bool) -> Prune:
    prune_members = _members_pruner(schema, preserved_names, drop_null=drop_null)
    prune_elements = _elements_pruner(schema, drop_null=drop_null)
    if prune_members is _keep and prune_elements is _keep:
        return _keep

    def prune(value: Any, unknown: Unknown) -> Any:
        if value.__class__ is dict:
            return prune_members(value, unknown)
        return prune_elements(value, unknown) if value.__class__ is list else value

    return prune


def _members_pruner(schema: Schema, preserved_names: frozenset[str], *, drop_null: bool) -> Prune:
    pruners = {name: pruner(inner, drop_null=drop_null) for name, inner in properties(schema).items()}
    never_null = frozenset(
        name for name, inner in properties(schema).items() if drop_null and _is_never_null(inner)
    )
    unpruned_names = HEAD if is_embedded(schema) else preserved_names
    pruners |= dict.fromkeys(unpruned_names, _keep)
    rest = values(schema)
    if rest is ANYTHING and not never_null and all(inner is _keep for inner in pruners.values()):
        return _keep
    rest_never_null = drop_null and rest is not None and rest is not ANYTHING and _is_never_null(rest)
    of_rest = None if rest is None else pruner(rest, drop_null=drop_null)
    return _members(
        pruners, of_rest, lambda name: name in never_null or (rest_never_null and name not in pruners)
    )


def _elements_pruner(schema: Schema, *, drop_null: bool) -> Prune:
    """Return the pruner of a list's elements. Elements of a preserved list are preserved, except within the fields of their own schema."""
    inner = schema.get("items")
    if inner is None:
        return _keep if schema.get(PRESERVE) else _array(_remove_members)
    return _array(pruner({PRESERVE: True} | inner if schema.get(PRESERVE) else inner, drop_null=drop_null))


def _remove_members(value: Any, unknown: Unknown) -> Any:
    """Prune a value without a schema: its objects lose all members."""
    if value.__class__ is dict:
        unknown += value
        return {}
    return _array(_remove_members)(value, unknown) if value.__class__ is list else value


def _is_never_null(schema: Schema) -> bool:
    """Null means the default, if there is one."""
    return not schema.get("nullable") and schema.get("default") is None


def _members(pruners: Mapping[str, Prune], rest: Prune | None, is_never_null: Callable[[str], bool]) -> Prune:
    def prune(value: Any, unknown: Unknown) -> Any:
        pruned: dict[str, Any] = {}
        for name, item in value.items():
            inner = pruners.get(name, rest)
            if inner is None:
                unknown.append(name)
                continue
            if item is None:
                if not is_never_null(name):
                    pruned[name] = item
                continue
            before = len(unknown)
            pruned[name] = inner(item, unknown)
            if len(unknown) > before:
                unknown[before:] = [_join_path(name, path) for path in unknown[before:]]
        return pruned

    return prune


def _array(inner: Prune) -> Prune:
    if inner is _keep:
        return _keep

    def prune(value: Any, unknown: Unknown) -> Any:
        pruned = []
        for index, item in enumerate(value):
            before = len(unknown)
            pruned.append(inner(item, unknown))
            if len(unknown) > before:
                unknown[before:] = [_join_path(f"[{index}]", path) for path in unknown[before:]]
        return pruned

    return prune


def _join_path(step: str, path: str) -> str:
    return f"{step}{path}" if path.startswith("[") else f"{step}.{path}"
