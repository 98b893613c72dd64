"""Making the strategic merge patch that turns one object into another."""

from collections.abc import Mapping
from typing import Any, TypeAlias

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
from mockube.apimachinery.schema.model import Type

Json: TypeAlias = Mapping[str, Any]


def create_two_way(original: Json, modified: Json, kind: Type) -> dict[str, Any]:
    """The patch that makes `modified` of `original`, if no object in `modified` has a null member."""
    return _diff(original, modified, kind, retaining=False)


def _diff(original: Json, modified: Json, parent: Type, *, retaining: bool) -> dict[str, Any]:
    """`retaining`: the patch names the members to keep, so that unknown members are removed."""
    patch: dict[str, Any] = {name: None for name in original if name not in modified}
    for name, value in modified.items():
        current = original.get(name)
        if name not in original or type(current) is not type(value):
            patch[name] = value
        elif not equal(current, value):
            patch |= _diff_member(name, current, value, parent)
    retained = sorted(name for name, value in modified.items() if value is not None)
    if retaining and retained and patch:
        patch[RETAIN_KEYS] = retained
    return patch


def _diff_member(name: str, current: Any, value: Any, parent: Type) -> dict[str, Any]:
    """Return the patch of a member that exists in both objects and differs."""
    if isinstance(value, dict):
        kind = member_type(parent, name)
        if REPLACE not in kind.patch_strategy:
            return {name: _diff(current, value, kind, retaining=RETAIN in kind.patch_strategy)}
    elif isinstance(value, list):
        kind = list_type(parent, name)
        if MERGE in kind.patch_strategy and current:
            return _diff_lists(name, current, value, kind)
    return {name: value}


def _diff_lists(name: str, current: Elements, value: Elements, kind: Type) -> dict[str, Any]:
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


def _diff_objects(current: Elements, value: Elements, kind: Type) -> tuple[list[Any], list[Any]]:
    """Return patches for the objects that are new or different, and for those to delete."""
    key = kind.merge_key
    before = {name_of(item, key): item for item in current}
    changes = []
    for item in value:
        name = name_of(item, key)
        old_item = before.pop(name, None)
        if old_item is None:
            changes.append(item)
        elif patch := _diff(old_item, item, kind.items, retaining=RETAIN in kind.patch_strategy):
            changes.append(patch | {key: name})
    deleted_names = sorted(before, key=gofmt.format_verb_v)
    return changes, [{key: name, DIRECTIVE: DELETE} for name in deleted_names]
