"""One attempt of a probe or a hook of a container that runs as a process: a command, an HTTP request, a TCP connection, or a gRPC health check."""

import asyncio
import re
import ssl
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from functools import cache
from typing import Final
from urllib.parse import SplitResult, unquote_to_bytes, urljoin, urlsplit
from urllib.parse import quote as percent_encode

from msgspec import Struct
from msgspec.structs import replace

from mockube.apimachinery.gotext import quote
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.component_base.clock import Clock
from mockube.component_base.http1.heads import BadStartLine, IncompleteMessage, ProtocolError, ResponseHead
from mockube.component_base.http1.reading import NEED_DATA, ResponseReader
from mockube.component_base.http1.writing import InvalidHead, encode_request
from mockube.component_base.supervision import timeout
from mockube.container_runtime.port_probe import USER_AGENT
from mockube.container_runtime.process_port import ProcessPort
from mockube.kubelet.pod_lifecycle.probing import UnresolvedPort, resolve_port

from .grpc_health import GrpcError, check_health
from .http2_get import get_status

READ: Final = 16 << 10
_VALID_PATH: Final = re.compile(r"(?:[0-9A-Za-z$&+,/:;=@._~!'()*\[\]-]|%[0-9A-Fa-f]{2})*")
_SWITCHING_PROTOCOLS: Final = 101
MAX_REDIRECTS: Final = 10


class HandlerResult(Struct, frozen=True, kw_only=True):
    success: bool
    output: str = ""
    is_unknown: bool = False
    """Whether the handler could not be run, so that nothing is known of the container."""


SUCCESS: Final = HandlerResult(success=True)


def _failure(output: str) -> HandlerResult:
    return HandlerResult(success=False, output=output)


Execute = Callable[[list[str]], Awaitable[tuple[int, str]]]
"""Runs a command in the container; returns its exit code and its output."""


class ProbeTarget(Struct, frozen=True, kw_only=True):
    """The container of a probe or hook."""

    spec: ReadOnlyTree
    port_of: Callable[[int, str], ProcessPort]
    """Returns where a port of the container is reached, or of a host that is not its pod."""
    execute: Execute

    def port(self, action: ReadOnlyTree) -> ProcessPort:
        """Return where the port of an action is reached: at the container, or at a host that the action names."""
        return self.port_of(resolve_port(action["port"], self.spec), action.get("host") or "")


async def run_handler(
    handler: ReadOnlyTree, target: ProbeTarget, clock: Clock, seconds: float
) -> HandlerResult:
    """Run the handler of a probe or a hook, for at most `seconds`."""
    try:
        # A hook that sleeps has the time of the cluster as its limit, too; what a process does takes real time.
        async with timeout(clock if "sleep" in handler else clock.real, seconds):
            return await _run_handler(handler, target, clock)
    except UnresolvedPort as error:
        return HandlerResult(success=False, output=str(error), is_unknown=True)
    except TimeoutError:
        if "exec" in handler:
            return _failure(
                f'command timed out: "{" ".join(handler["exec"].get("command") or ())}" timed out after {seconds:g}s',
            )
        if "grpc" in handler:
            port = target.port(handler["grpc"])
            address = f"{port.host}:{port.port}"
            return _failure(
                f'timeout: failed to connect service "{address}" within {seconds:g}s: context deadline exceeded',
            )
        if "sleep" in handler:
            return _failure("container terminated before sleep hook finished")
        return _failure("context deadline exceeded (Client.Timeout exceeded while awaiting headers)")


async def _run_handler(handler: ReadOnlyTree, target: ProbeTarget, clock: Clock) -> HandlerResult:
    if "exec" in handler:
        code, output = await target.execute(list(handler["exec"].get("command") or ()))
        return HandlerResult(success=code == 0, output=output)
    if "httpGet" in handler:
        return await _get(handler["httpGet"], target)
    if "tcpSocket" in handler:
        return await _connect(handler["tcpSocket"], target)
    if "grpc" in handler:
        return await _check_grpc(handler["grpc"], target)
    if "sleep" in handler:
        await clock.sleep(handler["sleep"].get("seconds") or 0)
        return SUCCESS
    return _failure("missing probe handler")


async def _connect(action: ReadOnlyTree, target: ProbeTarget) -> HandlerResult:
    port = target.port(action)
    try:
        _, writer = await port.connect()
    except OSError as error:
        return _failure(_dial_error(f"{port.host}:{port.port}", error))
    await _close(writer)
    return SUCCESS


async def _check_grpc(action: ReadOnlyTree, target: ProbeTarget) -> HandlerResult:
    port = target.port({"port": action["port"]})
    address = f"{port.host}:{port.port}"
    tls = _unverified_tls("h2") if action.get("mode") == "TLS" else None
    try:
        reader, writer = await port.connect(ssl=tls)
    except OSError as error:
        return _failure(f'failed to connect service "{address}": {_dial_error(address, error)}')
    try:
        scheme = "http" if tls is None else "https"
        service = action.get("service") or ""
        status = await check_health(reader, writer, address, service, scheme)
    except (GrpcError, OSError, EOFError) as error:
        return _failure(f"error: health rpc failed: {error}")
    finally:
        await _close(writer)
    return HandlerResult(success=status == "SERVING", output=f'service unhealthy (responded with "{status}")')


