"""The states of an object, from its Changes alone."""

from typing import NamedTuple

from mockube.apimachinery.patch.json_difference import patched
from mockube.apimachinery.tree import ReadOnlyTree


class ReplayedObject(NamedTuple):
    """An object between two changes, if the history has it since its creation."""

    is_known: bool = False
    tree: ReadOnlyTree | None = None
    """None if there is no object, or if it is not known."""

    def after(self, change: ReadOnlyTree) -> "ReplayedObject":
        patch, is_new = change.get("patch"), change["type"] == "ADDED"
        if patch is None or not (self.is_known or is_new):
            return ReplayedObject()
        return ReplayedObject(is_known=True, tree=patched(None if is_new else self.tree, patch))
