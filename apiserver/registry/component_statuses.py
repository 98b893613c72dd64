"""ComponentStatuses: the health of control plane components, probed at each request and never stored.

As upstream, the components are assumed to run on the server's machine, at their default ports.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, TypeAlias

from msgspec import Struct

from mockube.apimachinery import status
from mockube.apimachinery.groups import GroupResource
from mockube.apiserver.storage.stored_object import StoredObject, canonical
from mockube.etcd.errors import KVError

from .registry import Backend, OwnVerbs
from .request_context import ListResult, ObjectResult, RequestContext
from .selection import select_by


class ComponentHealth(Struct, frozen=True, kw_only=True):
    """The result of a probe: `error` is the failure of the request, `message` the content of the response."""

    is_good: bool
    message: str = ""
    error: str = ""


Probe: TypeAlias = Callable[[str], Awaitable[ComponentHealth]]
"""Requests the health of a component at its URL."""

RESOURCE: Final = GroupResource("", "componentstatuses")
URLS: Final[Mapping[str, str]] = {
    "controller-manager": "https://127.0.0.1:10257/healthz",
    "scheduler": "https://127.0.0.1:10259/healthz",
}
STORE: Final = "etcd-0"


class ComponentStatuses:
    def __init__(self, probe: Probe) -> None:
        self._probe = probe

    def verbs(self) -> OwnVerbs:
        return {(RESOURCE, ""): {"get": self.get, "list": self.list}}

    async def get(self, backend: Backend, context: RequestContext) -> ObjectResult:
        if context.name not in (*URLS, STORE):
            raise status.not_found(GroupResource("", "componentstatus"), context.name)
        return ObjectResult(stored=await self._look(backend, context, context.name))

    async def list(self, backend: Backend, context: RequestContext) -> ListResult:
        _, chosen = await select_by(backend, context)
        matches = chosen.matches
        statuses = await asyncio.gather(*(self._look(backend, context, name) for name in (*URLS, STORE)))
        return ListResult(
            api_version=context.resource.api_version,
            kind=context.resource.list_kind,
            items=[item for item in statuses if matches is None or matches(item)],
            metadata={},
        )

    async def _look(self, backend: Backend, context: RequestContext, name: str) -> StoredObject:
        health = await (_of_store(backend) if name == STORE else self._probe(URLS[name]))
        condition = {"type": "Healthy", "status": "True" if health.is_good else "False"}
        messages = {"message": health.message, "error": health.error}
        tree = {
            "kind": context.resource.kind,
            "apiVersion": context.resource.api_version,
            "metadata": {"name": name},
            "conditions": [condition | {field: text for field, text in messages.items() if text}],
        }
        return StoredObject.without_revision(canonical(tree))


async def _of_store(backend: Backend) -> ComponentHealth:
    try:
        await backend.kv.status()
    except KVError as error:
        return ComponentHealth(is_good=False, error=error.reason)
    return ComponentHealth(is_good=True, message="ok")
