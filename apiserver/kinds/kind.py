"""What a kind is made of, and an API group of them: the parts that requests use, in one record.

Each kind has its record in `kinds/<group>/`, next to the functions that the record names; `registry.py` has them all.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from mockube.apimachinery.clock import Clock
from mockube.apimachinery.tree import Tree
from mockube.apiserver.kinds.api_resource import Resource
from mockube.apiserver.kinds.common.defaults import Table
from mockube.apiserver.kinds.common.validation import Validation
from mockube.apiserver.kinds.common.warnings import Warnings
from mockube.apiserver.kinds.strategy import Strategy
from mockube.apiserver.wire.table import Printer


class Conversion(NamedTuple):
    """Between a version and the one that is stored. Functions return new trees, which share parts with the old ones."""

    to_stored: Callable[[Tree], Tree]
    from_stored: Callable[[Tree], Tree]
    at_storage: bool = False
    """Whether writes are admitted, validated and defaulted in the client's version, and converted when they are stored."""
    stored_before: int | None = None
    """Only what is of this revision or older is converted when it is read; None for everything."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One kind in one version. A part that is None is as for every kind."""

    resource: Resource
    strategy: Strategy | None = None
    """Where the verbs treat it differently from other resources. One for all versions of a resource."""
    validation: Validation | None = None
    """Of the stored version."""
    warnings: Warnings | None = None
    printer: Printer | None = None
    """The columns of `kubectl get`."""
    conversion: Conversion | None = None
    """Of a version that is not the stored one."""
    defaults: Table = field(default_factory=dict)
    """Of the structs that belong to this kind."""
    timed_defaults: Callable[[Clock], Table] | None = None
    """Of those of its structs in which a default is the current time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """An API group: its name, its versions as discovery lists them (the preferred one first), and its kinds."""

    name: str
    versions: tuple[str, ...] = ("v1",)
    kinds: tuple[Kind, ...] = ()
    defaults: Table = field(default_factory=dict)
    """Of structs that several of its kinds share."""
    resources: tuple[Resource, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "resources", (*self.resources, *(kind.resource for kind in self.kinds)))
