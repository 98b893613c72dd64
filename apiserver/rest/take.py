"""What a write may not touch: status but through /status, spec through it, and so on."""

from collections.abc import Sequence
from typing import Any

from apiserver.storage.stored import Tree

Path = tuple[str, ...]


def keep_paths(new: Tree, old: Tree, paths: Sequence[Path]) -> Tree:
    """The new object with what is at some paths as it was in the old one. Neither tree is changed."""
    for path in paths:
        new = _with(new, path, _get(old, path))
    return new


def without_paths(tree: Tree, paths: Sequence[Path]) -> Tree:
    """The object with nothing at some paths."""
    return keep_paths(tree, {}, paths)


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
