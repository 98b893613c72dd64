"""Application of strategic merge patches.

The type of a list determines whether it is merged or replaced, and by which key its objects are matched; directives in the
patch can override that. The new object shares the parts that the patch does not reach.
"""

from collections.abc import Sequence
from typing import Any

from mockube.apimachinery.patch import gofmt
from mockube.apimachinery.patch.errors import UndecodablePatch, Unmergeable
from mockube.apimachinery.schema.model import SchemaType
from mockube.apimachinery.tree import ReadOnlyTree, without_nulls

from .directives import (
    DELETE,
    DELETE_FROM_LIST,
    DIRECTIVE,
    MERGE,
    REPLACE,
    RETAIN_KEYS,
    SET_ORDER,
    is_deletion,
    without_directives,
)
from .elements import (
    Elements,
    are_objects,
    arrange_elements,
    list_type,
    member_type,
    name_of,
    positions,
    wrong_type,
)


def apply(original: ReadOnlyTree, patch: Any, kind: SchemaType | None) -> dict[str, Any]:
    """Apply a patch. `kind` is None for objects without a type, which do not support strategic merge patches."""
    if kind is None:
        raise UndecodablePatch("strategic merge patch format is not supported")
    if not isinstance(patch, dict | None):
        raise UndecodablePatch(
            f"json: cannot unmarshal {gofmt.json_kind(patch)} into Go value of type map[string]interface {{}}"
        )
    return _merge(original, patch or {}, kind)


def patch_after_merge(patch: Any, original: Any) -> Any:
    """Return the patch as upstream's library mutates it: values that are new in the object lose nulls and directives."""
    if not isinstance(patch, dict) or not isinstance(original, dict):
        return patch if type(patch) is type(original) else _without_inner_directives(without_nulls(patch))
    return {name: value and patch_after_merge(value, original.get(name)) for name, value in patch.items()}


def _without_inner_directives(value: Any) -> Any:
    """Return a value without nested directives; one that is itself a directive stays."""
    if isinstance(value, list):
        return list(map(_without_inner_directives, value))
    return value if isinstance(value, dict) and DIRECTIVE in value else without_directives(value)


def _merge(original: ReadOnlyTree, patch: ReadOnlyTree, parent: SchemaType) -> dict[str, Any]:
    """Merge a patch into an object and return the new object."""
    if DIRECTIVE in patch:
        return _replace(patch)
    return _merge_into(_retain_keys(original, patch), patch, parent)


def _merge_into(merged: dict[str, Any], patch: ReadOnlyTree, parent: SchemaType) -> dict[str, Any]:
    merged_names = _merge_ordered_lists(merged, patch, parent)
    for name, value in patch.items():
        if name.startswith(DELETE_FROM_LIST):
            list_name = _list_name(name, DELETE_FROM_LIST, "invalid patch format of primitive list")
            _merge_member(merged, list_name, value, parent, is_deletion_list=True)
        elif name not in merged_names:
            _merge_member(merged, name, value, parent)
    return merged


def _replace(patch: ReadOnlyTree) -> dict[str, Any]:
    directive = patch[DIRECTIVE]
    if directive == DELETE:
        return {}
    if directive != REPLACE:
        raise _unknown_directive(patch)
    return {name: value for name, value in patch.items() if name != DIRECTIVE}


def _unknown_directive(patch: ReadOnlyTree) -> Unmergeable:
    return Unmergeable(
        f"unknown patch type: {gofmt.format_verb_s(patch[DIRECTIVE])} in map: {gofmt.format_verb_v(patch)}"
    )


def _retain_keys(original: ReadOnlyTree, patch: ReadOnlyTree) -> dict[str, Any]:
    """Return a copy of the object; if the patch has `$retainKeys`, only with the members that it names."""
    if RETAIN_KEYS not in patch:
        return dict(original)
    if not isinstance(patch[RETAIN_KEYS], list):
        raise UndecodablePatch("invalid patch format of retainKeys")
    retained = {name for name in patch[RETAIN_KEYS] if isinstance(name, str)}
    for name, value in patch.items():
        exempt = value is None or name.startswith((RETAIN_KEYS, DELETE_FROM_LIST, SET_ORDER))
        if not exempt and name not in retained:
            raise UndecodablePatch("invalid patch format of retainKeys")
    return {name: value for name, value in original.items() if name in retained}


def _list_name(directive: str, prefix: str, malformed: str) -> str:
    """Return the name of the list that a directive refers to."""
    word, slash, name = directive.partition("/")
    if not slash or word != prefix:
        raise UndecodablePatch(malformed)
    return name


def _merge_member(
    merged: dict[str, Any], name: str, value: Any, parent: SchemaType, *, is_deletion_list: bool = False
) -> None:
    current: Any = merged.get(name)
    if value is None:
        merged.pop(name, None)
    elif type(current) is not type(value):
        if not is_deletion_list:
            _put(merged, name, value)
    elif isinstance(value, dict):
        merged[name] = _merged_object(current, value, member_type(parent, name))
    elif isinstance(value, list):
        merged[name] = _merged_list(
            current, value, list_type(parent, name), is_deletion_list=is_deletion_list
        )
    else:
        merged[name] = value


