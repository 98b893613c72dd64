"""What a kind has to say: of a new object, of a change, and of a change through one of its subresources."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from apiserver.validation.rules import Tree


def _nothing(_tree: Tree) -> Iterable[str]:
    return ()


def _nothing_changed(_new: Tree, _old: Tree) -> Iterable[str]:
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Warnings:
    create: Callable[[Tree], Iterable[str]] = _nothing
    update: Callable[[Tree, Tree], Iterable[str]] = _nothing_changed
    subresources: Mapping[str, Callable[[Tree, Tree], Iterable[str]]] = field(default_factory=dict)


def always(of: Callable[[Tree], Iterable[str]]) -> Warnings:
    """The same of a new object and of every change."""
    return Warnings(create=of, update=lambda new, _old: of(new))
