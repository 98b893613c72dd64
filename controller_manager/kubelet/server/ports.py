"""What a simulated pod answers on its ports: HTTP that names the pod, on those that its containers declare."""

from http import HTTPStatus
from typing import Final

from mockube.apimachinery import meta
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.controller_manager.kubelet.containers.runs import container_status
from mockube.controller_manager.kubelet.pod_lifecycle.script import script_of
from mockube.controller_manager.kubelet.server.spdy_session import ByteStream

MAX_HEAD: Final = 64 * 1024
READ: Final = 16 * 1024
_HANDSHAKE: Final = 0x16
"""What TLS begins with."""
_METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


def is_open(pod: ReadOnlyTree, port: int) -> bool:
    """Whether a container that runs declares the port, or an annotation answers on it."""
    if str(port) in script_of(meta.annotations(pod)).answers:
        return True
    spec = pod["spec"]
    for container in (*spec["containers"], *(spec.get("initContainers") or ())):
        status = container_status(pod, container["name"]) or {}
        if "running" not in (status.get("state") or {}):
            continue
        for declared in container.get("ports") or ():
            if declared["containerPort"] == port and (declared.get("protocol") or "TCP") == "TCP":
                return True
    return False


async def serve_port(pod: ReadOnlyTree, port: int, stream: ByteStream) -> None:
    """Answer requests one after the other, until the client ends, or sends what is no HTTP."""
    buffer = bytearray()
    while (head := await _read_head(stream, buffer)) is not None:
        method, path, headers = head
        await _skip_body(stream, buffer, headers)
        closes = headers.get("connection", "").lower() == "close"
        await stream.write(_response(pod, port, method, path, closes=closes))
        if closes:
            return


async def _read_head(stream: ByteStream, buffer: bytearray) -> tuple[str, str, dict[str, str]] | None:
    while b"\r\n\r\n" not in buffer:
        data = await stream.read(READ)
        if not data or len(buffer) > MAX_HEAD:
            return None
        buffer += data
        if buffer[0] == _HANDSHAKE:
            return None  # no TLS here
    end = buffer.index(b"\r\n\r\n")
    first, *lines = bytes(buffer[:end]).decode("latin-1").split("\r\n")
    del buffer[: end + 4]
    method, _, rest = first.partition(" ")
    path, _, version = rest.partition(" ")
    if method not in _METHODS or not version.startswith("HTTP/1."):
        await stream.write(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
        return None
    pairs = (line.partition(":") for line in lines)
    return method, path, {name.strip().lower(): value.strip() for name, _, value in pairs}


async def _skip_body(stream: ByteStream, buffer: bytearray, headers: dict[str, str]) -> None:
    if "chunked" in headers.get("transfer-encoding", "").lower():
        tail = bytes(buffer)
        while not tail.endswith(b"0\r\n\r\n") and (data := await stream.read(READ)):
            tail = tail[-5:] + data
        buffer.clear()
        return
    length = headers.get("content-length", "")
    remaining = int(length) if length.isascii() and length.isdecimal() and len(length) < 16 else 0
    while remaining > 0:
        skipped = min(remaining, len(buffer))
        del buffer[:skipped]
        remaining -= skipped
        if remaining:
            data = await stream.read(READ)
            if not data:
                return
            buffer += data


def _response(pod: ReadOnlyTree, port: int, method: str, path: str, *, closes: bool) -> bytes:
    answer = script_of(meta.annotations(pod)).answers.get(str(port))
    name = f"{meta.namespace(pod)}/{meta.name(pod)}"
    text = (
        f"mockube: pod {name} is simulated: {method} {path[:2000]} on port {port}\n"
        if answer is None
        else answer
    )
    body = text.encode()
    lines = [
        f"HTTP/1.1 200 {HTTPStatus.OK.phrase}",
        "Content-Type: text/plain; charset=utf-8",
        f"Content-Length: {len(body)}",
        *(["Connection: close"] if closes else []),
    ]
    return "\r\n".join([*lines, "", ""]).encode() + (b"" if method == "HEAD" else body)
