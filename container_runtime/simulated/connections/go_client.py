"""The requests that a server written in Go sends over the network of its pod: names, redirects, time-outs, and the texts of errors."""

from collections import Counter
from contextvars import ContextVar
from typing import Final
from urllib.parse import urljoin, urlsplit

from mockube.apimachinery.gotext import quote
from mockube.apimachinery.hosts import join_host_port
from mockube.component_base.clock import Clock
from mockube.component_base.loop import yield_to_loop
from mockube.container_runtime.simulated.network.calls import (
    Call,
    Connect,
    HttpRequest,
    NetworkCaller,
    Reply,
    decode_reply,
    encode_call,
)
from mockube.container_runtime.simulated.shell.vfs.file_system import FileSystem
from mockube.network.services import Outcome

from .name_lookup import find_address
from .port_answers import CLIENT_PORT

MAX_CALLS: Final = 5000
"""The calls of the network that one request of a client may cause, also by servers that send requests to each other."""
_MAX_HOPS: Final = 8
_HOPS: ContextVar[int] = ContextVar("hops", default=0)
_CALLS: ContextVar[Counter[str]] = ContextVar("calls")
_TIMEOUT: Final = 5.0
_MAX_REDIRECTS: Final = 10
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_CONNECT_PROBLEMS: Final = {
    Outcome.REFUSED.value: "connect: connection refused",
    Outcome.UNREACHABLE.value: "connect: no route to host",
}
_DEADLINE: Final = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"


class Failed(Exception):
    """A request has failed, with the text of Go's error."""


class GoClient:
    def __init__(self, network: NetworkCaller, files: FileSystem, clock: Clock, address: str) -> None:
        """`files` has the settings of names, `address` is the client's."""
        self._network = network
        self._files = files
        self._clock = clock
        self._address = address
        if not _HOPS.get():
            _CALLS.set(Counter())

    async def resolve(self, host: str) -> str:
        """Return the address of a host; without a name it is the client's own."""
        host = host.strip("[]")
        if not host:
            return "127.0.0.1"
        found = await find_address(host, self._files, self._call)
        if found.has_timed_out:
            await self._clock.sleep(_TIMEOUT)
            raise Failed(f"lookup {host} on {found.server}:53: i/o timeout")
        if not found.address:
            raise Failed(f"lookup {host} on {found.server}:53: no such host")
        return found.address

    async def get(self, url: str) -> str:
        """Return the body of a response, whatever its status; redirects are followed."""
        original = url
        for _ in range(_MAX_REDIRECTS):
            reply = await self._get(original, url)
            location = reply.header("location")
            if reply.status not in _REDIRECTS or not location:
                return reply.body.decode("utf-8", "replace")
            url = urljoin(url, location)
        raise Failed(f"Get {quote(url)}: stopped after {_MAX_REDIRECTS} redirects")

    async def _get(self, original: str, url: str) -> Reply:
        parts = urlsplit(url)
        prefix = f"Get {quote(original)}:"
        try:
            port = parts.port or (443 if parts.scheme == "https" else 80)
            address = await self.resolve(parts.hostname or "")
        except ValueError as error:
            raise Failed(f"{prefix} {error}") from error
        except Failed as error:
            raise Failed(f"{prefix} dial tcp: {error}") from error
        reply = await self._call(
            HttpRequest(
                address=address,
                port=port,
                method="GET",
                path=f"{parts.path or '/'}{'?' if parts.query else ''}{parts.query}",
                headers=(
                    ("Host", parts.netloc),
                    ("User-Agent", "Go-http-client/1.1"),
                    ("Accept-Encoding", "gzip"),
                ),
                uses_tls=parts.scheme == "https",
            )
        )
        if reply.problem:
            raise Failed(f"{prefix} mockube: {reply.problem.rstrip(',')} is not simulated")
        if reply.status:
            return reply
        if reply.outcome == Outcome.TIMEOUT.value:
            await self._clock.sleep(_TIMEOUT)
            raise Failed(f"{prefix} {_DEADLINE}")
        problem = _CONNECT_PROBLEMS.get(reply.outcome)
        dial = f"dial tcp {join_host_port(address, port)}: {problem}"
        raise Failed(f"{prefix} {dial if problem else 'EOF'}")

    async def send_datagram(self, address: str, port: int, text: str, protocol: str) -> str:
        """Return the datagram that answers another one; raise `Failed` if none comes."""
        call = Connect(address=address, port=port, protocol=protocol.upper(), data=text.encode())
        reply = await self._call(call)
        if reply.body:
            return reply.body.decode("utf-8", "replace")
        ends = f"read {protocol} {self._address}:{CLIENT_PORT}->{join_host_port(address, port)}:"
        problem = f"{ends} read: connection refused"
        if reply.problem:
            problem = f"mockube: {reply.problem.rstrip(',')} is not simulated"
        elif reply.outcome != Outcome.REFUSED.value:
            await self._clock.sleep(_TIMEOUT)
            problem = f"{ends} i/o timeout"
        raise Failed(f"reading from {protocol} connection failed. err:'{problem}'")

    async def _call(self, call: Call) -> Reply:
        """Use the network; a server that asks others which ask others ends after the calls that one request may cause."""
        hops, calls = _HOPS.get(), _CALLS.get()
        calls["made"] += 1
        if hops >= _MAX_HOPS or calls["made"] > MAX_CALLS:
            raise Failed("mockube: servers that send requests to each other without an end are not simulated")
        await yield_to_loop()
        token = _HOPS.set(hops + 1)
        try:
            return decode_reply(await self._network(encode_call(call)))
        finally:
            _HOPS.reset(token)
