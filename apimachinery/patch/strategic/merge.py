"""Carrying out a strategic merge patch.

The type of a list determines whether it is merged or replaced, and by which key its objects are matched; the patch may
overrule that with directives. What a patch does not reach is shared with the object before.
"""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from mockube.apimachinery.patch import gofmt
from mockube.apimachinery.patch.errors import Undecodable, Unmergeable
from mockube.apimachinery.patch.strategic.directives import (
    DELETE,
    DELETE_FROM_LIST,
    DIRECTIVE,
    MERGE,
    REPLACE,
    RETAIN_KEYS,
    SET_ORDER,
    is_deletion,
    without_directives,
    without_nulls,
)
from mockube.apimachinery.patch.strategic.elements import (
    Elements,
    are_objects,
    arrange_elements,
    list_type,
    member_type,
    name_of,
    positions,
    wrong_type,
)
from mockube.apimachinery.schema.model import Type

Json: TypeAlias = Mapping[str, Any]


def apply(original: Json, patch: Any, kind: Type | None) -> dict[str, Any]:
    """The object with the patch carried out. `kind` is None for what has no type, which cannot be patched so."""
    if kind is None:
        raise Undecodable("strategic merge patch format is not supported")
    if not isinstance(patch, dict | None):
        raise Undecodable(
            f"json: cannot unmarshal {gofmt.json_kind(patch)} into Go value of type map[string]interface {{}}"
        )
    return _merge(original, patch or {}, kind)


def as_merged(patch: Any, original: Any) -> Any:
    """The patch as upstream's library leaves it behind: of what the object did not have, without nulls and directives."""
    if not isinstance(patch, dict) or not isinstance(original, dict):
        return patch if type(patch) is type(original) else _left_behind(without_nulls(patch))
    return {name: value and as_merged(value, original.get(name)) for name, value in patch.items()}


def _left_behind(value: Any) -> Any:
    """The value without the directives below it; one that is itself a directive stays."""
    if isinstance(value, list):
        return list(map(_left_behind, value))
    return value if isinstance(value, dict) and DIRECTIVE in value else without_directives(value)


def _merge(original: Json, patch: Json, parent: Type) -> dict[str, Any]:
    """Return a new object; neither of the two is changed."""
    if DIRECTIVE in patch:
        return _replace(patch)
    return _merge_into(_retain_keys(original, patch), patch, parent)


def _merge_into(merged: dict[str, Any], patch: Json, parent: Type) -> dict[str, Any]:
    done = _merge_ordered_lists(merged, patch, parent)
    for name, value in patch.items():
        if name.startswith(DELETE_FROM_LIST):
            list_name = _list_name(name, DELETE_FROM_LIST, "invalid patch format of primitive list")
            _merge_member(merged, list_name, value, parent, deleting=True)
        elif name not in done:
            _merge_member(merged, name, value, parent)
    return merged


def _replace(patch: Json) -> dict[str, Any]:
    directive = patch[DIRECTIVE]
    if directive == DELETE:
        return {}
    if directive != REPLACE:
        raise _unknown_directive(patch)
    return {name: value for name, value in patch.items() if name != DIRECTIVE}


def _unknown_directive(patch: Json) -> Unmergeable:
    return Unmergeable(
        f"unknown patch type: {gofmt.text(patch[DIRECTIVE])} in map: {gofmt.format_verb_v(patch)}"
    )


def _retain_keys(original: Json, patch: Json) -> dict[str, Any]:
    """The object without the members that `$retainKeys` does not name, if there is such a directive."""
    if RETAIN_KEYS not in patch:
        return dict(original)
    if not isinstance(patch[RETAIN_KEYS], list):
        raise Undecodable("invalid patch format of retainKeys")
    retained = {name for name in patch[RETAIN_KEYS] if isinstance(name, str)}
    for name, value in patch.items():
        exempt = value is None or name.startswith((RETAIN_KEYS, DELETE_FROM_LIST, SET_ORDER))
        if not exempt and name not in retained:
            raise Undecodable("invalid patch format of retainKeys")
    return {name: value for name, value in original.items() if name in retained}


