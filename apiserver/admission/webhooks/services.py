"""Where a webhook is: its URL, or the Service that its configuration names.

A Service leads to a process of this machine where its EndpointSlices have addresses that are no simulated pod's.
Elsewhere somebody has to say where it runs: `--webhook-service NAMESPACE/NAME=HOST:PORT`.
"""

import base64
import binascii
from collections.abc import Iterator, Mapping
from posixpath import normpath
from typing import Final, Protocol
from urllib.parse import urlsplit

from msgspec import Struct

from mockube.apimachinery.groups import GroupResource
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apiserver.admission.webhooks.review import CallFailed
from mockube.apiserver.registry.backend import Backend

SERVICES: Final = GroupResource("", "services")
SLICES: Final = GroupResource("discovery.k8s.io", "endpointslices")
NODES: Final = GroupResource("", "nodes")
_SIMULATED: Final = ("kwok.x-k8s.io/node", "fake")
_SERVICE_NAME: Final = "kubernetes.io/service-name"
_POD: Final = ("v1", "Pod")
_HTTPS: Final = 443


class Endpoint(Struct, frozen=True, kw_only=True):
    """What to call. `connect` is where it really is, if the host of the URL does not say that."""

    url: str
    authority: bytes = b""
    """The CA's certificates in PEM; without them those of the system count."""
    connect: tuple[str, int] | None = None


class Caller(Protocol):
    async def post(self, endpoint: Endpoint, body: bytes, *, seconds: float) -> bytes:
        """Return the body of a good answer, or raise CallFailed with Go's words."""


def endpoint(
    backend: Backend, config: ReadOnlyTree, overrides: Mapping[str, tuple[str, int]], *, seconds: int
) -> Endpoint:
    """Where a client configuration leads, or CallFailed."""
    authority = _authority(config.get("caBundle"))
    service = config.get("service")
    if service is None:
        url = config.get("url") or ""
        if not url:
            raise CallFailed(
                "could not get REST client: webhook configuration must have either service or URL"
            )
        parts = urlsplit(url)
        return Endpoint(url=f"{parts.scheme}://{parts.netloc}{_clean(parts.path)}", authority=authority)
    namespace, name = service.get("namespace", ""), service.get("name", "")
    port = service.get("port") or _HTTPS
    url = f"https://{name}.{namespace}.svc:{port}{_clean(service.get('path') or '')}"
    try:
        at = resolve(backend, overrides, namespace, name, port)
    except NoAddress as error:
        raise CallFailed(f'failed to call webhook: Post "{url}?timeout={seconds}s": {error}') from error
    return Endpoint(url=url, authority=authority, connect=at)


def _clean(path: str) -> str:
    """A path as Go's client joins it: without slashes that come twice, and dots."""
    return "/" + normpath(f"/{path}").lstrip("/")


def _authority(bundle: str | None) -> bytes:
    try:
        return base64.b64decode(bundle or "")
    except binascii.Error as error:
        raise CallFailed(f"could not get REST client: {error}") from error


class NoAddress(Exception):
    """A Service leads to nothing that this machine can reach."""


def resolve(
    backend: Backend, overrides: Mapping[str, tuple[str, int]], namespace: str, name: str, port: int
) -> tuple[str, int]:
    """Host and port of what is behind a Service's port, or `NoAddress`."""
    at = overrides.get(f"{namespace}/{name}")
    if at is not None:
        return at
    stored = backend.seen(SERVICES, namespace, name)
    if stored is None:
        raise NoAddress(f'service "{name}" not found')
    spec = stored.tree().get("spec") or {}
    if spec.get("type") == "ExternalName":
        return spec.get("externalName") or "", port
    wanted = next((one for one in spec.get("ports") or () if one.get("port") == port), None)
    if wanted is None:
        raise NoAddress(f'no service port {port} found for service "{name}"')
    found = [*_addresses(backend, namespace, name, wanted.get("name") or "")]
    if not found:
        raise NoAddress(f'no endpoints available for service "{name}"')
    reachable = next((one[:2] for one in found if not one[2]), None)
    if reachable is None:
        hint = f"start the API server with --webhook-service={namespace}/{name}=HOST:PORT"
        raise NoAddress(f'service "{name}" leads to simulated pods only: {hint}')
    return reachable


def _addresses(backend: Backend, namespace: str, name: str, port: str) -> Iterator[tuple[str, int, bool]]:
    """Host and port of what is ready, and whether it is simulated."""
    for stored in backend.all_seen(SLICES, namespace):
        if stored.labels.get(_SERVICE_NAME) != name:
            continue
        tree = stored.tree()
        ports = [one.get("port") for one in tree.get("ports") or () if (one.get("name") or "") == port]
        for one in tree.get("endpoints") or ():
            if ports and ports[0] and (one.get("conditions") or {}).get("ready", True):
                simulated = _is_simulated(backend, one)
                yield from ((address, ports[0], simulated) for address in one.get("addresses") or ())


def _is_simulated(backend: Backend, given: ReadOnlyTree) -> bool:
    """Whether there is a pod behind it that has no processes."""
    target = given.get("targetRef") or {}
    if (target.get("apiVersion", "v1"), target.get("kind")) != _POD:
        return False
    name = given.get("nodeName") or ""
    node = backend.seen(NODES, "", name) if name else None
    if node is None:
        return True
    annotations = node.tree()["metadata"].get("annotations") or {}
    return bool(annotations.get(_SIMULATED[0]) == _SIMULATED[1])
