"""All that leads to other servers: those that APIServices name, and the webhooks that convert custom resources."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apiserver.admission.webhooks.review import CallFailed
from mockube.apiserver.admission.webhooks.services import NoAddress, OnlyPods, endpoint, resolve
from mockube.apiserver.aggregation.availability import Availability, Unreachable
from mockube.apiserver.aggregation.merging import OtherGroups
from mockube.apiserver.aggregation.remotes import Remote, Remotes
from mockube.apiserver.bootstrap.apiservices import GROUP_PRIORITY, VERSION_PRIORITY
from mockube.apiserver.customresources.conversion_review import ConversionFailed
from mockube.apiserver.http.backend_connection import Dialer
from mockube.apiserver.http.service_documents import ServiceDocuments
from mockube.apiserver.http.service_proxy import Address, ServiceProxy
from mockube.apiserver.http.webhook_client import WebhookClient
from mockube.apiserver.kinds.api_resource import Resource
from mockube.apiserver.kinds.metrics import resource_metrics
from mockube.apiserver.openapi.documents import ForeignDocuments
from mockube.apiserver.pki.issue import Pair
from mockube.apiserver.registry.backend import Backend
from mockube.apiserver.request.health import Page, Pages

CONVERSION_SECONDS = 30
"""How long a conversion webhook may take."""
CALL_FAILED = "failed to call webhook: "
"""The prefix of errors of admission webhooks; those of conversion webhooks have none."""

_SIMULATED: Final = frozenset(group.name for group in resource_metrics.GROUPS)

Services = Mapping[str, tuple[str, int]]
"""The addresses of Services without reachable endpoints, by NAMESPACE/NAME."""


class ConversionCaller:
    """Sends ConversionReviews. `backend` is made after it, and is where Services are looked up."""

    def __init__(self, client: WebhookClient, services: Services, backend: Callable[[], Backend]) -> None:
        self._client = client
        self._services = services
        self._backend = backend

    async def post(self, client: ReadOnlyTree, body: bytes) -> bytes:
        """Send a review to where a client configuration leads; raises `ConversionFailed`."""
        try:
            at = endpoint(self._backend(), client, self._services, seconds=CONVERSION_SECONDS)
            return await self._client.post(at, body, seconds=CONVERSION_SECONDS)
        except CallFailed as error:
            raise ConversionFailed(str(error).removeprefix(CALL_FAILED)) from error


class Aggregator:
    """Proxies requests to other API servers, and has their discovery and OpenAPI documents."""

    def __init__(
        self,
        backend: Backend,
        api_services: Resource,
        services: Services,
        certificate: Pair | None,
        dialer: Dialer,
    ) -> None:
        self._backend = backend
        self._services = services
        self.remotes = Remotes(backend, api_services)
        self.proxy = ServiceProxy(self._resolve, certificate, dialer)

    def follow(self, api_services: Resource, services: Sequence[Resource]) -> Availability:
        """Begin to follow API services; returns what judges them, and is to be run."""
        self.remotes.follow()
        inspect = ServiceDocuments(self.proxy).inspect
        return Availability(self._backend, api_services, services, self.remotes, inspect)

    def page(self, path: str) -> Page | None:
        """Return the proxy of a path to another server; None if this server serves it."""
        remote = self.remotes.of_path(path) if self.remotes else None
        return None if remote is None else self._forwarding(remote)

    def pages(self) -> Pages:
        return {remote.path: self._forwarding(remote) for remote in self.remotes.served_remotes.values()}

    def replaced_metrics(self) -> frozenset[str]:
        """Return the groups of metrics that are not simulated, for another server serves a version of them."""
        return self.remotes.groups & _SIMULATED

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

    def _forwarding(self, remote: Remote) -> Page:
        return lambda request: self.proxy.forward(remote, request)

    def _resolve(self, remote: Remote) -> Address:
        try:
            return resolve(self._backend, self._services, *remote.service)
        except OnlyPods as error:
            return error.location
        except NoAddress as error:
            raise Unreachable(str(error)) from error
