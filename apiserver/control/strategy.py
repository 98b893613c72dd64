"""What the server does with the objects of a kind when they are written, and the limits that all kinds share.

The objects are admitted by this alone: no webhook, policy or quota of the cluster has a say, so that none can prevent the
removal of a fault.
"""

from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from typing import Any, Final

import orjson

from mockube.apimachinery import errors, status
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.groups import GroupResource
from mockube.apimachinery.paths import ROOT
from mockube.apimachinery.tree import ReadOnlyTree, Tree
from mockube.apiserver.registry.registry import OwnVerbs, Registry
from mockube.apiserver.registry.request_context import AdmissionAttributes, Operation
from mockube.apiserver.registry.watch_stream import OpenWatch

from .kind import ControlKind

MAX_OBJECT_BYTES: Final = 64 * 1024
"""The largest object of the group."""


class ControlStrategy:
    """The behavior of one kind on one server. This one keeps objects as they are sent."""

    kind: ControlKind

    async def prepare(self, new: Tree, _old: ReadOnlyTree | None) -> Tree:
        """Return the object with what the server sets. It is not valid yet: fields may have any type."""
        return new

    async def check(self, _new: ReadOnlyTree, _old: ReadOnlyTree | None) -> Iterable[FieldError]:
        """Return the errors of an object that its schema accepts."""
        return ()

    def verbs(self) -> OwnVerbs:
        """Return the verbs that are others than those of stored objects."""
        return {}

    def watches(self) -> Mapping[GroupResource, OpenWatch]:
        """Return what opens the watches of records; watches of stored objects are opened as all others."""
        return {}

    def tasks(self) -> Mapping[str, Callable[[], Coroutine[Any, Any, None]]]:
        """Return the tasks that run while the server does, by their names."""
        return {}

    async def begin(self, _registry: Registry) -> None:
        """Begin to follow the objects of the kind in the registry of the group."""


class ControlAdmission:
    """An `Admission` by the strategies of the kinds, by their plurals."""

    def __init__(self, strategies: Sequence[ControlStrategy]) -> None:
        self._strategies: Mapping[str, ControlStrategy] = {each.kind.plural: each for each in strategies}

    async def mutate(self, registry: Registry, attributes: AdmissionAttributes) -> None:
        strategy = self._strategies[attributes.resource.name]
        if attributes.operation is Operation.CREATE:
            await self._check_count(registry, attributes, strategy.kind)
        if attributes.object is not None:
            attributes.object = await strategy.prepare(attributes.object, attributes.old)

    async def _check_count(
        self, registry: Registry, attributes: AdmissionAttributes, kind: ControlKind
    ) -> None:
        await registry.watch_cache.fresh()
        if len(registry.resource_cache(kind.group_resource)) >= kind.max_objects:
            problem = f"there are {kind.max_objects} {kind.plural}, the maximum: delete one"
            raise status.forbidden(kind.group_resource, attributes.name, problem)

    async def authorize(self, _registry: Registry, _attributes: AdmissionAttributes) -> None:
        """Require nothing but the permission for the request."""

    async def validate(self, _registry: Registry, attributes: AdmissionAttributes) -> None:
        new = attributes.object
        if new is None:
            return
        if len(orjson.dumps(new)) > MAX_OBJECT_BYTES:
            field_errors: Sequence[FieldError] = [errors.too_long(ROOT, MAX_OBJECT_BYTES)]
        else:
            strategy = self._strategies[attributes.resource.name]
            field_errors = [*await strategy.check(new, attributes.old)]
        if field_errors:
            raise status.invalid(attributes.resource.group_kind, attributes.name, field_errors)
