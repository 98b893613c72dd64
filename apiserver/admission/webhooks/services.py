"""The address of a webhook: its URL, or that of the Service in its configuration.

A Service is reachable if its EndpointSlices have addresses that are not those of simulated pods, or the address of a
pod whose container runs as a process, which is reached through its kubelet. For other Services a flag sets the
address: `--webhook-service NAMESPACE/NAME=HOST:PORT`. A write passes without a webhook whose Service leads to simulated pods
only, unless `--simulated-webhooks=refuse` or an annotation of the configuration makes it an error.
"""

import base64
from collections.abc import Iterator, Mapping
from posixpath import normpath
from typing import Final, Protocol
from urllib.parse import urlsplit

from msgspec import Struct

from mockube.apimachinery.groups import NODES, SERVICES
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apiserver.registry.registry import Backend
from mockube.apiserver.registry.subresources.locations import SIMULATED, Location, gateway_of
from mockube.apiserver.registry.subresources.service_endpoints import slices_of_service

from .review import WebhookCallFailed

_POD: Final = ("v1", "Pod")
_HTTPS: Final = 443


class WebhookEndpoint(Struct, frozen=True, kw_only=True):
    """The endpoint of a webhook. `connect` is its host and port, if they are not those of the URL."""

    url: str
    authority: bytes = b""
    """The CA's certificates in PEM; if empty, those of the system are used."""
    connect: tuple[str, int] | None = None
    pod: Location | None = None
    """The port of a pod, which is reached through a kubelet if a process runs there."""
    hint: str = ""
    """The error if no process listens there."""


class Caller(Protocol):
    async def post(self, endpoint: WebhookEndpoint, body: bytes, *, seconds: float) -> bytes:
        """Return the body of a successful response, or raise CallFailed with Go's message."""


def endpoint(
    backend: Backend, config: ReadOnlyTree, overrides: Mapping[str, tuple[str, int]], *, seconds: int
) -> WebhookEndpoint:
    """Return the endpoint of a client configuration, or raise CallFailed."""
    authority = _authority(config.get("caBundle"))
    service = config.get("service")
    if service is None:
        url = config.get("url") or ""
        if not url:
            raise WebhookCallFailed(
                "could not get REST client: webhook configuration must have either service or URL"
            )
        parts = urlsplit(url)
        return WebhookEndpoint(
            url=f"{parts.scheme}://{parts.netloc}{_clean_path(parts.path)}", authority=authority
        )
    namespace, name = service.get("namespace", ""), service.get("name", "")
    port = service.get("port") or _HTTPS
    url = f"https://{name}.{namespace}.svc:{port}{_clean_path(service.get('path') or '')}"
    try:
        address = resolve(backend, overrides, namespace, name, port)
    except OnlyPodAddresses as error:
        return WebhookEndpoint(url=url, authority=authority, pod=error.location, hint=str(error))
    except NoAddress as error:
        failure = SimulatedWebhook if isinstance(error, OnlySimulatedPods) else WebhookCallFailed
        raise failure(f'failed to call webhook: Post "{url}?timeout={seconds}s": {error}') from error
    return WebhookEndpoint(url=url, authority=authority, connect=address)


def _clean_path(path: str) -> str:
    """Return a path as Go's client joins it: without repeated slashes and without dot segments."""
    return "/" + normpath(f"/{path}").lstrip("/")


def _authority(bundle: str | None) -> bytes:
    try:
        return base64.b64decode(bundle or "")
    except ValueError as error:
        raise WebhookCallFailed(f"could not get REST client: {error}") from error


class SimulatedWebhook(WebhookCallFailed):
    """A webhook's Service leads to simulated pods only: nobody can answer for it."""


class NoAddress(Exception):
    """A Service has no address that this machine can reach."""


class OnlySimulatedPods(NoAddress):
    """A Service has only addresses of simulated pods, and no kubelet can be asked for processes."""


class OnlyPodAddresses(NoAddress):
    """A Service has only addresses of simulated pods; one of these pods may run as a process."""

    def __init__(self, problem: str, location: Location) -> None:
        super().__init__(problem)
        self.location = location


def resolve(
    backend: Backend, overrides: Mapping[str, tuple[str, int]], namespace: str, name: str, port: int
) -> tuple[str, int]:
    """Return the host and port of an endpoint of a Service's port, or raise `NoAddress`."""
    override = overrides.get(f"{namespace}/{name}")
    if override is not None:
        return override
    stored = backend.find_cached(SERVICES, namespace, name)
    if stored is None:
        raise NoAddress(f'service "{name}" not found')
    spec = stored.tree().get("spec") or {}
    if spec.get("type") == "ExternalName":
        return spec.get("externalName") or "", port
    service_port = next(
        (candidate for candidate in spec.get("ports") or () if candidate.get("port") == port), None
    )
    if service_port is None:
        raise NoAddress(f'no service port {port} found for service "{name}"')
    addresses = [*_addresses(backend, namespace, name, service_port.get("name") or "")]
    if not addresses:
        raise NoAddress(f'no endpoints available for service "{name}"')
    reachable = next((endpoint[:2] for endpoint in addresses if endpoint[2] is None), None)
    if reachable is not None:
        return reachable
    hint = f"start the API server with --webhook-service={namespace}/{name}=HOST:PORT"
    problem = f'service "{name}" leads to simulated pods only: {hint}'
    for address, number, node in addresses:
        gateway = gateway_of(backend, node) if node else None
        if gateway is not None:
            location = Location(
                scheme="http", host=address, port=str(number), gateway=gateway, is_process=True
            )
            raise OnlyPodAddresses(problem, location)
    raise OnlySimulatedPods(problem)


def _addresses(
    backend: Backend, namespace: str, name: str, port: str
) -> Iterator[tuple[str, int, ReadOnlyTree | None]]:
    """Yield host, port and node of ready endpoints; the node is None unless simulated, and empty if unknown."""
    for tree in slices_of_service(backend, namespace, name):
        ports = [
            slice_port.get("port")
            for slice_port in tree.get("ports") or ()
            if (slice_port.get("name") or "") == port
        ]
        for endpoint in tree.get("endpoints") or ():
            if ports and ports[0] and (endpoint.get("conditions") or {}).get("ready", True):
                node = _simulated_node(backend, endpoint)
                yield from ((address, ports[0], node) for address in endpoint.get("addresses") or ())


def _simulated_node(backend: Backend, endpoint: ReadOnlyTree) -> ReadOnlyTree | None:
    """Return the simulated node of an endpoint's pod; {} if the node is unknown, None if the pod is not simulated."""
    target = endpoint.get("targetRef") or {}
    if (target.get("apiVersion", "v1"), target.get("kind")) != _POD:
        return None
    name = endpoint.get("nodeName") or ""
    node = backend.find_cached(NODES, "", name) if name else None
    if node is None:
        return {}
    tree = node.tree()
    annotations = tree["metadata"].get("annotations") or {}
    return tree if annotations.get(SIMULATED[0]) == SIMULATED[1] else None
