"""An object that must be there, as a row."""

from collections.abc import Callable
from typing import TypeAlias

from msgspec import Struct, field

from mockube.apimachinery.tree import Tree

Name: TypeAlias = tuple[str, str, str]
"""A resource's group, version and name."""


class RequiredObject(Struct, frozen=True, kw_only=True):
    resource: Name
    name: str
    namespace: str = ""
    content: Tree = field(default_factory=dict)
    """All but kind, version and name."""
    status: Tree = field(default_factory=dict)
    manager: str = ""
    """Who manages the content, if that is not the server under its own name."""
    status_manager: str = ""
    """Who applies the status; "" if it is written with an update."""
    is_fixed: bool = False
    """It is right, claims nothing, and no admission plugin changes it: it can be stored as it is."""
    kept: bool = False
    """It is made again when somebody has deleted it."""
    combine: Callable[[Tree, Tree], Tree] | None = None
    """Makes one content of what is there and of what is wanted; None: only the latter counts."""
    follows: bool = False
    """It tells of the server: at each start its content is made true again."""

    def tree(self) -> Tree:
        metadata = {"name": self.name} | self.content.get("metadata", {})
        return self.content | {"metadata": metadata}
