"""Find out who changes what lies in a cache. For tests: it holds a second copy of everything and looks at all of it."""

from typing import NamedTuple

import orjson

from apimachinery import meta
from controller_manager.runtime.resource import Tree


class _Kept(NamedTuple):
    tree: Tree
    was: bytes


class Mutated(AssertionError):
    """Somebody changed an object that everybody shares."""


class MutationDetector:
    def __init__(self) -> None:
        self._kept: list[_Kept] = []

    def keep(self, tree: Tree) -> None:
        self._kept.append(_Kept(tree, orjson.dumps(tree)))

    def check(self) -> None:
        changed = [kept for kept in self._kept if orjson.dumps(kept.tree) != kept.was]
        if changed:
            raise Mutated("\n".join(map(_told, changed)))


def _told(kept: _Kept) -> str:
    name = f"{meta.kind(kept.tree)} {meta.namespace(kept.tree)}/{meta.name(kept.tree)}"
    return f"{name} was {kept.was.decode()} and is now {orjson.dumps(kept.tree).decode()}"
