"""What a simulated container answers on a port: by its annotation, by its image, or else the line that names the pod. Pure."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from html import escape
from http import HTTPStatus
from typing import Final

from msgspec import Struct

from mockube.apimachinery import meta
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.container_runtime.config.environment import hostname_of
from mockube.container_runtime.images.table import HTTP, ImageTable, PortBehavior
from mockube.container_runtime.pod_script import script_of
from mockube.container_runtime.runs import container_spec, container_status, running_seconds
from mockube.container_runtime.simulated.server_contract import RunningServer
from mockube.container_runtime.simulated.servers.http_paths import (
    PLACEHOLDER,
    location_of,
    route_of,
    status_of,
)
from mockube.container_runtime.simulated.servers.listeners import Listeners, listeners_of
from mockube.container_runtime.simulated.servers.probe_answers import server_name
from mockube.container_runtime.simulated.servers.running_servers import RunningServers

MAX_PATH: Final = 2000
"""The characters of a path that a response repeats."""
_CONTENT_TYPES: Final = {
    "html": "text/html",
    "css": "text/css",
    "js": "application/javascript",
    "json": "application/json",
    "txt": "text/plain",
    "xml": "text/xml",
    "yaml": "text/yaml",
}

CLIENT_PORT: Final = 40000
"""The port of a client whose own one nobody knows."""


class ReceivedRequest(Struct, frozen=True, kw_only=True):
    """A request that a container receives."""

    method: str
    path: str
    headers: Mapping[str, str] = {}
    """The headers by their names in lower case."""
    client: str = "127.0.0.1"
    elapsed: float = 0.0
    """The seconds since the start of the container."""
    time: str = ""
    body: bytes = b""
    metrics: str = ""
    """What the container shows to Prometheus of what it has done."""
    run: tuple[str, str, int] = ("", "", 0)
    """The run that receives it: the pod's uid, the container's name and its restarts."""


class HttpAnswer(Struct, frozen=True, kw_only=True):
    status: int = 200
    """The status; 0 if the server closes the connection without a response."""
    content_type: str = "text/plain; charset=utf-8"
    server: str = ""
    location: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    """Other headers."""
    body: bytes = b""


class OpenPort(Struct, frozen=True, kw_only=True):
    """A port on which a container listens."""

    speaks: str = ""
    """The protocol; empty if it is unknown: then any client gets an answer."""
    uses_tls: bool | None = False
    """Whether clients need TLS; None if it is unknown."""
    container: ReadOnlyTree | None = None
    """None for the response of an annotation."""
    behavior: PortBehavior | None = None
    """What the container's program does on the port; None if that is unknown."""
    unknown: str = ""
    """What is not simulated, if the behavior is unknown."""
    configured: RunningServer | None = None
    """The server that answers by its configuration; None for any other."""
    argv: tuple[str, ...] = ()
    """The command line of the program; empty for the server of an image without arguments."""
    is_accepted: bool = False
    """Whether a program of the pod accepts the connections itself."""


def open_port(
    images: ImageTable,
    pod: ReadOnlyTree,
    port: int,
    protocol: str = "TCP",
    servers: RunningServers | None = None,
    now: datetime | None = None,
) -> OpenPort | None:
    """Return what listens on a port at a time: an annotation's response, a container's program, or one that is not simulated if it declares the port."""
    if protocol == "TCP" and str(port) in script_of(meta.annotations(pod)).answers:
        return OpenPort(speaks=HTTP, uses_tls=None)
    running_servers = servers.of_pod(pod) if servers is not None else {}
    for name, server in running_servers.items() if protocol == "TCP" else ():
        container = container_spec(pod, name)
        opened = _port_of_configured(container, server, port) if container is not None else None
        if opened is not None:
            return opened
    for container in running_containers(pod):
        has_calls = servers is not None and servers.calls(pod, container["name"]) is not None
        if container["name"] in running_servers and not has_calls:
            continue
        listeners = listeners_of(images, pod, container, servers)
        ports = listeners.ports if protocol == "TCP" else (listeners.datagrams or {}).get(protocol, {})
        if port in ports and not has_begun(images, pod, container, port, servers, now):
            continue
        if port in ports:
            return _opened_by(container, port, listeners, ports[port])
        declared = next(
            (
                entry
                for entry in container.get("ports") or ()
                if entry["containerPort"] == port and (entry.get("protocol") or "TCP") == protocol
            ),
            None,
        )
        if declared is not None and listeners.may_listen(port, protocol):
            unknown = listeners.unknown or f"the image {container.get('image')}"
            return OpenPort(uses_tls=None, container=container, unknown=unknown)
    return None


def has_begun(
    images: ImageTable,
    pod: ReadOnlyTree,
    container: ReadOnlyTree,
    port: int,
    servers: RunningServers | None,
    now: datetime | None,
) -> bool:
    """Return whether the command of a container has called its program that listens on a port."""
    if servers is None or now is None or servers.calls(pod, container["name"]) is not None:
        return True
    seconds = running_seconds(pod, container["name"], now)
    return seconds is None or seconds >= listeners_of(images, pod, container).begin(port)


def _opened_by(
    container: ReadOnlyTree, port: int, listeners: Listeners, behavior: PortBehavior | None
) -> OpenPort:
    if behavior is None:
        unknown = listeners.unknown or server_name(container, port)
        return OpenPort(uses_tls=None, container=container, unknown=unknown)
    call = listeners.calls.get(port)
    return OpenPort(
        speaks=behavior.speaks,
        uses_tls=behavior.tls,
        container=container,
        behavior=behavior,
        argv=() if call is None else call.argv,
    )


