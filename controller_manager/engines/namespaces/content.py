"""Delete what is in a namespace: pods first, and everything else once they are gone.

It asks the server for each resource that can be deleted and listed. What is left goes into `Remains`.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from apimachinery.groups import GroupResource
from apimachinery.status import ApiError, MethodNotSupported, NotFound
from controller_manager.engines.namespaces.deletion import Remains, estimate_of
from controller_manager.runtime.client import Client
from controller_manager.runtime.discovery import Discovery
from controller_manager.runtime.resource import Key, Resource, Tree

PODS: Final = GroupResource("", "pods")


async def delete_content(client: Client, discovery: Discovery, namespace: str, now: datetime) -> Remains:
    remains = Remains(discovery_failures=list(discovery.failures))
    resources = [one for one in discovery.able("delete", "list") if one.namespaced]
    first = [one for one in resources if one.group_resource == PODS]
    await _delete_all(client, first, namespace, now, remains)
    if not remains.counts:
        await _delete_all(client, [one for one in resources if one not in first], namespace, now, remains)
    return remains


async def _delete_all(
    client: Client, resources: Sequence[Resource[Tree]], namespace: str, now: datetime, remains: Remains
) -> None:
    for resource in resources:
        try:
            left = await _delete(client, resource, namespace)
        except ApiError as error:
            remains.deletion_failures.append(str(error))
            continue
        remains.found(resource.group_resource, left, estimate_of(resource.group_resource, left, now))


async def _delete(client: Client, resource: Resource[Tree], namespace: str) -> Sequence[Tree]:
    """What is left of it."""
    present = (await client.list(resource, namespace)).items
    if not present:
        return ()
    try:
        await client.delete_collection(resource, namespace, propagation="Background")
    except MethodNotSupported:
        await _delete_one_by_one(client, resource, present)
    return (await client.list(resource, namespace)).items


async def _delete_one_by_one(client: Client, resource: Resource[Tree], objects: Sequence[Tree]) -> None:
    for obj in objects:
        metadata = obj["metadata"]
        try:
            await client.delete(
                resource, Key(metadata["namespace"], metadata["name"]), propagation="Background"
            )
        except NotFound:
            continue
