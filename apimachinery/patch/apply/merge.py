"""Merge an applied configuration into an object. This never removes anything.

What the applied object does not change is the very same value before and after, so that comparing the two is cheap.
"""

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from operator import is_
from typing import Any

from mockube.apimachinery.patch.apply.atoms import DEDUCED, Atom, ListAtom, MapAtom, Scalar, Untyped
from mockube.apimachinery.patch.apply.compare import ABSENT, equal
from mockube.apimachinery.patch.apply.elements import Element


def merge(atom: Atom, live: Any, applied: Any) -> Any:
    """`applied` is valid. `TypedError` if an item of a live list has no keys to be found by."""
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
    """Null has no effect on an object that has members."""
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
    """Null has no effect on a list that has items."""
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
    """The applied items in their order, and between them those of the live list alone.

    These keep their order too, and stand before the applied item that they stood before in the live list.
    """
    before = _single(elements, old)
    shared = deque(element for element in applied if element in before)
    merged: list[Any] = []
    position = 0
    for element, item in applied.items():
        while position < len(old) and not (shared and elements[position] == shared[0]):
            again = elements[position] in applied
            if not again:
                merged.append(old[position])
            position += 1
            if again and not shared:
                # One of several items that are the same, which only stored lists may have: the scan ends here.
                break
        if shared and element == shared[0]:
            shared.popleft()
            position += 1
        merged.append(merge(atom.items, before.get(element, ABSENT), item))
    return merged + [old[index] for index in range(position, len(old)) if elements[index] not in applied]


def _single(elements: Iterable[Element], items: Iterable[Any]) -> Mapping[Element, Any]:
    """The items by their steps. What is there more than once is not merged with, and null here."""
    items_by_element: dict[Element, Any] = {}
    for element, item in zip(elements, items, strict=True):
        items_by_element[element] = None if element in items_by_element else item
    return items_by_element
