"""What a pod's ports answer to the probes of a kubelet, as far as its specification and its images say it. Pure."""

from typing import Final

from msgspec.structs import replace

from mockube.apimachinery.tree import ReadOnlyTree
from mockube.container_runtime.images.table import HTTP, ImageTable, PortBehavior
from mockube.container_runtime.pod_script import Script
from mockube.container_runtime.port_probe import REFUSED, PortAnswer, PortProbe
from mockube.container_runtime.simulated.programs.contexts import concurrent_containers

from .http_paths import KindOfFile, location_of, route_of, served_file, status_of
from .listeners import listeners_of, overlaps
from .running_servers import RunningServers
from .server_programs import ACTIONS, AgnhostPort

_GRPC: Final = "grpc"
_SETTINGS: Final = "\0\0\x06\x04\0\0\0\0\0\0\x05\0\0@\0"
"""The frame with which a server of HTTP/2 begins."""


def predicted_answer(
    images: ImageTable,
    pod: ReadOnlyTree,
    request: PortProbe,
    script: Script,
    elapsed: float,
    servers: RunningServers | None = None,
) -> PortAnswer:
    """Return the answer of a pod's port, some seconds after the start of the container that listens on it."""
    if str(request.port) in script.answers:
        return PortAnswer(uses_tls=None)
    unknown = ""
    for container in concurrent_containers(pod):
        listeners = listeners_of(images, pod, container, servers)
        if request.port in listeners.ports:
            behavior = listeners.ports[request.port]
            if behavior is None:
                return PortAnswer(unknown=listeners.unknown or server_name(container, request.port))
            if behavior.root and request.path is not None and not _has_files(images, container, behavior):
                return PortAnswer(unknown=f"what is in {behavior.root} of the image {container.get('image')}")
            return answer_of(container, behavior, request, elapsed, _kind_in_image(images, container))
        if not unknown and listeners.may_listen(request.port):
            unknown = listeners.unknown or server_name(container, request.port)
    if not unknown and pod["spec"].get("hostNetwork"):
        unknown = "another pod in the network of the node"
    return PortAnswer(unknown=unknown, is_listening=False) if unknown else REFUSED


def server_name(container: ReadOnlyTree, port: int) -> str:
    return f"the server on port {port} of the image {container.get('image')}"


def times_of_changes(images: ImageTable, pod: ReadOnlyTree, port: int) -> tuple[float, ...]:
    """Return the seconds after the start of a container at which the answers of a port change."""
    server = _server_on(images, pod, port)
    return () if server is None else tuple(sorted({route.since for route in server[1].routes if route.since}))


def server_of_files(
    images: ImageTable, pod: ReadOnlyTree, port: int, servers: RunningServers | None = None
) -> tuple[ReadOnlyTree, PortBehavior] | None:
    """Return the container that serves its files on a port, with what it does there; None if none does."""
    server = _server_on(images, pod, port, servers)
    return server if server is not None and server[1].root else None


def handled_server_on(
    images: ImageTable, pod: ReadOnlyTree, port: int, servers: RunningServers | None = None
) -> ReadOnlyTree | None:
    """Return the container whose program has rules of its own for the requests to a port; None if none has."""
    server = _server_on(images, pod, port, servers)
    return server[0] if server is not None and isinstance(server[1], AgnhostPort) else None


def _server_on(
    images: ImageTable, pod: ReadOnlyTree, port: int, servers: RunningServers | None = None
) -> tuple[ReadOnlyTree, PortBehavior] | None:
    """Return the first container with a known server on a port, and what it does there."""
    for container in concurrent_containers(pod):
        behavior = listeners_of(images, pod, container, servers).ports.get(port)
        if behavior is not None:
            return container, behavior
    return None


def has_fixed_files(images: ImageTable, container: ReadOnlyTree, behavior: PortBehavior) -> bool:
    """Return whether a server of files has those of its image, as long as no client changes them."""
    is_mounted = any(
        overlaps(behavior.root, mount["mountPath"]) for mount in container.get("volumeMounts") or ()
    )
    is_changed = is_mounted or container.get("command") or container.get("lifecycle")
    return not is_changed and _has_files(images, container, behavior)


def _has_files(images: ImageTable, container: ReadOnlyTree, behavior: PortBehavior) -> bool:
    """Return whether the files that a server serves are known from its image."""
    image = images.behavior_of(container)
    return image is not None and any(path.startswith(f"{behavior.root}/") for path in image.files)


def _kind_in_image(images: ImageTable, container: ReadOnlyTree) -> KindOfFile:
    image = images.behavior_of(container)
    files = image.files if image is not None else {}

    def kind(path: str) -> str:
        if path in files:
            return "file"
        return "folder" if any(other.startswith(f"{path.rstrip('/')}/") for other in files) else ""

    return kind


def answer_of(
    container: ReadOnlyTree, behavior: PortBehavior, request: PortProbe, elapsed: float, kind: KindOfFile
) -> PortAnswer:
    """Return the answer of a server whose behavior is known; `kind` returns what a path of its container is."""
    first_line = behavior.greeting or (_SETTINGS if behavior.speaks == _GRPC else "")
    answer = PortAnswer(
        speaks=behavior.speaks,
        uses_tls=behavior.tls,
        plain_status=behavior.plain_status,
        first_line=first_line.partition("\n")[0],
        has_grpc_health=behavior.grpc_health is not None,
        grpc_health=(behavior.grpc_health or {}).get(request.service),
    )
    if behavior.speaks != HTTP or request.path is None:
        return answer
    route = route_of(behavior, request.path, elapsed)
    if route is not None:
        location = location_of(route, request.path)
        if isinstance(behavior, AgnhostPort) and route.path in ACTIONS:
            unknown = f"the path {route.path} on port {request.port} of the image {container.get('image')}"
            return replace(answer, unknown=unknown)
        status = status_of(route, request.path)
        return replace(answer, status=status, location=location, body=route.body)
    if behavior.root:
        served = served_file(behavior, request.path, kind)
        return replace(answer, status=served.status, location=served.location)
    if behavior.only_routes:
        return replace(answer, status=404)
    path = request.path.partition("?")[0]
    unknown = f"the path {path} on port {request.port} of the image {container.get('image')}"
    return replace(answer, unknown=unknown)
