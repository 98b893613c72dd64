"""The admission plugins that are on, in the order in which upstream runs them."""

from collections.abc import Sequence
from typing import Protocol

from apiserver.admission.namespace_lifecycle import NamespaceLifecycle
from apiserver.rest.attributes import Attributes, Operation
from apiserver.rest.backend import Backend


class Mutator(Protocol):
    """A plugin that changes what is written."""

    operations: frozenset[Operation]

    async def mutate(self, backend: Backend, attributes: Attributes) -> None: ...


class Validator(Protocol):
    """A plugin that lets pass what is written, or raises why not."""

    operations: frozenset[Operation]

    async def validate(self, backend: Backend, attributes: Attributes) -> None: ...


MUTATORS: Sequence[Mutator] = ()
VALIDATORS: Sequence[Validator] = (NamespaceLifecycle(),)


class Admission:
    """Runs every plugin that handles an operation."""

    def __init__(
        self, mutators: Sequence[Mutator] = MUTATORS, validators: Sequence[Validator] = VALIDATORS
    ) -> None:
        self._mutators = mutators
        self._validators = validators

    async def mutate(self, backend: Backend, attributes: Attributes) -> None:
        for plugin in self._mutators:
            if attributes.operation in plugin.operations:
                await plugin.mutate(backend, attributes)

    async def validate(self, backend: Backend, attributes: Attributes) -> None:
        for plugin in self._validators:
            if attributes.operation in plugin.operations:
                await plugin.validate(backend, attributes)
