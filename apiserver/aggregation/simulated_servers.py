"""The other servers that are pods on simulated nodes, and whose resources this server computes itself: metrics-server."""

from collections.abc import Iterator
from typing import Final

from mockube.apimachinery import meta
from mockube.apimachinery.groups import NODES, PODS
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apiserver.registry.registry import Backend
from mockube.apiserver.registry.subresources.locations import SIMULATED
from mockube.apiserver.registry.subresources.service_endpoints import slices_of_service

from .remotes import RemoteAPIService

_METRICS: Final = "metrics.k8s.io"
_IMAGE: Final = "metrics-server"


def is_metrics_server(backend: Backend, remote: RemoteAPIService) -> bool:
    """Return whether an APIService is served by a metrics-server whose ready pods are all simulated."""
    if remote.served.group != _METRICS:
        return False
    pods = [*_ready_pods(backend, remote)]
    return bool(pods) and all(pod is not None and _is_simulated(backend, pod) for pod in pods)


def _ready_pods(backend: Backend, remote: RemoteAPIService) -> Iterator[ReadOnlyTree | None]:
    namespace, name, _ = remote.service
    for tree in slices_of_service(backend, namespace, name):
        for endpoint in tree.get("endpoints") or ():
            if (endpoint.get("conditions") or {}).get("ready") is not False:
                target = endpoint.get("targetRef") or {}
                stored = backend.find_cached(PODS, namespace, target.get("name") or "")
                yield None if stored is None else stored.tree()


def _is_simulated(backend: Backend, pod: ReadOnlyTree) -> bool:
    spec = pod.get("spec") or {}
    node = backend.find_cached(NODES, "", spec.get("nodeName") or "")
    key, value = SIMULATED
    has_image = any(_IMAGE in (container.get("image") or "") for container in spec.get("containers") or ())
    return has_image and node is not None and meta.annotations(node.tree()).get(key) == value
