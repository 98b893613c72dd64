"""NamespaceAutoProvision and NamespaceExists: create a missing namespace, or reject a write in it."""

import orjson

from mockube.apimachinery import status
from mockube.apimachinery.groups import NAMESPACES
from mockube.apimachinery.status import AlreadyExists, ApiError
from mockube.apiserver.registry.create import create
from mockube.apiserver.registry.registry import Registry
from mockube.apiserver.registry.request_context import AdmissionAttributes, Body, Operation, RequestContext
from mockube.apiserver.user import SERVER

from .plugin import CREATE, Plugin, forbidden


def _lacks_namespace(registry: Registry, attributes: AdmissionAttributes) -> bool:
    name = attributes.namespace
    if not name or attributes.resource.group_resource == NAMESPACES:
        return False
    return registry.find_cached(NAMESPACES, "", name) is None


class NamespaceAutoProvision(Plugin):
    operations = CREATE

    async def mutate(self, registry: Registry, attributes: AdmissionAttributes) -> None:
        if attributes.dry_run or not _lacks_namespace(registry, attributes):
            return
        body = orjson.dumps(
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": attributes.namespace}}
        )
        row = registry.rows[NAMESPACES]
        context = RequestContext(verb="create", resource=row, user=SERVER, body=Body(data=body))
        try:
            await create(registry, context)
        except AlreadyExists:
            pass
        except ApiError as error:
            raise forbidden(attributes, str(error)) from error
        await registry.watch_cache.fresh()


class NamespaceExists(Plugin):
    operations = frozenset({Operation.CREATE, Operation.UPDATE, Operation.DELETE})

    async def validate(self, registry: Registry, attributes: AdmissionAttributes) -> None:
        if _lacks_namespace(registry, attributes):
            await registry.watch_cache.fresh()
        if _lacks_namespace(registry, attributes):
            raise status.not_found(NAMESPACES, attributes.namespace)
