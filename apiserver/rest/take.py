"""What a write may not touch: status but through /status, spec through it, and so on."""

from collections.abc import Sequence
from typing import Any

from apimachinery.schema.model import Type
from apimachinery.schema.zero import OMITTED, absent
from apiserver.storage.stored import Tree

Path = tuple[str, ...]

EACH = "*"
"""As a step of a path: every element of a list, each matched with the one at its place."""


def keep_paths(new: Tree, old: Tree, paths: Sequence[Path]) -> Tree:
    """The new object with what is at some paths as it was in the old one. Neither tree is changed."""
    for path in paths:
        new = _with(new, path, _get(old, path))
    return new


def only_paths(new: Tree, old: Tree, paths: Sequence[Path]) -> Tree:
    """The old object with what is at some paths as it is in the new one. Neither tree is changed.

    The managers of fields are the new one's too: they tell of the write itself.
    """
    made = keep_paths(old, new, (("metadata", "managedFields"),))
    for path in paths:
        made = _with_each(made, new, path)
    return made


def cleared(tree: Tree, schema: Type, fields: Sequence[str]) -> Tree:
    """The object with top-level fields as Go writes them when nothing was set."""
    for name in fields:
        field = schema.fields.get(name)
        empty = OMITTED if field is None else absent(field)
        tree = _with(tree, (name,), None if empty is OMITTED else empty)
    return tree


def is_changed(new: Tree, old: Tree, paths: Sequence[Path]) -> bool:
    """Whether anything at some paths differs."""
    return any(_get(new, path) != _get(old, path) for path in paths)


def _get(tree: Any, path: Path) -> Any:
    for step in path:
        tree = tree.get(step) if isinstance(tree, dict) else None
    return tree


def _with(tree: Tree, path: Path, value: Any) -> Tree:
    """The tree with a value at a path, or with nothing there for None; only what lies on the way is copied."""
    step, *rest = path
    if rest:
        inner = tree.get(step)
        if not isinstance(inner, dict):
            inner = {}
        value = _with(inner, tuple(rest), value) or None
    if value is None:
        return {name: kept for name, kept in tree.items() if name != step}
    return tree | {step: value}


def _with_each(base: Any, given: Any, path: Path) -> Any:
    """The base with what is given at a path, through lists of the same length; others are taken as they are given."""
    if EACH not in path:
        return _with(base, path, _get(given, path))
    at = path.index(EACH)
    mine, theirs = _get(base, path[:at]), _get(given, path[:at])
    if not (mine and theirs) or len(mine) != len(theirs):
        return _with(base, path[:at], theirs)
    rest = path[at + 1 :]
    elements = [_with_each(one, other, rest) for one, other in zip(mine, theirs, strict=True)]
    return _with(base, path[:at], elements)
