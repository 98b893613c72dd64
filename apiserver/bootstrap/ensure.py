"""Create the required objects that are missing, and update those that an earlier server wrote."""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

import orjson
from msgspec.structs import replace

from mockube.apimachinery import meta, randomness
from mockube.apimachinery.status import ApiError, Conflict
from mockube.apimachinery.timestamps import format_time, parse_time
from mockube.apimachinery.tree import Tree
from mockube.apiserver.kinds.api_resource import Resource
from mockube.apiserver.registry import metadata
from mockube.apiserver.registry.apply import apply
from mockube.apiserver.registry.body import read_object
from mockube.apiserver.registry.create import create
from mockube.apiserver.registry.registry import Registry
from mockube.apiserver.registry.request_context import Body, RequestContext, WriteOptions
from mockube.apiserver.registry.update import update
from mockube.apiserver.storage.journal import Author
from mockube.apiserver.storage.stored_object import canonical
from mockube.apiserver.user import User
from mockube.component_base.clock import Clock
from mockube.component_base.loop import yield_to_loop
from mockube.component_base.version import version
from mockube.etcd.errors import KVError
from mockube.etcd.kv import Compare, Target, Txn

from .required_object import GroupVersionResource, RequiredObject

LOG = logging.getLogger(__name__)

SERVER = User(name="system:apiserver", groups=("system:masters", "system:authenticated"))
MAX_PUTS: Final = 100
"""The number of objects in one transaction; etcd allows 128."""
_UID: Final = "00000000-0000-0000-0000-000000000000"
_TIME: Final = "2000-01-01T00:00:00Z"
_TEMPLATES: Final[dict[tuple[GroupVersionResource, str, str, bytes], bytes]] = {}
"""The stored text of objects that are stored directly, without uid and times; servers of a process share them."""
USER_AGENT = f"kube-apiserver/v{version()}"

_AUTHOR: Final = Author(user=SERVER.name, agent=USER_AGENT, verb="create")
"""The author of objects that are stored directly. Each has the field manager of its own, so that their write has none."""

APPLY, JSON = "application/apply-patch+yaml", "application/json"
RECREATE_SECONDS = 10.0
"""The interval at which deleted objects are created again; upstream's interval for the service."""


async def ensure(
    registry: Registry,
    resources: Callable[[GroupVersionResource], Resource],
    required_objects: Iterable[RequiredObject],
) -> int:
    """Create the missing objects and return their number. Another server may create the same ones at the same time."""
    missing = []
    for required_object in required_objects:
        resource = resources(required_object.resource)
        if await registry.find(resource, required_object.namespace, required_object.name) is None:
            missing.append(required_object)
        elif required_object.is_reconciled:
            await _overwrite(registry, resource, required_object)
        elif required_object.is_upgraded:
            await _upgrade(registry, resource, required_object)
    direct = [required_object for required_object in missing if required_object.skips_admission]
    if await create_directly(registry, resources, direct) < len(direct):
        return await _create_each(registry, resources, missing)
    return len(direct) + await _create_each(
        registry,
        resources,
        [required_object for required_object in missing if not required_object.skips_admission],
    )


async def _create_each(
    registry: Registry,
    resources: Callable[[GroupVersionResource], Resource],
    missing: Sequence[RequiredObject],
) -> int:
    created_count = 0
    for required_object in missing:
        created_count += await _create(registry, resources(required_object.resource), required_object)
    return created_count


async def create_directly(
    registry: Registry,
    resources: Callable[[GroupVersionResource], Resource],
    required_objects: Sequence[RequiredObject],
) -> int:
    """Create objects as they are, many in one transaction; return the number created.

    If one object of a transaction exists already, the transaction creates none.
    """
    created_count = 0
    for start in range(0, len(required_objects), MAX_PUTS):
        puts, compares = [], []
        for required_object in required_objects[start : start + MAX_PUTS]:
            resource = resources(required_object.resource)
            key = registry.layout.object(resource, required_object.namespace, required_object.name)
            puts.append(registry.put(key, await _new_text(registry, resource, required_object)))
            compares.append(Compare(key=key, target=Target.MOD, operand=0))
        result = await registry.commit(Txn(compare=tuple(compares), then=tuple(puts)), _AUTHOR)
        created_count += len(puts) if result.succeeded else 0
    return created_count


async def _new_text(registry: Registry, resource: Resource, required_object: RequiredObject) -> bytes:
    """Return a new object as `create` stores it: its template with a uid and the time."""
    key = (
        required_object.resource,
        required_object.namespace,
        required_object.name,
        orjson.dumps(required_object.content),
    )
    await (
        yield_to_loop()
    )  # with a template, too: what other tasks do meanwhile must not depend on earlier servers of the process
    template = _TEMPLATES.get(key)
    if template is None:
        template = _TEMPLATES[key] = canonical(_template(registry, resource, required_object))
    uid, now = randomness.uid(registry.random), format_time(registry.clock.now())
    return template.replace(_UID.encode(), uid.encode(), 1).replace(_TIME.encode(), now.encode())


