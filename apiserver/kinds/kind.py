"""The record of a kind, with the parts that requests use, and an API group of kinds.

Each kind has its record in `kinds/<group>/`, next to the functions that the record names; `registry.py` has them all.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from msgspec import Struct, field
from msgspec.structs import force_setattr

from mockube.apimachinery.status import BadRequest
from mockube.apimachinery.tree import ReadOnlyTree, Tree
from mockube.apiserver.storage.stored_object import StoredObject
from mockube.apiserver.wire.table import Printer
from mockube.component_base.clock import Clock

from .api_resource import Resource
from .common.defaults import Table
from .common.validation import Validation
from .common.warnings import Warnings
from .strategy import Strategy


class RemoteConversion(Protocol):
    """The conversion between a version and the stored one by a webhook. Methods raise ApiError if the webhook fails."""

    async def to_stored(self, tree: Tree) -> Tree: ...

    async def from_stored(self, tree: Tree) -> Tree: ...

    async def to_client_version(self, items: Sequence[StoredObject]) -> Sequence[StoredObject]:
        """Return stored objects in the version; conversions are cached."""

    async def convert_uncached(self, stored: StoredObject) -> StoredObject:
        """Return a stored object in the version, without the cache of conversions."""

    def at_version(self, tree: ReadOnlyTree, api_version: str) -> Tree:
        """Return an object in another version; raise `NotConverted` until `prepare_version` was called for it."""

    async def prepare_version(self, tree: ReadOnlyTree, api_version: str) -> None: ...


class NotConverted(Exception):
    """An object is needed in another version, for which a webhook must be called first."""

    def __init__(self, conversion: RemoteConversion, tree: ReadOnlyTree, api_version: str) -> None:
        super().__init__(f"not converted to {api_version} yet")
        self._conversion = conversion
        self._tree = tree
        self._api_version = api_version

    async def prepare(self) -> None:
        """Let the webhook convert the object, so that `at_version` then returns it."""
        await self._conversion.prepare_version(self._tree, self._api_version)


class UnconvertibleObject(BadRequest):
    """An object cannot be converted to upstream's internal type. Patches and apply have other errors for the problem."""

    def __init__(self, kind: str, problem: str) -> None:
        super().__init__(f'{kind} in version "v1" cannot be handled as a {kind}: {problem}')
        self.problem = problem


class Conversion(NamedTuple):
    """The conversion between a version and the stored one. Functions return new trees, which share parts with old ones."""

    to_stored: Callable[[Tree], Tree]
    from_stored: Callable[[Tree], Tree]
    at_storage: bool = False
    """Whether writes are admitted, validated and defaulted in the client's version, and converted when they are stored."""
    stored_before: int | None = None
    """The revision up to which objects are converted when they are read; None for all objects."""
    remote: RemoteConversion | None = None
    """The conversion by a webhook, which replaces the functions."""


class Kind(Struct, frozen=True, kw_only=True):
    """One kind in one version. A part that is None has the default for all kinds."""

    resource: Resource
    strategy: Strategy | None = None
    """The deviations of the verbs from other resources. All versions of a resource share it."""
    validation: Validation | None = None
    """The validation of the stored version."""
    warnings: Warnings | None = None
    printer: Printer | None = None
    """The columns of `kubectl get`."""
    conversion: Conversion | None = None
    """The conversion of a version that is not the stored one."""
    defaults: Table = field(default_factory=dict)
    """The defaults of the structs that belong to this kind."""
    internal_changes: Sequence[Callable[[Tree], None]] = ()
    """Changes of an object that was decoded and has its defaults, as upstream makes them by its internal type.

    The tree may share its inner parts with others: they are replaced, never changed.
    """
    timed_defaults: Callable[[Clock], Table] | None = None
    """Returns the defaults of structs that depend on the current time."""
    by_gate: Mapping[str, Mapping[str, Any]] = {}
    """The parts that it has instead if a feature gate is on, by gate and field."""


class Group(Struct, frozen=True, kw_only=True):
    """An API group: its name, its versions as discovery lists them (the preferred one first), and its kinds."""

    name: str
    versions: tuple[str, ...] = ("v1",)
    kinds: tuple[Kind, ...] = ()
    defaults: Table = field(default_factory=dict)
    """The defaults of structs that several of its kinds share."""
    resources: tuple[Resource, ...] = ()

    def __post_init__(self) -> None:
        force_setattr(self, "resources", (*self.resources, *(kind.resource for kind in self.kinds)))
