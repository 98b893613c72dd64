"""Merging of an applied configuration into an object. It never removes fields.

Unchanged parts of the result are identical to those of the live object, so that comparing the two is cheap.
"""

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from operator import is_
from typing import Any

from .atoms import DEDUCED, Atom, ListAtom, MapAtom, Scalar, Untyped
from .compare import ABSENT, equal
from .elements import Element


def merge(atom: Atom, live: Any, applied: Any) -> Any:
    """Merge a valid configuration; raise `TypedError` if an item of a live list has no path element."""
    if live is ABSENT:
        return applied
    if not isinstance(atom, Scalar) and not atom.atomic:
        if isinstance(atom, ListAtom):
            return _merge_lists(atom, live, applied)
        if isinstance(applied, dict | None):
            return _merge_maps(atom, live, applied)
    return _merge_whole(live, applied)


def _merge_whole(live: Any, applied: Any) -> Any:
    return live if equal(live, applied) else applied


def _merge_maps(atom: MapAtom | Untyped, live: Any, applied: Mapping[str, Any] | None) -> Any:
    """Merge two objects. Null does not change an object that has members."""
    if not isinstance(live, dict) or not live:
        return _merge_whole(live, applied)
    changed = {}
    for name, item in (applied or {}).items():
        current = live.get(name, ABSENT)
        merged = merge(atom.member(name) or DEDUCED, current, item)
        if merged is not current:
            changed[name] = merged
    return live | changed if changed else live


def _merge_lists(atom: ListAtom, live: Any, applied: Any) -> Any:
    """Merge two lists. Null does not change a list that has items."""
    old: Sequence[Any] = live if isinstance(live, list) else ()
    new: Sequence[Any] = applied if isinstance(applied, list) else ()
    if not old or not new:
        return live if old else _merge_whole(live, applied)
    elements = atom.elements(old)
    merged = _merge_items(atom, elements, old, dict(zip(atom.elements(new), new, strict=True)))
    return live if len(merged) == len(old) and all(map(is_, merged, old)) else merged


def _merge_items(
    atom: ListAtom, elements: Sequence[Element], old: Sequence[Any], applied: Mapping[Element, Any]
) -> list[Any]:
    """Return the applied items in their order, interleaved with the items that are only in the live list.

    Those keep their order, too, and stay before the applied item that follows them in the live list.
    """
    before = _items_by_element(elements, old)
    shared = deque(element for element in applied if element in before)
    merged: list[Any] = []
    position = 0
    for element, item in applied.items():
        while position < len(old) and not (shared and elements[position] == shared[0]):
            is_applied = elements[position] in applied
            if not is_applied:
                merged.append(old[position])
            position += 1
            if is_applied and not shared:
                # A duplicate item, which only stored lists can have: the scan ends here, as in the library.
                break
        if shared and element == shared[0]:
            shared.popleft()
            position += 1
        merged.append(merge(atom.items, before.get(element, ABSENT), item))
    return merged + [old[index] for index in range(position, len(old)) if elements[index] not in applied]


def _items_by_element(elements: Iterable[Element], items: Iterable[Any]) -> Mapping[Element, Any]:
    """Return the items by path element. Duplicates are None: applied items are not merged into them."""
    items_by_element: dict[Element, Any] = {}
    for element, item in zip(elements, items, strict=True):
        items_by_element[element] = None if element in items_by_element else item
    return items_by_element