def _list_name(directive: str, prefix: str, malformed: str) -> str:
    """Which list a directive is about."""
    word, slash, name = directive.partition("/")
    if not slash or word != prefix:
        raise Undecodable(malformed)
    return name


def _merge_member(
    merged: dict[str, Any], name: str, value: Any, parent: Type, *, deleting: bool = False
) -> None:
    current: Any = merged.get(name)
    if value is None:
        merged.pop(name, None)
    elif type(current) is not type(value):
        if not deleting:
            _put(merged, name, value)
    elif isinstance(value, dict):
        merged[name] = _merged_object(current, value, member_type(parent, name))
    elif isinstance(value, list):
        merged[name] = _merged_list(current, value, list_type(parent, name), deleting=deleting)
    else:
        merged[name] = value


def _put(merged: dict[str, Any], name: str, value: Any) -> None:
    plain_value = without_directives(without_nulls(value))
    if plain_value is None:
        merged.pop(name, None)
    else:
        merged[name] = plain_value


def _merged_object(current: Json, patch: Json, kind: Type) -> Json:
    return patch if REPLACE in kind.patch_strategy else _merge(current, patch, kind)


# --- lists


def _merged_list(current: Elements, patch: Elements, kind: Type, *, deleting: bool = False) -> Elements:
    if MERGE not in kind.patch_strategy and not deleting:
        return patch
    if not current and not patch:
        return current
    if are_objects(current, patch):
        if not kind.merge_key:
            raise Unmergeable("cannot merge lists without merge key for struct")
        current, patch = _without_directives(current, patch, kind.merge_key)
        merged = _merged_elements(current, patch, kind)
    elif deleting:
        deleted = positions(patch, "")
        return [item for item in current if item not in deleted]
    else:
        merged = list(dict.fromkeys([*current, *patch]))
    return arrange_elements(merged, patch_order=patch, live=current, key=kind.merge_key)


def _without_directives(current: Elements, patch: Elements, key: str) -> tuple[Elements, Elements]:
    """Both lists after the elements of the patch that are directives."""
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


def _merged_elements(current: Elements, patch: Elements, kind: Type) -> list[Any]:
    merged = list(current)
    position_by_name = positions([item for item in current if kind.merge_key in item], kind.merge_key)
    new: dict[int, dict[str, Any]] = {}
    """Elements that were merged here: if the patch has one again, it is changed and not copied again."""
    for item in patch:
        name = name_of(item, kind.merge_key)
        if name in position_by_name:
            index = position_by_name[name]
            if index in new and RETAIN_KEYS not in item and DIRECTIVE not in item:
                _merge_into(new[index], item, kind.items)
            else:
                merged[index] = new[index] = _merge(merged[index], item, kind.items)
        else:
            position_by_name[name] = len(merged)
            merged.append(item)
    return merged


def _merge_ordered_lists(merged: dict[str, Any], patch: Json, parent: Type) -> set[str]:
    """Merge the lists that `$setElementOrder` directives are about. Returns the members of the patch this took."""
    done = {RETAIN_KEYS}
    for directive, order in patch.items():
        if directive.startswith(SET_ORDER):
            name = _list_name(directive, SET_ORDER, "invalid patch format of setElementOrder list")
            _merge_ordered_list(merged, name, patch, order, list_type(parent, name))
            done |= {directive, name}
    return done


def _merge_ordered_list(merged: dict[str, Any], name: str, patch: Json, order: Any, kind: Type) -> None:
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
    """Return the list that upstream compares with: new objects take the positions of deleted ones."""
    before, after = positions(current, key), positions(elements, key)
    old_items = [item for item in current if item[key] in after]
    new = [item for item in changes if item.get(key) in after and item[key] not in before]
    return (old_items + new)[: len(current)]


def _check_order(changes: Elements, order: Elements, key: str) -> None:
    """The elements of the patch must have the same order in `$setElementOrder`, which may contain further ones."""
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
