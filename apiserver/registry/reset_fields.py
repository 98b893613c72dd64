"""What a write may not touch: status but through /status, spec through it, and so on."""

from collections.abc import Mapping, Sequence
from typing import Any

from mockube.apimachinery.tree import Tree

Path = tuple[str, ...]

EACH = "*"
"""As a step of a path: every element of a list, each matched with the one at its place."""


def preserve_fields(new: Tree, old: Mapping[str, Any], paths: Sequence[Path]) -> Tree:
    """The new object with what is at some paths as it was in the old one. Neither tree is changed."""
    for path in paths:
        new = _with_value(new, path, _get(old, path))
    return new


def apply_fields(new: Tree, old: Tree, paths: Sequence[Path]) -> Tree:
    """Return the old object with the values of some paths from the new one. Neither tree is changed.

    managedFields are the new object's: they record the write itself.
    """
    tree = preserve_fields(old, new, (("metadata", "managedFields"),))
    for path in paths:
        tree = _with_each(tree, new, path)
    return tree


def is_changed(new: Tree, old: Tree, paths: Sequence[Path]) -> bool:
    """Whether anything at some paths differs."""
    return any(_get(new, path) != _get(old, path) for path in paths)


def _get(tree: Any, path: Path) -> Any:
    for step in path:
        tree = tree.get(step) if isinstance(tree, dict) else None
    return tree


def _with_value(tree: Tree, path: Path, value: Any) -> Tree:
    """The tree with a value at a path, or with nothing there for None; only what lies on the way is copied."""
    step, *rest = path
    if rest:
        inner = tree.get(step)
        if not isinstance(inner, dict):
            inner = {}
        value = _with_value(inner, tuple(rest), value) or None
    if value is None:
        return {name: child for name, child in tree.items() if name != step}
    return tree | {step: value}


def _with_each(base: Any, source: Any, path: Path) -> Any:
    """Return the base with the source's value at a path. A list with other elements is replaced as a whole."""
    if EACH not in path:
        return _with_value(base, path, _get(source, path))
    at = path.index(EACH)
    base_elements, source_elements = _get(base, path[:at]) or [], _get(source, path[:at]) or []
    if [element.get("name") for element in base_elements] != [other.get("name") for other in source_elements]:
        return _with_value(base, path[:at], source_elements or None)
    rest = path[at + 1 :]
    elements = [
        _with_each(element, other, rest)
        for element, other in zip(base_elements, source_elements, strict=True)
    ]
    return _with_value(base, path[:at], elements or None)
