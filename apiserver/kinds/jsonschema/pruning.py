"""Pruning: fields that a schema does not specify are removed and reported, and null where it is not allowed."""

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from .schema import ANY_VALUE, OBJECT_FIELDS, Schema, additional_properties, is_embedded, properties
from .structural import PRESERVE

Unknown: TypeAlias = list[str]
"""The paths of removed fields, relative to the pruned value."""

Prune: TypeAlias = Callable[[Any, Unknown], Any]
"""Returns the pruned value, which may share unchanged parts with the old one."""


def _keep(value: Any, _unknown: Unknown) -> Any:
    return value


def pruner(schema: Schema, *, drop_null: bool = True) -> Prune:
    """Return the pruner. The value's type is decisive, not the schema's: an object in place of a string is emptied."""
    return _value_pruner(schema, frozenset(), drop_null=drop_null)


def root_pruner(schema: Schema, *, drop_null: bool = True) -> Prune:
    """Return the pruner of a whole object, which keeps metadata, kind and apiVersion."""
    return _value_pruner(schema, OBJECT_FIELDS, drop_null=drop_null)


def _value_pruner(schema: Schema, preserved_names: frozenset[str], *, drop_null: bool) -> Prune:
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
    unpruned_names = OBJECT_FIELDS if is_embedded(schema) else preserved_names
    pruners |= dict.fromkeys(unpruned_names, _keep)
    others = additional_properties(schema)
    if others is ANY_VALUE and not never_null and all(inner is _keep for inner in pruners.values()):
        return _keep
    others_never_null = (
        drop_null and others is not None and others is not ANY_VALUE and _is_never_null(others)
    )
    prune_other = None if others is None else pruner(others, drop_null=drop_null)
    return _prune_members(
        pruners, prune_other, lambda name: name in never_null or (others_never_null and name not in pruners)
    )


def _elements_pruner(schema: Schema, *, drop_null: bool) -> Prune:
    """Return the pruner of a list's elements. Elements of a preserved list are preserved, except within the fields of their own schema."""
    inner = schema.get("items")
    if inner is None:
        return _keep if schema.get(PRESERVE) else _prune_array(_remove_members)
    return _prune_array(
        pruner({PRESERVE: True} | inner if schema.get(PRESERVE) else inner, drop_null=drop_null)
    )


def _remove_members(value: Any, unknown: Unknown) -> Any:
    """Prune a value without a schema: its objects lose all members."""
    if value.__class__ is dict:
        unknown += value
        return {}
    return _prune_array(_remove_members)(value, unknown) if value.__class__ is list else value


def _is_never_null(schema: Schema) -> bool:
    """Return whether null is removed. With a default it stays, because the default replaces it."""
    return not schema.get("nullable") and schema.get("default") is None


def _prune_members(
    pruners: Mapping[str, Prune], others: Prune | None, is_never_null: Callable[[str], bool]
) -> Prune:
    def prune(value: Any, unknown: Unknown) -> Any:
        pruned: dict[str, Any] = {}
        for name, item in value.items():
            inner = pruners.get(name, others)
            if inner is None:
                unknown.append(name)
                continue
            if item is None:
                if not is_never_null(name):
                    pruned[name] = item
                continue
            previous_count = len(unknown)
            pruned[name] = inner(item, unknown)
            if len(unknown) > previous_count:
                unknown[previous_count:] = [_join_path(name, path) for path in unknown[previous_count:]]
        return pruned

    return prune


def _prune_array(inner: Prune) -> Prune:
    if inner is _keep:
        return _keep

    def prune(value: Any, unknown: Unknown) -> Any:
        pruned = []
        for index, item in enumerate(value):
            previous_count = len(unknown)
            pruned.append(inner(item, unknown))
            if len(unknown) > previous_count:
                unknown[previous_count:] = [
                    _join_path(f"[{index}]", path) for path in unknown[previous_count:]
                ]
        return pruned

    return prune


def _join_path(step: str, path: str) -> str:
    return f"{step}{path}" if path.startswith("[") else f"{step}.{path}"