def _put(merged: dict[str, Any], name: str, value: Any) -> None:
    plain_value = without_directives(without_nulls(value))
    if plain_value is None:
        merged.pop(name, None)
    else:
        merged[name] = plain_value


def _merged_object(current: ReadOnlyTree, patch: ReadOnlyTree, kind: SchemaType) -> ReadOnlyTree:
    return patch if REPLACE in kind.patch_strategy else _merge(current, patch, kind)


# --- lists


def _merged_list(
    current: Elements, patch: Elements, kind: SchemaType, *, is_deletion_list: bool = False
) -> Elements:
    if MERGE not in kind.patch_strategy and not is_deletion_list:
        return patch
    if not current and not patch:
        return current
    if are_objects(current, patch):
        if not kind.merge_key:
            raise Unmergeable("cannot merge lists without merge key for struct")
        current, patch = _apply_directives(current, patch, kind.merge_key)
        merged = _merged_elements(current, patch, kind)
    elif is_deletion_list:
        deleted = positions(patch, "")
        return [item for item in current if item not in deleted]
    else:
        merged = list(dict.fromkeys([*current, *patch]))
    return arrange_elements(merged, patch_order=patch, live=current, key=kind.merge_key)


def _apply_directives(current: Elements, patch: Elements, key: str) -> tuple[Elements, Elements]:
    """Apply the directives among the patch's elements; return the remaining current elements and the patch's other elements."""
    plain = [item for item in patch if DIRECTIVE not in item]
    directives = [item for item in patch if DIRECTIVE in item]
    deleted = set()
    for item in directives:
        if item[DIRECTIVE] == MERGE:
            raise Unmergeable("merging lists cannot yet be specified in the patch")
        if is_deletion(item):
            deleted.add(name_of(item, key))
        elif item[DIRECTIVE] != REPLACE:
            raise _unknown_directive(item)
    if any(item[DIRECTIVE] == REPLACE for item in directives):
        return plain, []
    return [item for item in current if key not in item or name_of(item, key) not in deleted], plain


def _merged_elements(current: Elements, patch: Elements, kind: SchemaType) -> list[Any]:
    merged = list(current)
    position_by_name = positions([item for item in current if kind.merge_key in item], kind.merge_key)
    merged_copies: dict[int, dict[str, Any]] = {}
    """The merged elements by index: if the patch has an element again, its copy is changed in place."""
    for item in patch:
        name = name_of(item, kind.merge_key)
        if name in position_by_name:
            index = position_by_name[name]
            if index in merged_copies and RETAIN_KEYS not in item and DIRECTIVE not in item:
                _merge_into(merged_copies[index], item, kind.items)
            else:
                merged[index] = merged_copies[index] = _merge(merged[index], item, kind.items)
        else:
            position_by_name[name] = len(merged)
            merged.append(item)
    return merged


def _merge_ordered_lists(merged: dict[str, Any], patch: ReadOnlyTree, parent: SchemaType) -> set[str]:
    """Merge the lists with `$setElementOrder` directives; return the members of the patch that this used."""
    merged_names = {RETAIN_KEYS}
    for directive, order in patch.items():
        if directive.startswith(SET_ORDER):
            name = _list_name(directive, SET_ORDER, "invalid patch format of setElementOrder list")
            _merge_ordered_list(merged, name, patch, order, list_type(parent, name))
            merged_names |= {directive, name}
    return merged_names


def _merge_ordered_list(
    merged: dict[str, Any], name: str, patch: ReadOnlyTree, order: Any, kind: SchemaType
) -> None:
    for holder in ({name: order}, merged, patch):
        if name in holder and not isinstance(holder[name], list):
            raise wrong_type([], holder[name])
    current: Sequence[Any] = merged.get(name, [])
    changes: Sequence[Any] = patch.get(name, [])
    _check_order(changes, order, kind.merge_key)
    if name in merged and name in patch:
        elements = _merged_list(current, changes, kind)
    elif name in merged or name in patch:
        elements = current or without_directives(changes)
    else:
        return
    if are_objects(current, changes):
        current = _fill_deleted_positions(current, elements, changes, kind.merge_key)
    merged[name] = arrange_elements(elements, patch_order=order, live=current, key=kind.merge_key)


def _fill_deleted_positions(current: Elements, elements: Elements, changes: Elements, key: str) -> Elements:
    """Return the list that upstream compares positions with: new objects take the places of deleted ones."""
    before, after = positions(current, key), positions(elements, key)
    old_items = [item for item in current if item[key] in after]
    new_items = [item for item in changes if item.get(key) in after and item[key] not in before]
    return (old_items + new_items)[: len(current)]


def _check_order(changes: Elements, order: Elements, key: str) -> None:
    """Check that `$setElementOrder` has the elements of the patch in the same order; it can contain others."""
    if not changes or not order:
        return
    index = 0
    for item in changes:
        if key and is_deletion(item):
            continue
        if not (isinstance(item, dict) and DIRECTIVE in item):
            while index < len(order) and name_of(item, key) != name_of(order[index], key):
                index += 1
            index += 1
        elif index == len(order):
            index += 1
        if index > len(order):
            raise Unmergeable(
                f"The order in patch list:\n{gofmt.format_verb_v(list(changes))}\n"
                f" doesn't match {SET_ORDER} list:\n{gofmt.format_verb_v(list(order))}\n"
            )
