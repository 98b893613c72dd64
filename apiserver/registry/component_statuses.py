"""ComponentStatuses: the health of control plane components, probed at each request and never stored.

As upstream, the components are assumed to run on the server's machine, at their default ports, unless the manager that was
started with the server has written other URLs, or runs in the same process.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Final, TypeAlias

from msgspec import Struct

from mockube.apimachinery import status
from mockube.apimachinery.groups import GroupResource
from mockube.apiserver.storage.stored_object import StoredObject, canonical
from mockube.component_base.component_urls import CONTROLLER_MANAGER, SCHEDULER, read_component_urls
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

EmbeddedProbe: TypeAlias = Callable[[], ComponentHealth]
"""Returns the health of a component in the same process."""

NO_PROBES: Final[Mapping[str, EmbeddedProbe]] = {}
RESOURCE: Final = GroupResource("", "componentstatuses")
URLS: Final[Mapping[str, str]] = {
    CONTROLLER_MANAGER: "https://127.0.0.1:10257/healthz",
    SCHEDULER: "https://127.0.0.1:10259/healthz",
}
STORE: Final = "etcd-0"


class ComponentStatuses:
    def __init__(
        self,
        probe: Probe,
        *,
        urls_file: Path | None = None,
        embedded_probes: Mapping[str, EmbeddedProbe] = NO_PROBES,
    ) -> None:
        """`urls_file` has other URLs than `URLS`; None if there is no such file. `embedded_probes` are by component."""
        self._probe = probe
        self._urls_file = urls_file
        self._embedded_probes = embedded_probes

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
        health = await (_of_store(backend) if name == STORE else self._health_of(name))
        condition = {"type": "Healthy", "status": "True" if health.is_good else "False"}
        messages = {"message": health.message, "error": health.error}
        tree = {
            "kind": context.resource.kind,
            "apiVersion": context.resource.api_version,
            "metadata": {"name": name},
            "conditions": [condition | {field: text for field, text in messages.items() if text}],
        }
        return StoredObject.without_revision(canonical(tree))

    async def _health_of(self, name: str) -> ComponentHealth:
        embedded_probe = self._embedded_probes.get(name)
        if embedded_probe is not None:
            return embedded_probe()
        urls = {} if self._urls_file is None else read_component_urls(self._urls_file)
        if self._urls_file is not None and not urls:
            return ComponentHealth(is_good=False, message="the controller manager has not started yet")
        return await self._probe(urls.get(name, URLS[name]))


async def _of_store(backend: Backend) -> ComponentHealth:
    try:
        await backend.kv.status()
    except KVError as error:
        return ComponentHealth(is_good=False, error=error.reason)
    return ComponentHealth(is_good=True, message="ok")
