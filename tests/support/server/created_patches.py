"""Creation of the strategic merge patch between two objects, as clients do it: the inverse of applying one."""

from typing import Any

from mockube.apimachinery.patch import gofmt
from mockube.apimachinery.patch.draft import equal
from mockube.apimachinery.patch.strategic.directives import (
    DELETE,
    DELETE_FROM_LIST,
    DIRECTIVE,
    MERGE,
    REPLACE,
    RETAIN,
    RETAIN_KEYS,
    SET_ORDER,
)
from mockube.apimachinery.patch.strategic.elements import (
    Elements,
    are_objects,
    list_type,
    member_type,
    name_of,
)
from mockube.apimachinery.schema.model import SchemaType
from mockube.apimachinery.tree import ReadOnlyTree


def create_two_way(original: ReadOnlyTree, modified: ReadOnlyTree, kind: SchemaType) -> dict[str, Any]:
    """Return the patch that changes `original` into `modified`. Objects in `modified` must have no null members."""
    return _diff(original, modified, kind, retain_keys=False)


def _diff(
    original: ReadOnlyTree, modified: ReadOnlyTree, parent: SchemaType, *, retain_keys: bool
) -> dict[str, Any]:
    """Return the patch between two objects; with `retain_keys`, it names the members to keep, and others are removed."""
    patch: dict[str, Any] = {name: None for name in original if name not in modified}
    for name, value in modified.items():
        current = original.get(name)
        if name not in original or type(current) is not type(value):
            patch[name] = value
        elif not equal(current, value):
            patch |= _diff_member(name, current, value, parent)
    retained = sorted(name for name, value in modified.items() if value is not None)
    if retain_keys and retained and patch:
        patch[RETAIN_KEYS] = retained
    return patch


def _diff_member(name: str, current: Any, value: Any, parent: SchemaType) -> dict[str, Any]:
    """Return the patch of a member that is in both objects and differs."""
    if isinstance(value, dict):
        kind = member_type(parent, name)
        if REPLACE not in kind.patch_strategy:
            return {name: _diff(current, value, kind, retain_keys=RETAIN in kind.patch_strategy)}
    elif isinstance(value, list):
        kind = list_type(parent, name)
        if MERGE in kind.patch_strategy and current:
            return _diff_lists(name, current, value, kind)
    return {name: value}


def _diff_lists(name: str, current: Elements, value: Elements, kind: SchemaType) -> dict[str, Any]:
    if are_objects(current, value):
        changes, deleted = _diff_objects(current, value, kind)
        changes, deleted = changes + deleted, []
        order: list[Any] = [{kind.merge_key: item[kind.merge_key]} for item in value]
    else:
        current_values = set(current)
        changes = [item for item in value if item not in current_values]
        deleted = sorted(current_values - set(value), key=gofmt.format_verb_v)
        order = list(value)
    lists = {name: changes, f"{DELETE_FROM_LIST}/{name}": deleted, f"{SET_ORDER}/{name}": order}
    return {directive: items for directive, items in lists.items() if items}


def _diff_objects(current: Elements, value: Elements, kind: SchemaType) -> tuple[list[Any], list[Any]]:
    """Return the patches of new and changed objects, and the directives that delete the missing ones."""
    key = kind.merge_key
    before = {name_of(item, key): item for item in current}
    changes = []
    for item in value:
        name = name_of(item, key)
        old_item = before.pop(name, None)
        if old_item is None:
            changes.append(item)
        elif patch := _diff(old_item, item, kind.items, retain_keys=RETAIN in kind.patch_strategy):
            changes.append(patch | {key: name})
    deleted_names = sorted(before, key=gofmt.format_verb_v)
    return changes, [{key: name, DIRECTIVE: DELETE} for name in deleted_names]
