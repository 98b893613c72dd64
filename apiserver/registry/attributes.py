"""A write and its attributes, as admission plugins receive it."""

from enum import Enum
from typing import Any, TypeAlias

from msgspec import Struct, field

from mockube.apimachinery.tree import Tree
from mockube.apiserver.kinds.api_resource import Resource
from mockube.apiserver.registry.call import Call


class Operation(Enum):
    CREATE = "CREATE"
    UPDATE = "UPDATE"
    DELETE = "DELETE"
    CONNECT = "CONNECT"

    __hash__ = object.__hash__
    """Not Enum's, which is a function in Python, and called at every write."""


Target: TypeAlias = tuple[str, str, str]
"""What is written: group, resource, and subresource or ""."""


class Reinvocation(Struct, kw_only=True):
    """Whether the mutating plugins are reinvoked because a later one changed the object."""

    is_again: bool = False
    is_wanted: bool = False
    state: dict[str, Any] = {}
    """Data that plugins pass from the mutating to the validating round, each under a name of its own."""


class Attributes(Struct, kw_only=True):
    """One write. `object` is changed by mutating plugins only."""

    operation: Operation
    call: Call
    name: str
    object: Tree | None
    old: Tree | None = None
    dry_run: bool = False
    reinvocation: Reinvocation = field(default_factory=Reinvocation)
    target: Target = ("", "", "")
    """Derived from the call."""

    def __post_init__(self) -> None:
        # Every plugin may use it.
        resource = self.call.resource
        self.target = resource.group, resource.name, self.subresource

    @property
    def resource(self) -> Resource:
        return self.call.resource

    @property
    def namespace(self) -> str:
        return self.call.namespace

    @property
    def subresource(self) -> str:
        return self.call.subresource.name if self.call.subresource else ""
