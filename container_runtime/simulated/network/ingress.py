"""Ingresses: the backend of a request by its host and path."""

from collections.abc import Iterator
from typing import Any, Final

from mockube.apimachinery import meta
from mockube.apimachinery.tree import ReadOnlyTree

from .view import ClusterView

_CLASS_ANNOTATION: Final = "kubernetes.io/ingress.class"
Backend = tuple[str, str, int | str]
"""The namespace, name and port of a Service; the port may be a name."""


def backend_of(view: ClusterView, controller: str, host: str, path: str) -> Backend | None:
    """Return the backend that a controller serves for a request; None if there is none.

    An exact host goes before a wildcard, which goes before no host; among paths, Exact goes before the longest prefix.
    """
    candidates = [
        (rank, backend)
        for ingress in view.ingresses()
        if controller_of(view, ingress) == controller
        for rank, backend in _candidates(ingress, host.lower(), path)
    ]
    return max(candidates, key=lambda candidate: candidate[0])[1] if candidates else None


def controller_of(view: ClusterView, ingress: ReadOnlyTree) -> str:
    """Return the controller of an Ingress's class."""
    name = (ingress.get("spec") or {}).get("ingressClassName")
    annotation = meta.annotations(ingress).get(_CLASS_ANNOTATION)
    return view.ingress_controller(name or annotation or "")


Rank = tuple[int, int, int]
"""How well a rule matches: its host, the kind of its path, the length of its path."""


def _candidates(ingress: ReadOnlyTree, host: str, path: str) -> Iterator[tuple[Rank, Backend]]:
    namespace, spec = meta.namespace(ingress), ingress.get("spec") or {}
    default = _backend(namespace, spec.get("defaultBackend"))
    if default is not None:
        yield (-1, 0, 0), default
    for rule in spec.get("rules") or ():
        host_rank = _host_rank((rule.get("host") or "").lower(), host)
        if host_rank is None:
            continue
        for entry in (rule.get("http") or {}).get("paths") or ():
            backend = _backend(namespace, entry.get("backend"))
            path_rank = _path_rank(entry.get("pathType") or "", entry.get("path") or "/", path)
            if backend is not None and path_rank is not None:
                yield (host_rank, *path_rank), backend


def _backend(namespace: str, backend: Any) -> Backend | None:
    service = (backend or {}).get("service")
    if not service:
        return None
    port = service.get("port") or {}
    return namespace, service["name"], port.get("number") or port.get("name") or 0


def _host_rank(rule: str, host: str) -> int | None:
    """Return how well a rule's host matches; None if it does not. A wildcard stands for one label."""
    if not rule:
        return 0
    if rule == host:
        return 2
    if rule.startswith("*."):
        label, dot, rest = host.partition(".")
        return 1 if label and dot and rest == rule[2:] else None
    return None


def _path_rank(path_type: str, rule: str, path: str) -> tuple[int, int] | None:
    if path_type == "Exact":
        return (1, len(rule)) if rule == path else None
    # What ImplementationSpecific means is the controller's choice; those of NGINX and Traefik match prefixes.
    prefix = rule.rstrip("/")
    return (0, len(prefix)) if path == prefix or path.startswith(f"{prefix}/") else None
