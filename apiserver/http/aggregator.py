"""Other API servers, which APIServices name: their requests, and their discovery and OpenAPI documents.

As kube-aggregator does, the resources of a server are requested first in the document of all groups, which is fetched
once for all versions of the same Service; then, from a server without that document, in the list of the one version.
"""

import asyncio
import logging
from collections.abc import Container, Iterator, Mapping, Sequence
from functools import partial
from http import HTTPStatus
from typing import Final, NamedTuple, TypeAlias

from mockube.apimachinery.groups import GroupVersion
from mockube.apimachinery.tree import ReadOnlyTree, Tree
from mockube.apiserver.admission.webhooks.review import WebhookCallFailed
from mockube.apiserver.admission.webhooks.services import NoAddress, OnlyPodAddresses, endpoint, resolve
from mockube.apiserver.aggregation.availability import Availability, ServerUnreachable
from mockube.apiserver.aggregation.discovery import (
    ACCEPT,
    DiscoveredVersions,
    is_aggregated,
    resources_of,
    versions_of,
)
from mockube.apiserver.aggregation.merging import OtherGroups
from mockube.apiserver.aggregation.remotes import (
    FindRow,
    RemoteAPIService,
    RemoteDocuments,
    Remotes,
    index_of,
    row_finder,
)
from mockube.apiserver.aggregation.simulated_servers import is_metrics_server
from mockube.apiserver.bootstrap.apiservices import GROUP_PRIORITY, VERSION_PRIORITY
from mockube.apiserver.customresources.conversion_review import ConversionFailed
from mockube.apiserver.kinds.api_resource import Resource
from mockube.apiserver.metrics.aggregation import UnavailableServices
from mockube.apiserver.openapi.documents import ForeignDocuments
from mockube.apiserver.pki.issue import Pair
from mockube.apiserver.registry.registry import Registry
from mockube.apiserver.request.page import Page, Pages
from mockube.apiserver.user import User
from mockube.component_base.metrics import MetricsRegistry

from .backend_connection import Dialer
from .service_proxy import Address, Fetched, ServiceProxy
from .webhook_client import WebhookClient

LOG: Final = logging.getLogger(__name__)

CONVERSION_SECONDS = 30
"""How long a conversion webhook may take."""
CALL_FAILED = "failed to call webhook: "
"""The prefix of errors of admission webhooks; those of conversion webhooks have none."""

_CHECKER: Final = User(name="system:kube-aggregator", groups=("system:masters",))
_LISTER: Final = User(name=_CHECKER.name)
"""Upstream requests the list of one version without a group."""
_CACHE_SIZE: Final = 100
"""Servers whose document of all groups is cached with its ETag."""
_JSON: Final = {"Accept": "application/json"}

Services = Mapping[str, tuple[str, int]]
"""The addresses of Services without reachable endpoints, by NAMESPACE/NAME."""

_Server: TypeAlias = tuple[tuple[str, str, int], bytes, bool]


class ConversionCaller:
    """Sends ConversionReviews to webhooks. `registry` finds the addresses of Services."""

    def __init__(self, client: WebhookClient, services: Services, registry: Registry) -> None:
        self._client = client
        self._services = services
        self._registry = registry

    async def post(self, client: ReadOnlyTree, body: bytes) -> bytes:
        """Return the response of the webhook of a client configuration, or raise ConversionFailed."""
        try:
            webhook = endpoint(self._registry, client, self._services, seconds=CONVERSION_SECONDS)
            return await self._client.post(webhook, body, seconds=CONVERSION_SECONDS)
        except WebhookCallFailed as error:
            raise ConversionFailed(str(error).removeprefix(CALL_FAILED)) from error


class Aggregator:
    """Forwards requests to other API servers, and provides their discovery and OpenAPI documents."""

    def __init__(
        self,
        registry: Registry,
        api_services: Resource,
        services: Services,
        certificate: Pair | None,
        dialer: Dialer,
        *,
        simulates_metrics: bool = False,
    ) -> None:
        """`simulates_metrics`: this server computes the metrics of a metrics-server whose pods are simulated."""
        self._registry = registry
        self._services = services
        is_simulated = partial(is_metrics_server, registry) if simulates_metrics else lambda _: False
        self.remotes = Remotes(registry, api_services, is_simulated)
        self.proxy = ServiceProxy(self._resolve, certificate, dialer)

    def watch(
        self, api_services: Resource, services: Sequence[Resource], metrics: MetricsRegistry
    ) -> Availability:
        """Begin to watch APIServices; return the task that checks their availability."""
        self.remotes.watch()
        inspect = ServiceDocuments(self.proxy).inspect
        return Availability(
            self._registry, api_services, services, self.remotes, inspect, UnavailableServices(metrics)
        )

    def page(self, path: str) -> Page | None:
        """Return the proxy of a path to another server; None if this server serves it."""
        remote = self.remotes.of_path(path) if self.remotes else None
        return None if remote is None else self._forwarding(remote)

    def row_finder(self, rows: Mapping[tuple[str, str, str], Resource]) -> FindRow:
        """Return a function that finds the rows of the resources that this server serves."""
        return row_finder(rows, self.remotes)

    def pages(self) -> Pages:
        return {remote.path: self._forwarding(remote) for remote in self.remotes.served_remotes.values()}

    def served_elsewhere(self) -> Container[GroupVersion]:
        """Return the versions that other servers serve, metrics among them, which are then not simulated."""
        return self.remotes.served_remotes

    def other_groups(self) -> OtherGroups:
        served, documents = tuple(self.remotes.served_remotes.values()), self.remotes.documents
        return OtherGroups(
            remotes=served, documents=documents, priorities=GROUP_PRIORITY, of_versions=VERSION_PRIORITY
        )

    def foreign_documents(self) -> Iterator[ForeignDocuments]:
        for remote in self.remotes.served_remotes.values():
            documents = self.remotes.documents.get(remote.name)
            if documents is not None:
                yield ForeignDocuments(remote.path, documents.index, documents.v2)

    def _forwarding(self, remote: RemoteAPIService) -> Page:
        return lambda request: self.proxy.forward(remote, request)

    def _resolve(self, remote: RemoteAPIService) -> Address:
        try:
            return resolve(self._registry, self._services, *remote.service)
        except OnlyPodAddresses as error:
            return error.location
        except NoAddress as error:
            raise ServerUnreachable(str(error)) from error


