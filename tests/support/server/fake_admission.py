"""Admission plugins for tests of the stages: each does one thing."""

import orjson

from mockube.apimachinery import status
from mockube.apiserver.admission.chain import Admission
from mockube.apiserver.admission.plugin import Plugin
from mockube.apiserver.registry.request_context import Operation


class Refusing(Plugin):
    """Refuses every write when it validates it."""

    operations = frozenset(Operation)

    async def validate(self, _registry, attributes):
        raise status.forbidden(attributes.resource.group_resource, attributes.name, "no such writes today")


class Labelling(Plugin):
    """Sets the label `admitted` of each object."""

    operations = frozenset({Operation.CREATE, Operation.UPDATE})

    async def mutate(self, _registry, attributes):
        metadata = attributes.object["metadata"]
        labels = {**metadata.get("labels", {}), "admitted": "yes"}
        attributes.object = {**attributes.object, "metadata": {**metadata, "labels": labels}}


class Setting(Plugin):
    """Sets fields of the metadata of each object."""

    operations = frozenset({Operation.CREATE, Operation.UPDATE})

    def __init__(self, **fields):
        self._fields = fields

    async def mutate(self, _registry, attributes):
        metadata = attributes.object["metadata"] | self._fields
        attributes.object = attributes.object | {"metadata": metadata}


class Interfering(Plugin):
    """Awaits another write while the first `times` writes are admitted: in the phase `validate` or `mutate`."""

    operations = frozenset(Operation)

    def __init__(self, write, *, times=1, phase="validate"):
        self._write = write
        self._times = times
        self._phase = phase

    async def mutate(self, _registry, _attributes):
        await self._interfere("mutate")

    async def validate(self, _registry, _attributes):
        await self._interfere("validate")

    async def _interfere(self, phase):
        if self._times and phase == self._phase:
            self._times -= 1
            await self._write()


class Recording(Plugin):
    """Records what is admitted in each phase."""

    operations = frozenset(Operation)

    def __init__(self):
        self.mutated = []
        self.validated = []

    async def mutate(self, _registry, attributes):
        self.mutated.append(_admitted(attributes))

    async def validate(self, _registry, attributes):
        self.validated.append(_admitted(attributes))


def _admitted(attributes):
    """Return the operation, the name, the new and the old object, as they are now: later stages change them."""
    new, old = (orjson.loads(orjson.dumps(tree)) for tree in (attributes.object, attributes.old))
    return attributes.operation, attributes.name, new, old


def registry_with(api, *plugins):
    """Return the registry of a `MemoryApi` with these plugins only."""
    return api.with_admission(Admission(plugins))
