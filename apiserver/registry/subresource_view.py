"""How a subresource represents an object as another kind, and how a write of that kind changes the object."""

from collections.abc import Callable

from msgspec import Struct
from msgspec.structs import replace

from mockube.apimachinery.tree import Tree
from mockube.apiserver.registry import metadata
from mockube.apiserver.registry.backend import Backend
from mockube.apiserver.registry.call import Call, ObjectAnswer, WriteOptions


class SubresourceView(Struct, frozen=True, kw_only=True):
    """What a client reads and writes in place of an object."""

    show: Callable[[Tree], Tree]
    patched: Callable[[Tree], Tree] | None = None
    """What a patch is applied to, where that is not what a client reads."""
    take: Callable[[Tree, Tree], Tree]
    """The new object, of the old one and what was written; may refuse what was written."""
    manage: Callable[[Backend, Call, Tree, Tree, WriteOptions], Tree] = metadata.manage_change
    """The new object with its managers after a change: the fourth argument is the old one."""

    def show_answer(self, answer: ObjectAnswer) -> ObjectAnswer:
        return replace(answer, stored=None, tree=self.show(answer.object()))


def _as_written(_old: Tree, written: Tree) -> Tree:
    return written


ITSELF = SubresourceView(show=lambda tree: tree, take=_as_written)
