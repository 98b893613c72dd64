"""Lists that Go always writes: stored in protobuf, one with nothing in it comes back as none, and is shown as null."""

from collections.abc import Callable
from typing import Any

from apiserver.resources.strategy import Tree


def none_when_empty(*paths: tuple[str, ...]) -> Callable[[Tree], None]:
    """Brings an object into that form. `*` as a step is every element of a list."""

    def canonicalize(tree: Tree) -> None:
        for first, *rest in paths:
            if first in tree:
                tree[first] = _without_empty(tree[first], rest)

    return canonicalize


def _without_empty(value: Any, way: list[str]) -> Any:
    """A value with null for the lists at the end of the way that are empty; it may be somebody else's."""
    if not way:
        return value or None
    if not value:
        return value
    step, *rest = way
    if step == "*":
        return [_without_empty(one, rest) for one in value]
    if step not in value:
        return value
    return value | {step: _without_empty(value[step], rest)}