class _Discovery(NamedTuple):
    """The document of all groups of a server. `order` is the number of inspections before it was requested."""

    versions: DiscoveredVersions
    etag: str
    order: int


class ServiceDocuments:
    def __init__(self, proxy: ServiceProxy) -> None:
        self._proxy = proxy
        self._cached: dict[_Server, _Discovery] = {}
        self._locks: dict[_Server, asyncio.Lock] = {}
        self._inspections = 0

    async def inspect(self, remote: RemoteAPIService) -> RemoteDocuments:
        """Fetch the documents of an available server, or raise `ServerUnreachable`."""
        self._inspections += 1
        number = self._inspections
        check = await self._proxy.fetch(remote, remote.path, _CHECKER, _JSON)
        if not HTTPStatus.OK <= check.code < HTTPStatus.MULTIPLE_CHOICES:
            problem = (
                f"failing or missing response from {check.url}: bad status from {check.url}: {check.code}"
            )
            raise ServerUnreachable(problem)
        documents = RemoteDocuments()
        try:
            documents.resources = await self._resources(remote, number)
        except (ServerUnreachable, ValueError) as error:
            LOG.info("The resources of %s could not be fetched: %s", remote.name, error)
        documents.index = await self._index(remote)
        documents.v2 = await self._document(remote, "/openapi/v2")
        return documents

    async def _resources(self, remote: RemoteAPIService, number: int) -> list[Tree]:
        """Return the resources of a version; a document that was requested before this inspection is fetched again."""
        server = remote.service, remote.authority, remote.is_insecure
        async with self._locks.setdefault(server, asyncio.Lock()):
            discovery = self._cached.get(server)
            if discovery is None or discovery.order < number:
                discovery = await self._discover(remote, self._cached.pop(server, None))
            if discovery is not None:
                self._cached[server] = discovery
                if len(self._cached) > _CACHE_SIZE:
                    del self._cached[next(iter(self._cached))]
        if discovery is not None:
            return [*discovery.versions.get(remote.served, ())]
        response = await self._proxy.fetch(remote, remote.path, _LISTER, _JSON)
        if response.code != HTTPStatus.OK:
            raise ServerUnreachable(f"bad status from {response.url}: {response.code}")
        return [*await asyncio.to_thread(resources_of, response.data)]

    async def _discover(self, remote: RemoteAPIService, cached: _Discovery | None) -> _Discovery | None:
        """Return the document of all groups; None if a server has none."""
        order = self._inspections
        headers = {"Accept": ACCEPT} | ({"If-None-Match": cached.etag} if cached and cached.etag else {})
        response = await self._proxy.fetch(remote, "/apis", _CHECKER, headers)
        if response.code == HTTPStatus.NOT_MODIFIED and cached is not None:
            return cached._replace(order=order)
        if response.code == HTTPStatus.SERVICE_UNAVAILABLE:
            raise ServerUnreachable(f"bad status from {response.url}: {response.code}")
        if response.code != HTTPStatus.OK or not is_aggregated(_header(response, "Content-Type")):
            return None
        versions = await asyncio.to_thread(versions_of, response.data)
        return _Discovery(versions, _header(response, "ETag"), order)

    async def _index(self, remote: RemoteAPIService) -> Mapping[str, object]:
        index = await self._document(remote, "/openapi/v3")
        try:
            return index_of(index, remote) if index else {}
        except (ValueError, KeyError, TypeError):
            return {}

    async def _document(self, remote: RemoteAPIService, path: str) -> bytes:
        try:
            response = await self._proxy.fetch(remote, path, _CHECKER, _JSON)
        except ServerUnreachable:
            return b""
        return response.data if response.code == HTTPStatus.OK else b""


def _header(response: Fetched, name: str) -> str:
    return response.headers.get(name, "")
