"""An object that the server creates if it is missing."""

from collections.abc import Callable
from typing import TypeAlias

from msgspec import Struct, field

from mockube.apimachinery.tree import Tree

GroupVersionResource: TypeAlias = tuple[str, str, str]
"""The group, version and name of a resource."""


class RequiredObject(Struct, frozen=True, kw_only=True):
    resource: GroupVersionResource
    name: str
    namespace: str = ""
    content: Tree = field(default_factory=dict)
    """All fields except kind, apiVersion and name."""
    status: Tree = field(default_factory=dict)
    manager: str = ""
    """The field manager of the content; "": the server's own name."""
    status_manager: str = ""
    """The field manager that applies the status; "" if it is written with an update."""
    skips_admission: bool = False
    """Whether it is stored directly: it is valid, allocates nothing, and no admission plugin changes it."""
    is_recreated: bool = False
    """Whether it is created again after it was deleted."""
    combine: Callable[[Tree, Tree], Tree] | None = None
    """Merges the present content with the required one; None: the required content replaces it."""
    is_reconciled: bool = False
    """Whether the content of an existing object is overwritten, because it describes the server."""
    is_upgraded: bool = False
    """Whether the spec that an earlier server wrote is overwritten; one that a user has changed stays."""

    def tree(self) -> Tree:
        metadata = {"name": self.name} | self.content.get("metadata", {})
        return self.content | {"metadata": metadata}
