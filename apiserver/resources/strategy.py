"""How a resource behaves where it does not behave like every other: data first, small functions where data will not do.

The algorithm of each verb is written once, in `rest/`; a strategy only answers its questions.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

Tree: TypeAlias = dict[str, Any]

MAIN = ""
"""As the name of a subresource: the resource itself."""


def _keep(new: Tree) -> None:
    """Nothing is special when it is created."""


def _keep_update(new: Tree, old: Tree) -> None:
    """Nothing is special when it is changed."""


def _not_gracefully(_tree: Tree, _asked: int | None) -> int | None:
    return None


def _waits_for_finalizers(tree: Tree) -> bool:
    return bool(tree["metadata"].get("finalizers"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Strategy:
    """One resource's answers. Functions change the tree they are given, which is nobody else's yet."""

    resets: Mapping[str, tuple[tuple[str, ...], ...]] = field(
        default_factory=lambda: {MAIN: (("status",),), "status": (("spec",), ("metadata", "labels"))}
    )
    """For the resource and for each subresource that writes it: the paths that stay as they were, whatever was sent."""
    generation: tuple[str, ...] = ()
    """The top-level fields whose change makes a new generation; none: the resource has no generation."""
    create_on_update: bool = False
    unconditional_update: bool = True
    prepare_create: Callable[[Tree], None] = _keep
    prepare_update: Callable[[Tree, Tree], None] = _keep_update
    grace: Callable[[Tree, int | None], int | None] = _not_gracefully
    """Seconds that an object is given to end when it is deleted, of what was asked; None: it is deleted at once."""
    pending: Callable[[Tree], bool] = _waits_for_finalizers
    """Whether an object that is deleted must wait for somebody."""
    prepare_delete: Callable[[Tree], None] = _keep
    """What happens to an object that is marked as being deleted, besides the mark."""
    returns_deleted: bool = False
    """A deletion answers with the object as it last was, not with a Status."""


DEFAULT = Strategy()
