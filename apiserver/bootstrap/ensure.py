"""Makes what is missing, by the same verbs that clients use."""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

import orjson

from mockube.apimachinery.clock import Clock
from mockube.apimachinery.status import ApiError, Conflict
from mockube.apimachinery.tree import Tree
from mockube.apiserver.bootstrap.required_object import Name, RequiredObject
from mockube.apiserver.discovery import legacy as version
from mockube.apiserver.kinds.api_resource import Resource
from mockube.apiserver.registry import managed, metadata
from mockube.apiserver.registry.apply import apply
from mockube.apiserver.registry.backend import Backend
from mockube.apiserver.registry.body import decode_as
from mockube.apiserver.registry.call import Body, Call
from mockube.apiserver.registry.create import create
from mockube.apiserver.registry.options import WriteOptions
from mockube.apiserver.registry.update import update
from mockube.apiserver.storage.stored import canonical
from mockube.apiserver.turns import yield_to_loop
from mockube.apiserver.user import User
from mockube.etcd.errors import KVError
from mockube.etcd.kv import Compare, Target, Txn

LOG = logging.getLogger(__name__)

SERVER = User(name="system:apiserver", groups=("system:masters", "system:authenticated"))
MAX_PUTS: Final = 100
"""In one transaction: an etcd takes 128."""
USER_AGENT = f"kube-apiserver/{version.DOCUMENT['gitVersion']}"

APPLY, JSON = "application/apply-patch+yaml", "application/json"
KEPT_SECONDS = 10.0
"""How soon what was deleted is there again; upstream's interval for the service."""


async def ensure(
    backend: Backend, resources: Callable[[Name], Resource], wanted: Iterable[RequiredObject]
) -> int:
    """Answers how many objects were made. Another server may be making the same ones at the same time."""
    made = 0
    for one in wanted:
        resource = resources(one.resource)
        if await backend.find(resource, one.namespace, one.name) is None:
            made += await _create(backend, resource, one)
        elif one.follows:
            await _renew(backend, resource, one)
    return made


async def create_all(
    backend: Backend, resources: Callable[[Name], Resource], wanted: Sequence[RequiredObject]
) -> bool:
    """Make objects that are known to be right, many in one transaction; return whether none of them was there.

    Admission and validation are left out. Of a transaction in which one object is there already, none is made.
    """
    succeeded = True
    for start in range(0, len(wanted), MAX_PUTS):
        puts, compares = [], []
        for one in wanted[start : start + MAX_PUTS]:
            resource = resources(one.resource)
            key = backend.layout.object(resource, one.namespace, one.name)
            puts.append(backend.put(key, _text(backend, resource, one)))
            compares.append(Compare(key=key, target=Target.MOD, operand=0))
            await yield_to_loop()
        result = await backend.kv.txn(Txn(compare=tuple(compares), then=tuple(puts)))
        succeeded = succeeded and result.succeeded
    return succeeded


def _text(backend: Backend, resource: Resource, wanted: RequiredObject) -> bytes:
    """Return a new object as `create` would store it."""
    call = call_of(resource, wanted, "create", {})
    bare: Tree = {"kind": resource.kind, "apiVersion": resource.api_version}
    tree = bare | decode_as(backend, bare | wanted.tree()).tree
    metadata.begin(tree, call, now=backend.clock.now(), chance=backend.chance)
    return canonical(managed.on_create(backend, call, tree, WriteOptions()))


async def _renew(backend: Backend, resource: Resource, wanted: RequiredObject) -> None:
    """Make an object's content true again, over whatever others made of it."""
    while True:
        present = await backend.get(resource, wanted.namespace, wanted.name)
        tree = wanted.tree()
        tree["metadata"]["resourceVersion"] = str(present.revision)
        try:
            await update(backend, call_of(resource, wanted, "update", tree))
        except Conflict:
            continue
        return


async def _create(backend: Backend, resource: Resource, wanted: RequiredObject) -> bool:
    """Answers whether it was made here."""
    query = {"fieldManager": [wanted.manager]} if wanted.manager else {}
    try:
        answer = await create(backend, call_of(resource, wanted, "create", wanted.tree(), query=query))
    except ApiError:
        # Another server may have made it meanwhile, and taken what it claims, such as an address.
        if await backend.find(resource, wanted.namespace, wanted.name) is None:
            raise
        return False
    if wanted.status_manager:
        await _apply_status(backend, resource, wanted)
    elif wanted.status:
        tree = answer.object() | {"status": wanted.status}
        await update(backend, call_of(resource, wanted, "update", tree, subresource="status"))
    return True


async def _apply_status(backend: Backend, resource: Resource, wanted: RequiredObject) -> None:
    named = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": {"name": wanted.name}}
    query = {"fieldManager": [wanted.status_manager], "force": ["true"]}
    tree = named | {"status": wanted.status}
    await apply(backend, call_of(resource, wanted, "patch", tree, subresource="status", query=query))


async def keep(
    backend: Backend, resources: Callable[[Name], Resource], wanted: Sequence[RequiredObject], clock: Clock
) -> None:
    """Make again what somebody has deleted, until cancelled."""
    while True:
        await clock.sleep(KEPT_SECONDS)
        try:
            await ensure(backend, resources, wanted)
        except (ApiError, KVError) as error:
            LOG.warning("Objects of the system were not made: %s", error)


def call_of(
    resource: Resource,
    wanted: RequiredObject,
    verb: str,
    tree: Tree,
    *,
    subresource: str = "",
    query: Mapping[str, Sequence[str]] | None = None,
) -> Call:
    return Call(
        verb=verb,
        resource=resource,
        subresource=resource.subresource(subresource) if subresource else None,
        namespace=wanted.namespace,
        name="" if verb == "create" else wanted.name,
        body=Body(data=orjson.dumps(tree), media_type=APPLY if verb == "patch" else JSON),
        query=query or {},
        user=SERVER,
        user_agent=USER_AGENT,
    )
