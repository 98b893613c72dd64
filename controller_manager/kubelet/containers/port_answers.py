"""What a simulated container answers on a port: the response of its annotation, or else the line that names the pod. Pure."""

from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from mockube.apimachinery import meta
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.controller_manager.kubelet.containers.runs import container_status
from mockube.controller_manager.kubelet.pod_script import script_of

MAX_PATH: Final = 2000
"""The characters of a path that a response repeats."""
HTTP: Final = "http"
_TLS_PORTS: Final = frozenset({443, 6443, 8443, 9443, 10250})
_TLS_NAMES: Final = ("https", "tls", "webhook")


class HttpAnswer(Struct, frozen=True, kw_only=True):
    status: int = 200
    content_type: str = "text/plain; charset=utf-8"
    body: bytes = b""


class OpenPort(Struct, frozen=True, kw_only=True):
    """A port on which a container listens."""

    speaks: str = ""
    """The protocol; empty if it is unknown: then any client gets an answer."""
    uses_tls: bool | None = False
    """Whether clients need TLS; None if it is unknown."""


def open_port(pod: ReadOnlyTree, port: int, protocol: str = "TCP") -> OpenPort | None:
    """Return what listens on a port: an annotation's response, or a running container that declares the port."""
    if protocol == "TCP" and str(port) in script_of(meta.annotations(pod)).answers:
        return OpenPort(speaks=HTTP, uses_tls=None)
    for container in running_containers(pod):
        for declared in container.get("ports") or ():
            if declared["containerPort"] == port and (declared.get("protocol") or "TCP") == protocol:
                name = declared.get("name") or ""
                may_use_tls = port in _TLS_PORTS or any(part in name for part in _TLS_NAMES)
                return OpenPort(uses_tls=None if may_use_tls else False)
    return None


def running_containers(pod: ReadOnlyTree) -> Iterator[ReadOnlyTree]:
    spec = pod["spec"]
    for container in (*spec["containers"], *(spec.get("initContainers") or ())):
        status = container_status(pod, container["name"]) or {}
        if "running" in (status.get("state") or {}):
            yield container


def http_answer(pod: ReadOnlyTree, port: int, method: str, path: str) -> HttpAnswer:
    configured_text = script_of(meta.annotations(pod)).answers.get(str(port))
    if configured_text is not None:
        return HttpAnswer(body=configured_text.encode())
    name = f"{meta.namespace(pod)}/{meta.name(pod)}"
    text = f"mockube: pod {name} is simulated: {method} {path[:MAX_PATH]} on port {port}\n"
    return HttpAnswer(body=text.encode())
