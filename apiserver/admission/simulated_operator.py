"""Warn the client that creates a custom object whose operator is simulated: nothing will reconcile it."""

from collections.abc import Iterable

from mockube.apiserver.registry.registry import Registry
from mockube.apiserver.registry.request_context import AdmissionAttributes, Operation, Target
from mockube.apiserver.registry.simulated_operators import SimulatedOperators, reason_of

from .plugin import CREATE, Plugin


class WarnOfSimulatedOperator(Plugin):
    """It refuses nothing. It comes last, so that an object that is refused has no warning, and handles no built-in group."""

    operations = CREATE

    def __init__(self, operators: SimulatedOperators, built_in_groups: Iterable[str]) -> None:
        self._operators = operators
        self._built_in_groups = frozenset(built_in_groups)

    def handles(self, operation: Operation, target: Target) -> bool:
        group, _, subresource = target
        return super().handles(operation, target) and not subresource and group not in self._built_in_groups

    async def validate(self, registry: Registry, attributes: AdmissionAttributes) -> None:
        context, resource = attributes.context, attributes.resource
        operator = self._operators.operator_of(registry, resource, context.namespace)
        if operator and not attributes.dry_run:
            context.report.warn(f"nothing reconciles this {resource.kind}: {reason_of(operator, resource)}")
