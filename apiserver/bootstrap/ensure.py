"""Makes what is missing, by the same verbs that clients use."""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

import orjson
from msgspec.structs import replace

from mockube.apimachinery import chance as chances
from mockube.apimachinery.clock import Clock
from mockube.apimachinery.status import ApiError, Conflict
from mockube.apimachinery.timestamps import format_time, parse_time
from mockube.apimachinery.tree import Tree
from mockube.apimachinery.version import version
from mockube.apiserver.bootstrap.required_object import Name, RequiredObject
from mockube.apiserver.kinds.api_resource import Resource
from mockube.apiserver.long_work import yield_to_loop
from mockube.apiserver.registry import managed, metadata
from mockube.apiserver.registry.apply import apply
from mockube.apiserver.registry.backend import Backend
from mockube.apiserver.registry.body import read_object
from mockube.apiserver.registry.call import Body, Call
from mockube.apiserver.registry.create import create
from mockube.apiserver.registry.options import WriteOptions
from mockube.apiserver.registry.update import update
from mockube.apiserver.storage.stored import canonical
from mockube.apiserver.user import User
from mockube.etcd.errors import KVError
from mockube.etcd.kv import Compare, Target, Txn

LOG = logging.getLogger(__name__)

SERVER = User(name="system:apiserver", groups=("system:masters", "system:authenticated"))
MAX_PUTS: Final = 100
"""In one transaction: an etcd takes 128."""
_UID: Final = "00000000-0000-0000-0000-000000000000"
_TIME: Final = "2000-01-01T00:00:00Z"
_TEMPLATES: Final[dict[tuple[Name, str, str, bytes], bytes]] = {}
"""What `create` stores of objects that are fixed, but for uid and times; all servers of a process make the same ones."""
USER_AGENT = f"kube-apiserver/v{version()}"

APPLY, JSON = "application/apply-patch+yaml", "application/json"
KEPT_SECONDS = 10.0
"""How soon what was deleted is there again; upstream's interval for the service."""


async def ensure(
    backend: Backend, resources: Callable[[Name], Resource], wanted: Iterable[RequiredObject]
) -> int:
    """Answers how many objects were made. Another server may be making the same ones at the same time."""
    missing = []
    for one in wanted:
        resource = resources(one.resource)
        if await backend.find(resource, one.namespace, one.name) is None:
            missing.append(one)
        elif one.follows:
            await _renew(backend, resource, one)
    fixed = [one for one in missing if one.is_fixed]
    if await create_fixed(backend, resources, fixed) < len(fixed):
        return await _create_each(backend, resources, missing)
    return len(fixed) + await _create_each(backend, resources, [one for one in missing if not one.is_fixed])


async def _create_each(
    backend: Backend, resources: Callable[[Name], Resource], missing: Sequence[RequiredObject]
) -> int:
    made = 0
    for one in missing:
        made += await _create(backend, resources(one.resource), one)
    return made


async def create_fixed(
    backend: Backend, resources: Callable[[Name], Resource], wanted: Sequence[RequiredObject]
) -> int:
    """Make objects as they are, many in one transaction; return how many were made.

    Of a transaction in which one object is there already, none is made.
    """
    made = 0
    for start in range(0, len(wanted), MAX_PUTS):
        puts, compares = [], []
        for one in wanted[start : start + MAX_PUTS]:
            resource = resources(one.resource)
            key = backend.layout.object(resource, one.namespace, one.name)
            puts.append(backend.put(key, await _new_text(backend, resource, one)))
            compares.append(Compare(key=key, target=Target.MOD, operand=0))
        result = await backend.kv.txn(Txn(compare=tuple(compares), then=tuple(puts)))
        made += len(puts) if result.succeeded else 0
    return made


async def _new_text(backend: Backend, resource: Resource, wanted: RequiredObject) -> bytes:
    """Return a new object as `create` stores it: its template with a uid and the time."""
    key = wanted.resource, wanted.namespace, wanted.name, orjson.dumps(wanted.content)
    template = _TEMPLATES.get(key)
    if template is None:
        await yield_to_loop()
        template = _TEMPLATES[key] = canonical(_template(backend, resource, wanted))
    uid, now = chances.uid(backend.chance), format_time(backend.clock.now())
    return template.replace(_UID.encode(), uid.encode(), 1).replace(_TIME.encode(), now.encode())


def _template(backend: Backend, resource: Resource, wanted: RequiredObject) -> Tree:
    call, strategy = call_of(resource, wanted, "create", wanted.tree()), backend.strategy(resource)
    options = WriteOptions(field_manager=wanted.manager)
    tree = read_object(backend, call, options)
    metadata.match_namespace(tree, call)
    metadata.of(tree).update(uid=_UID, creationTimestamp=_TIME)
    tree = managed.on_create(backend, call, tree, options)
    if strategy.first_generation:
        metadata.of(tree)["generation"] = strategy.first_generation
    strategy.prepare_create(tree, replace(backend.request(call), now=parse_time(_TIME)))
    return tree


async def _renew(backend: Backend, resource: Resource, wanted: RequiredObject) -> None:
    """Make an object's content true again, over whatever others made of it."""
    while True:
        present = await backend.get(resource, wanted.namespace, wanted.name)
        tree = wanted.tree()
        if wanted.combine is not None:
            tree |= wanted.combine(present.tree(), tree)
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
