"""What all verbs need to know of kinds, built-in and custom."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Protocol

from msgspec import Struct, field

from mockube.apimachinery.errors import DisplayedValue, FieldError
from mockube.apimachinery.groups import GroupResource
from mockube.apimachinery.patch.apply import FieldManager
from mockube.apimachinery.schema.decode import Decoder
from mockube.apimachinery.schema.model import Schemas
from mockube.apimachinery.tree import Tree
from mockube.apiserver.kinds.api_resource import Resource
from mockube.apiserver.kinds.kind import Conversion
from mockube.apiserver.kinds.registry import Conversions
from mockube.apiserver.kinds.strategy import DEFAULT, Strategy
from mockube.apiserver.long_work import Worker


class Rules(Protocol):
    """The defaults, validation and warnings of kinds, besides their schemas."""

    no_version: int | DisplayedValue
    """The value that messages show if an update has no resourceVersion."""

    def default(self, api_version: str, kind: str, tree: Tree) -> None:
        """Set defaults in place: the tree is not shared yet."""

    def check_create(self, resource: Resource, tree: Tree) -> Sequence[FieldError]: ...

    def check_update(
        self, resource: Resource, subresource: str, new: Tree, old: Tree
    ) -> Sequence[FieldError]: ...

    def warn_create(self, resource: Resource, tree: Tree) -> Iterable[str]:
        """Return the warnings about a new object that is valid."""

    def warn_update(self, resource: Resource, subresource: str, new: Tree, old: Tree) -> Iterable[str]: ...

    def warn_refused(self, resource: Resource, new: Tree, old: Tree) -> Iterable[str]:
        """Return the warnings that accompany the errors of the update that was checked last."""


class Scheme(Struct, frozen=True, kw_only=True):
    """The schemas, decoders, rules, strategies and conversions of all kinds that are served."""

    schemas: Schemas
    decoder: Decoder
    rules: Rules
    strategies: Mapping[GroupResource, Strategy]
    conversions: Conversions = field(default_factory=dict)
    prepare: Callable[[Worker, Resource], Awaitable[None]] | None = None
    """Compiles what a custom resource needs, before its first object is handled."""
    field_managers: dict[tuple[Resource, str], FieldManager] = field(default_factory=dict)
    """By resource and subresource; created at the first write."""

    def strategy(self, resource: Resource) -> Strategy:
        return self.strategies.get(resource.group_resource, DEFAULT)

    def conversion(self, resource: Resource) -> Conversion | None:
        return self.conversions.get((resource.group_version, resource.name))