async def _get(action: ReadOnlyTree, target: ProbeTarget) -> HandlerResult:
    scheme = str(action.get("scheme") or "HTTP").lower()
    port = target.port(action)
    host = f"[{port.host}]" if ":" in port.host else port.host
    url = f"{scheme}://{host}:{port.port}{_with_slash(action.get('path') or '/')}"
    headers = {header["name"]: header.get("value") or "" for header in action.get("httpHeaders") or ()}
    first = url
    for _ in range(MAX_REDIRECTS):
        try:
            request = _request_http2 if action.get("protocol") == "HTTP2" else _request
            code, location = await request(url, headers, port)
        except (OSError, EOFError, ValueError, ProtocolError) as error:
            return _failure(f"Get {quote(first)}: {_get_error(urlsplit(url).netloc, error)}")
        next_url = urljoin(url, location) if location and 300 <= code < 400 else ""
        if not next_url or urlsplit(next_url).hostname != urlsplit(url).hostname:
            output = f"HTTP probe failed with statuscode: {code}"
            return HandlerResult(success=200 <= code < 400, output=output)
        url = next_url
        port = replace(port, port=urlsplit(url).port or (443 if urlsplit(url).scheme == "https" else 80))
    return _failure(f"Get {quote(first)}: stopped after {MAX_REDIRECTS} redirects")


@cache
def _unverified_tls(*protocols: str) -> ssl.SSLContext:
    """Return a context as that of a kubelet, which does not verify certificates of pods."""
    # It takes 20 ms, and probes are frequent.
    tls = ssl.create_default_context()
    tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
    if protocols:
        tls.set_alpn_protocols(protocols)
    return tls


def _with_slash(path: str) -> str:
    return path if path.startswith("/") else f"/{path}"


async def _request(url: str, headers: Mapping[str, str], port: ProcessPort) -> tuple[int, str]:
    """Send a GET request; return the status code and the location of a redirect."""
    parts = urlsplit(url)
    tls = _unverified_tls() if parts.scheme == "https" else None
    request_headers = {
        "Host": parts.netloc,
        "User-Agent": USER_AGENT,
        "Accept": "*/*",
        **headers,
        "Connection": "close",
    }
    request = encode_request("GET", _target(parts), request_headers.items())
    reader, writer = await port.connect(ssl=tls)
    try:
        writer.write(request)
        await writer.drain()
        head = await _read_head(reader)
        return head.status, head.fields.get(b"location", b"").decode("latin-1")
    finally:
        await _close(writer)


async def _read_head(reader: asyncio.StreamReader) -> ResponseHead:
    """Return the head of the response, which may follow 1xx responses; its body does not matter."""
    response = ResponseReader()
    while True:
        event = response.next_event()
        if isinstance(event, ResponseHead) and (event.status >= 200 or event.status == _SWITCHING_PROTOCOLS):
            return event
        if event is NEED_DATA:
            response.receive(await reader.read(READ))


async def _request_http2(url: str, headers: Mapping[str, str], port: ProcessPort) -> tuple[int, str]:
    """Send a GET request in HTTP/2; redirects are not read."""
    parts = urlsplit(url)
    reader, writer = await port.connect()
    try:
        sent = {"User-Agent": USER_AGENT, "Accept": "*/*", **headers}
        return await get_status(reader, writer, parts.netloc, _target(parts), sent), ""
    finally:
        await _close(writer)


def _target(parts: SplitResult) -> str:
    return f"{_escaped(parts.path) or '/'}{f'?{parts.query}' if parts.query else ''}"


def _escaped(path: str) -> str:
    """Return a path as Go's URL.EscapedPath: as it is if it can be sent, otherwise encoded anew."""
    return path if _VALID_PATH.fullmatch(path) else percent_encode(unquote_to_bytes(path), safe="$&+,/:;=@")


async def _close(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with suppress(OSError):
        await writer.wait_closed()


def _get_error(address: str, error: Exception) -> str:
    """Return Go's message for a GET request without a response."""
    if isinstance(error, BadStartLine):
        return f"net/http: HTTP/1.x transport connection broken: malformed HTTP response {quote(error.line)}"
    if isinstance(error, IncompleteMessage):
        return "unexpected EOF" if error.has_begun else "EOF"
    if isinstance(error, InvalidHead):
        return error.go_text
    return _dial_error(address, error)


def _dial_error(address: str, error: Exception) -> str:
    if isinstance(error, ConnectionRefusedError):
        return f"dial tcp {address}: connect: connection refused"
    return str(error) or "EOF"
