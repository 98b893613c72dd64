"""How a subresource shows an object as something else, and what becomes of the object when that is written."""

from collections.abc import Callable

from msgspec import Struct
from msgspec.structs import replace

from mockube.apimachinery.tree import Tree
from mockube.apiserver.registry import managed
from mockube.apiserver.registry.backend import Backend
from mockube.apiserver.registry.call import Call, ObjectAnswer
from mockube.apiserver.registry.options import WriteOptions


class SubresourceView(Struct, frozen=True, kw_only=True):
    """What a client sees and writes in place of an object."""

    show: Callable[[Tree], Tree]
    patched: Callable[[Tree], Tree] | None = None
    """What a patch is carried out on, where that is not what a client sees."""
    take: Callable[[Tree, Tree], Tree]
    """The new object, of the old one and what was written; may refuse what was written."""
    manage: Callable[[Backend, Call, Tree, Tree, WriteOptions], Tree] = managed.on_update
    """The new object with its managers after a change: the fourth argument is the old one."""

    def show_answer(self, answer: ObjectAnswer) -> ObjectAnswer:
        return replace(answer, stored=None, tree=self.show(answer.object()))


def _as_written(_old: Tree, written: Tree) -> Tree:
    return written


ITSELF = SubresourceView(show=lambda tree: tree, take=_as_written)