def _template(registry: Registry, resource: Resource, required_object: RequiredObject) -> Tree:
    context, strategy = (
        request_context(resource, required_object, "create", required_object.tree()),
        registry.scheme.strategy(resource),
    )
    options = WriteOptions(field_manager=required_object.manager)
    tree = read_object(registry, context, options).tree
    metadata.match_namespace(tree, context)
    metadata.ensure_metadata(tree).update(uid=_UID, creationTimestamp=_TIME)
    tree = metadata.manage_new(registry, context, tree, options)
    if strategy.first_generation:
        metadata.ensure_metadata(tree)["generation"] = strategy.first_generation
    strategy.prepare_create(tree, replace(registry.request(context), now=parse_time(_TIME)))
    return tree


async def _overwrite(registry: Registry, resource: Resource, required_object: RequiredObject) -> None:
    """Write the required content to an object, and overwrite the changes of others."""
    while True:
        present = await registry.get(resource, required_object.namespace, required_object.name)
        tree = required_object.tree()
        if required_object.combine is not None:
            tree |= required_object.combine(present.tree(), tree)
        tree["metadata"]["resourceVersion"] = str(present.revision)
        try:
            await update(registry, request_context(resource, required_object, "update", tree))
        except Conflict:  # another server that starts was first: look at what it wrote
            continue
        return


async def _upgrade(registry: Registry, resource: Resource, required_object: RequiredObject) -> None:
    """Write the required spec and labels to an object that only servers have written."""
    present = await registry.get(resource, required_object.namespace, required_object.name)
    tree, old = required_object.tree(), present.tree()
    tree["metadata"]["resourceVersion"] = str(present.revision)
    context = request_context(resource, required_object, "update", tree)
    required = read_object(registry, context, WriteOptions()).tree
    has_labels = meta.labels(required).items() <= meta.labels(old).items()
    if (required["spec"] == old["spec"] and has_labels) or meta.is_deleting(old):
        return
    managers = {entry.get("manager", "") for entry in old["metadata"].get("managedFields") or ()}
    if managers != {metadata.manager_name(context, WriteOptions())}:
        LOG.warning(
            "%s %s was changed by a client and stays as it is; `mockube crds` prints the definition of this server",
            resource.kind,
            required_object.name,
        )
        return
    try:
        await update(registry, context)
    except ApiError as error:
        LOG.warning("%s %s was not updated: %s", resource.kind, required_object.name, error)
    else:
        LOG.info("%s %s was updated to the definition of this server", resource.kind, required_object.name)


async def _create(registry: Registry, resource: Resource, required_object: RequiredObject) -> bool:
    """Create an object; return whether this server created it."""
    query = {"fieldManager": [required_object.manager]} if required_object.manager else {}
    try:
        answer = await create(
            registry,
            request_context(resource, required_object, "create", required_object.tree(), query=query),
        )
    except ApiError:
        # Another server may have created it meanwhile, and allocated the same value, such as an address.
        if await registry.find(resource, required_object.namespace, required_object.name) is None:
            raise
        return False
    if required_object.status_manager:
        await _apply_status(registry, resource, required_object)
    elif required_object.status:
        tree = answer.object() | {"status": required_object.status}
        await update(
            registry, request_context(resource, required_object, "update", tree, subresource="status")
        )
    return True


async def _apply_status(registry: Registry, resource: Resource, required_object: RequiredObject) -> None:
    named = {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {"name": required_object.name},
    }
    query = {"fieldManager": [required_object.status_manager], "force": ["true"]}
    tree = named | {"status": required_object.status}
    await apply(
        registry, request_context(resource, required_object, "patch", tree, subresource="status", query=query)
    )


async def recreate_deleted(
    registry: Registry,
    resources: Callable[[GroupVersionResource], Resource],
    required_objects: Sequence[RequiredObject],
    clock: Clock,
) -> None:
    """Create deleted objects again, until cancelled."""
    while True:
        await clock.routine.sleep(RECREATE_SECONDS)
        try:
            await ensure(registry, resources, required_objects)
        except (ApiError, KVError) as error:
            LOG.warning("System objects were not created: %s", error)


def request_context(
    resource: Resource,
    required_object: RequiredObject,
    verb: str,
    tree: Tree,
    *,
    subresource: str = "",
    query: Mapping[str, Sequence[str]] | None = None,
) -> RequestContext:
    return RequestContext(
        verb=verb,
        resource=resource,
        subresource=resource.subresource(subresource) if subresource else None,
        namespace=required_object.namespace,
        name="" if verb == "create" else required_object.name,
        body=Body(data=orjson.dumps(tree), media_type=APPLY if verb == "patch" else JSON),
        query=query or {},
        user=SERVER,
        user_agent=USER_AGENT,
    )