def _port_of_configured(container: ReadOnlyTree, server: RunningServer, port: int) -> OpenPort | None:
    """Return what a server does on a port by its configuration; None if it does not listen there, or has not started yet."""
    configuration = server.configuration
    if configuration is None:
        return None
    if port in configuration.unknown_ports:
        unknown = f"{configuration.unknown_ports[port]} in the image {container.get('image')}"
        return OpenPort(uses_tls=None, container=container, unknown=unknown)
    if port not in configuration.ports:
        return None
    return OpenPort(speaks=HTTP, uses_tls=configuration.ports[port], container=container, configured=server)


def running_containers(pod: ReadOnlyTree) -> Iterator[ReadOnlyTree]:
    spec = pod["spec"]
    for container in (*spec["containers"], *(spec.get("initContainers") or ())):
        status = container_status(pod, container["name"]) or {}
        if "running" in (status.get("state") or {}):
            yield container


def fixed_answer(
    pod: ReadOnlyTree, port: int, opened: OpenPort, request: ReceivedRequest
) -> HttpAnswer | None:
    """Return the answer that depends on no file and no Ingress; None if there is none."""
    configured_text = script_of(meta.annotations(pod)).answers.get(str(port))
    if configured_text is not None:
        return HttpAnswer(body=configured_text.encode())
    behavior = opened.behavior
    if behavior is None:
        text = f"{unknown_line(pod, opened)}: {request.method} {request.path[:MAX_PATH]} on port {port}\n"
        return HttpAnswer(body=text.encode())
    route = route_of(behavior, request.path, request.elapsed)
    if route is None:
        return None
    body = placeholder_text(route.body, pod, request)
    return HttpAnswer(
        status=status_of(route, request.path),
        content_type=route.content_type,
        server=behavior.server,
        location=location_of(route, request.path),
        body=body.encode(),
    )


def unknown_line(pod: ReadOnlyTree, opened: OpenPort) -> str:
    """Return what says that the server of a pod is not simulated."""
    return f"mockube: pod {meta.namespaced_name(pod)} is simulated, but not {opened.unknown}"


def placeholder_text(text: str, pod: ReadOnlyTree, request: ReceivedRequest) -> str:
    """Return the text of a route with the values of a request."""
    return PLACEHOLDER.sub(lambda match: _value(match[1], pod, request), text)


def _value(name: str, pod: ReadOnlyTree, request: ReceivedRequest) -> str:
    """Return the text of a placeholder in a body; an unknown one is left as it is."""
    values = {
        "hostname": hostname_of(pod),
        "namespace": meta.namespace(pod),
        "address": (pod.get("status") or {}).get("podIP") or "",
        "client": request.client,
        "clientaddress": request.client.rpartition(":")[0] or request.client,
        "method": request.method,
        "path": request.path[:MAX_PATH],
        "host": request.headers.get("host", ""),
        "elapsed": f"{request.elapsed:.6f}",
        "time": request.time,
        "metrics": request.metrics,
        "headers": "\n".join(
            f"{key.title()}: {value}" for key, value in sorted(request.headers.items()) if key != "host"
        ),
    }
    return values.get(name, f"$({name})")


_NOT_FOUND: Final = "404 Not Found"
_PHRASES_OF_NGINX: Final = {405: "Not Allowed", 503: "Service Temporarily Unavailable"}


def missing_answer(behavior: PortBehavior, status: int = 404) -> HttpAnswer:
    """Return the page of a server about a status, that of a path that does not exist with another title."""
    phrase = _PHRASES_OF_NGINX.get(status) or HTTPStatus(status).phrase
    body = behavior.missing.replace(_NOT_FOUND, f"{status} {phrase}")
    return HttpAnswer(
        status=status,
        content_type=_html_or_text(behavior.missing),
        server=behavior.server,
        body=body.encode(),
    )


def _html_or_text(text: str) -> str:
    return "text/html" if text.lstrip().startswith("<") else "text/plain; charset=utf-8"


def file_answer(behavior: PortBehavior, path: str, data: bytes) -> HttpAnswer:
    content_type = _CONTENT_TYPES.get(path.rpartition(".")[2], "application/octet-stream")
    return HttpAnswer(content_type=content_type, server=behavior.server, body=data)


def folder_answer(behavior: PortBehavior, path: str, names: Iterable[str]) -> HttpAnswer:
    """Return the list of a folder's files, as of python -m http.server."""
    title = f"Directory listing for {path.partition('?')[0][:MAX_PATH]}"
    items = "".join(f'<li><a href="{escape(name)}">{escape(name)}</a></li>\n' for name in sorted(names))
    text = (
        f'<!DOCTYPE HTML>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>{escape(title)}</title>\n</head>\n<body>\n'
        f"<h1>{escape(title)}</h1>\n<hr>\n<ul>\n{items}</ul>\n<hr>\n</body>\n</html>\n"
    )
    return HttpAnswer(content_type="text/html; charset=utf-8", server=behavior.server, body=text.encode())


def greeting_of(opened: OpenPort) -> bytes:
    """Return what a server sends before it has received anything."""
    return opened.behavior.greeting.encode("latin-1", "replace") if opened.behavior is not None else b""


def reply_to(behavior: PortBehavior | None, data: bytes) -> bytes:
    """Return what a server of another protocol replies to what its client sends first."""
    text = data.decode("utf-8", "replace").strip().lower()
    replies = behavior.replies if behavior is not None else {}
    return next((reply.encode() for word, reply in replies.items() if text == word.lower()), b"")
