"""AlwaysAdmit and AlwaysDeny: admit or reject every write."""

from mockube.apiserver.registry.registry import Backend
from mockube.apiserver.registry.request_context import AdmissionAttributes, Operation

from .plugin import Plugin, forbidden


class AlwaysAdmit(Plugin):
    operations = frozenset(Operation)

    def handles(self, _operation: Operation, _target: object) -> bool:
        return False


class AlwaysDeny(Plugin):
    operations = frozenset(Operation)

    async def mutate(self, _backend: Backend, attributes: AdmissionAttributes) -> None:
        raise forbidden(attributes, "admission control is denying all modifications")

    async def validate(self, backend: Backend, attributes: AdmissionAttributes) -> None:
        await self.mutate(backend, attributes)
