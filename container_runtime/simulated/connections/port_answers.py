"""What a simulated container answers on a port: by its annotation, by its image, or else the line that names the pod. Pure."""

import re
from collections.abc import Iterator, Mapping
from posixpath import normpath
from typing import Final

from msgspec import Struct

from mockube.apimachinery import meta
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.container_runtime.config.environment import hostname_of
from mockube.container_runtime.images.table import HttpRoute, PortBehavior, behavior_of
from mockube.container_runtime.pod_script import script_of
from mockube.container_runtime.runs import container_status
from mockube.container_runtime.simulated.programs.program import command_of
from mockube.container_runtime.simulated.shell.programs.all_programs import PROGRAMS

MAX_PATH: Final = 2000
"""The characters of a path that a response repeats."""
HTTP: Final = "http"
_SHELLS: Final = frozenset({"sh", "bash", "ash", "dash"})
_TLS_PORTS: Final = frozenset({443, 6443, 8443, 9443, 10250})
_TLS_NAMES: Final = ("https", "tls", "webhook")
_PLACEHOLDER: Final = re.compile(r"\$\(([a-z]+)\)")
_CONTENT_TYPES: Final = {
    "html": "text/html",
    "css": "text/css",
    "js": "application/javascript",
    "json": "application/json",
    "txt": "text/plain",
    "xml": "text/xml",
    "yaml": "text/yaml",
}


class ReceivedRequest(Struct, frozen=True, kw_only=True):
    """A request that a container receives."""

    method: str
    path: str
    headers: Mapping[str, str] = {}
    """The headers by their names in lower case."""
    client: str = "127.0.0.1"


class HttpAnswer(Struct, frozen=True, kw_only=True):
    status: int = 200
    content_type: str = "text/plain; charset=utf-8"
    server: str = ""
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
    """What the container's image does on the port; None if that is unknown."""


def open_port(pod: ReadOnlyTree, port: int, protocol: str = "TCP") -> OpenPort | None:
    """Return what listens on a port: an annotation's response, a container that declares it, or an image's server."""
    if protocol == "TCP" and str(port) in script_of(meta.annotations(pod)).answers:
        return OpenPort(speaks=HTTP, uses_tls=None)
    for container in _running_containers(pod):
        behavior = _behavior(container, port) if protocol == "TCP" else None
        declared = next(
            (
                entry
                for entry in container.get("ports") or ()
                if entry["containerPort"] == port and (entry.get("protocol") or "TCP") == protocol
            ),
            None,
        )
        if behavior is not None:
            is_configured = _is_configured(container)
            return OpenPort(
                speaks=behavior.speaks,
                uses_tls=None if is_configured else behavior.tls,
                container=container,
                behavior=None if is_configured else behavior,
            )
        if declared is not None:
            name = declared.get("name") or ""
            may_use_tls = port in _TLS_PORTS or any(part in name for part in _TLS_NAMES)
            return OpenPort(uses_tls=None if may_use_tls else False, container=container)
    return None


def _behavior(container: ReadOnlyTree, port: int) -> PortBehavior | None:
    """Return what the image's server does on a port, unless the container runs another program."""
    image = behavior_of(container)
    if image is None or port not in image.ports:
        return None
    argv = command_of(container)
    program = argv[0].rpartition("/")[2] if argv else ""
    is_server = not image.entrypoint and (program not in PROGRAMS or program in _SHELLS)
    return image.ports[port] if is_server or (image.listens and container.get("args")) else None


def _is_configured(container: ReadOnlyTree) -> bool:
    """Return whether a volume may replace the configuration of the image's server."""
    image = behavior_of(container)
    mounts = [normpath(mount["mountPath"]) for mount in container.get("volumeMounts") or ()]
    return image is not None and any(
        f"{mount}/".startswith(f"{path}/") or f"{path}/".startswith(f"{mount}/")
        for path in image.configuration
        for mount in mounts
    )


def _running_containers(pod: ReadOnlyTree) -> Iterator[ReadOnlyTree]:
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
        name = meta.namespaced_name(pod)
        text = (
            f"mockube: pod {name} is simulated: {request.method} {request.path[:MAX_PATH]} on port {port}\n"
        )
        return HttpAnswer(body=text.encode())
    path = request.path.partition("?")[0]
    route = next((route for route in behavior.routes if _matches(route, path)), None)
    if route is None:
        return None
    body = _PLACEHOLDER.sub(lambda match: _value(match[1], pod, request), route.body)
    return HttpAnswer(
        status=route.status, content_type=route.content_type, server=behavior.server, body=body.encode()
    )


def _matches(route: HttpRoute, path: str) -> bool:
    if path == route.path:
        return True
    return not route.exact and path.startswith(route.path.rstrip("/") + "/")


def _value(name: str, pod: ReadOnlyTree, request: ReceivedRequest) -> str:
    """Return the text of a placeholder in a body; an unknown one is left as it is."""
    values = {
        "hostname": hostname_of(pod),
        "namespace": meta.namespace(pod),
        "address": (pod.get("status") or {}).get("podIP") or "",
        "client": request.client,
        "method": request.method,
        "path": request.path[:MAX_PATH],
        "host": request.headers.get("host", ""),
        "headers": "\n".join(
            f"{key.title()}: {value}" for key, value in sorted(request.headers.items()) if key != "host"
        ),
    }
    return values.get(name, f"$({name})")


def missing_answer(behavior: PortBehavior, status: int = 404) -> HttpAnswer:
    return HttpAnswer(
        status=status,
        content_type=_html_or_text(behavior.missing),
        server=behavior.server,
        body=behavior.missing.encode(),
    )


def _html_or_text(text: str) -> str:
    return "text/html" if text.lstrip().startswith("<") else "text/plain; charset=utf-8"


def file_of(behavior: PortBehavior, path: str) -> str:
    """Return the file that a server of files sends for the path of a request."""
    inner = normpath("/" + path.partition("?")[0].lstrip("/"))
    is_folder = path.partition("?")[0].endswith("/")
    return normpath(f"{behavior.root}{inner}") + ("/index.html" if is_folder else "")


def file_answer(behavior: PortBehavior, path: str, data: bytes) -> HttpAnswer:
    content_type = _CONTENT_TYPES.get(path.rpartition(".")[2], "application/octet-stream")
    return HttpAnswer(content_type=content_type, server=behavior.server, body=data)


def reply_to(behavior: PortBehavior | None, data: bytes) -> bytes:
    """Return what a server of another protocol replies to what its client sends first."""
    text = data.decode("utf-8", "replace").strip().lower()
    replies = behavior.replies if behavior is not None else {}
    return next((reply.encode() for word, reply in replies.items() if text == word.lower()), b"")
