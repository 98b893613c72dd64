"""Makes what is missing, by the same verbs that clients use."""

from collections.abc import Callable, Iterable

import orjson

from mockube.apimachinery.status import ApiError, Conflict
from mockube.apimachinery.tree import Tree
from mockube.apiserver.bootstrap.required_object import Name, Wanted
from mockube.apiserver.discovery import legacy as version
from mockube.apiserver.kinds.api_resource import Resource
from mockube.apiserver.registry.backend import Backend
from mockube.apiserver.registry.call import Body, Call
from mockube.apiserver.registry.create import create
from mockube.apiserver.registry.update import update
from mockube.apiserver.user import User

SERVER = User(name="system:apiserver", groups=("system:masters", "system:authenticated"))
USER_AGENT = f"kube-apiserver/{version.DOCUMENT['gitVersion']}"


async def ensure(backend: Backend, resources: Callable[[Name], Resource], wanted: Iterable[Wanted]) -> int:
    """Answers how many objects were made. Another server may be making the same ones at the same time."""
    made = 0
    for one in wanted:
        resource = resources(one.resource)
        if await backend.find(resource, one.namespace, one.name) is None:
            made += await _create(backend, resource, one)
        elif one.follows:
            await _renew(backend, resource, one)
    return made


async def _renew(backend: Backend, resource: Resource, wanted: Wanted) -> None:
    """Make an object's content true again, over whatever others made of it."""
    while True:
        present = await backend.get(resource, wanted.namespace, wanted.name)
        tree = wanted.tree()
        tree["metadata"]["resourceVersion"] = str(present.revision)
        try:
            await update(backend, _call(resource, wanted, "update", tree))
        except Conflict:
            continue
        return


async def _create(backend: Backend, resource: Resource, wanted: Wanted) -> bool:
    """Answers whether it was made here."""
    try:
        answer = await create(backend, _call(resource, wanted, "create", wanted.tree()))
    except ApiError:
        # Another server may have made it meanwhile, and taken what it claims, such as an address.
        if await backend.find(resource, wanted.namespace, wanted.name) is None:
            raise
        return False
    if wanted.status:
        tree = answer.object() | {"status": wanted.status}
        await update(backend, _call(resource, wanted, "update", tree, subresource="status"))
    return True


def _call(resource: Resource, wanted: Wanted, verb: str, tree: Tree, *, subresource: str = "") -> Call:
    return Call(
        verb=verb,
        resource=resource,
        subresource=resource.subresource(subresource) if subresource else None,
        namespace=wanted.namespace,
        name="" if verb == "create" else wanted.name,
        body=Body(data=orjson.dumps(tree), media_type="application/json"),
        user=SERVER,
        user_agent=USER_AGENT,
    )
