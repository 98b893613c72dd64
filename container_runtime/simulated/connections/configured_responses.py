"""The responses of servers with a configuration: files, requests to other servers over the simulated network, and lines in their logs."""

import errno
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Final

from mockube.apimachinery.hosts import is_address
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.component_base.clock import Clock
from mockube.container_runtime.config.environment import hostname_of
from mockube.container_runtime.simulated.network.calls import (
    HttpRequest,
    Lookup,
    NetworkCaller,
    decode_reply,
    encode_call,
)
from mockube.container_runtime.simulated.pod_files import PodFiles
from mockube.container_runtime.simulated.server_contract import (
    Answering,
    ProxyCall,
    ProxyReply,
    Request,
    Response,
    RunningServer,
)
from mockube.container_runtime.simulated.shell.access import ContainerUser
from mockube.container_runtime.simulated.shell.network_programs.network import (
    ResolverSettings,
    resolver_settings_in,
)
from mockube.container_runtime.simulated.shell.vfs.file_entry import FileError
from mockube.container_runtime.simulated.shell.vfs.file_system import FileSystem
from mockube.network.services import Outcome

from .port_answers import HttpAnswer, ReceivedRequest

_MAX_HOPS: Final = 8
"""The number of proxies behind each other; a server gives up when its connections are used up."""
_STREAMS: Final = {"/dev/stdout": 1, "/dev/stderr": 2, "/proc/self/fd/1": 1, "/proc/self/fd/2": 2}
_HOPS: ContextVar[int] = ContextVar("hops", default=0)
_WHILE_CONNECTING: Final = "while connecting to upstream"
_PROBLEMS: Final = {
    Outcome.REFUSED.value: f"connect() failed (111: Connection refused) {_WHILE_CONNECTING}",
    Outcome.UNREACHABLE.value: f"connect() failed (113: Host is unreachable) {_WHILE_CONNECTING}",
    Outcome.TIMEOUT.value: f"upstream timed out (110: Connection timed out) {_WHILE_CONNECTING}",
}
_CLOSED: Final = "upstream prematurely closed connection while reading response header from upstream"


class ConfiguredResponses:
    def __init__(self, files: PodFiles, clock: Clock) -> None:
        self._files = files
        self._clock = clock
        self.network: Callable[[ReadOnlyTree], NetworkCaller]
        """Returns what answers the calls of a pod; set by the run-time, whose network needs the responses."""
        self.write_log: Callable[[ReadOnlyTree, str, Sequence[tuple[int, str]]], None] = lambda *_: None
        """Adds lines to the log of a container, each with its descriptor."""

    async def respond(
        self,
        pod: ReadOnlyTree,
        container: ReadOnlyTree,
        server: RunningServer,
        port: int,
        request: ReceivedRequest,
    ) -> HttpAnswer:
        """Return the response of a server by its configuration; it logs the request."""
        configuration = server.configuration
        assert configuration is not None
        server.requests += 1
        files = await self._files.file_system(pod, container)
        received = Request(
            method=request.method,
            target=request.path,
            headers=request.headers,
            client=request.client.rpartition(":")[0] or request.client,
            port=port,
            tls=configuration.ports[port],
            body=request.body,
            address=(pod.get("status") or {}).get("podIP") or "",
            hostname=hostname_of(pod),
            now=self._clock.now(),
            number=server.requests,
        )
        worker = configuration.worker
        seen = files if worker is None else files.view(user=ContainerUser(worker, worker))
        response = configuration.answer(received, _ServedFiles(seen))
        if not isinstance(response, Response):
            response = await self._run(response, pod, server, resolver_settings_in(files))
        self._log(pod, container["name"], response, files)
        return HttpAnswer(
            status=response.status,
            content_type=response.content_type,
            server=response.server,
            location=response.location,
            headers=tuple(response.headers),
            body=response.body,
        )

    async def certificate(
        self, pod: ReadOnlyTree, container: ReadOnlyTree, server: RunningServer
    ) -> tuple[bytes, bytes] | None:
        """Return the first certificate of a configuration with its key; None if it has none, or its files have none."""
        files = await self._files.file_system(pod, container)
        paths = None if server.configuration is None else server.configuration.certificate
        try:
            return None if paths is None else (files.read(paths[0]), files.read(paths[1]))
        except FileError:
            return None

    async def _run(
        self, answering: Answering, pod: ReadOnlyTree, server: RunningServer, resolver: ResolverSettings
    ) -> Response:
        """Send the requests that an answer needs; return the answer."""
        try:
            call = next(answering)
            while True:
                call = answering.send(await self._send(pod, server, call, resolver))
        except StopIteration as stop:
            response: Response = stop.value
            return response

    async def _send(
        self, pod: ReadOnlyTree, server: RunningServer, call: ProxyCall, resolver: ResolverSettings
    ) -> ProxyReply:
        """Send a request to another server over the network of the pod."""
        if _HOPS.get() >= _MAX_HOPS:
            return ProxyReply(status=500, problem="")
        network = self.network(pod)
        address = await self._address_of(network, server, call, resolver)
        if not address:
            return ProxyReply(problem=f"{call.host} could not be resolved (3: Host not found)")
        request = HttpRequest(
            address=address,
            port=call.port,
            method=call.method,
            path=call.path,
            headers=call.headers,
            body=call.body,
            uses_tls=call.tls,
        )
        token = _HOPS.set(_HOPS.get() + 1)
        try:
            reply = decode_reply(await network(encode_call(request)))
        finally:
            _HOPS.reset(token)
        if reply.status:
            return ProxyReply(status=reply.status, headers=reply.headers, body=reply.body)
        if reply.problem:
            server.on_not_simulated(reply.problem)
        return ProxyReply(
            problem=_PROBLEMS.get(reply.outcome, _CLOSED),
            has_timed_out=reply.outcome == Outcome.TIMEOUT.value,
            body=address.encode(),
        )

    async def _address_of(
        self, network: NetworkCaller, server: RunningServer, call: ProxyCall, resolver: ResolverSettings
    ) -> str:
        """Return the address of a host, as it was looked up at the start, or as the `resolver` knows it."""
        host = call.host.strip("[]")
        if is_address(host):
            return host
        if not call.needs_resolver:
            addresses = server.configuration.addresses.get(call.host, ()) if server.configuration else ()
            return addresses[server.requests % len(addresses)] if addresses else ""
        searches = resolver.search if call.uses_search else ()
        for name in (*(f"{host}.{domain}" for domain in searches), host.rstrip(".")):
            reply = decode_reply(await network(encode_call(Lookup(server=resolver.server, name=name))))
            for _, kind, value in reply.records:
                if kind == "A":
                    return value
        return ""

    def _log(self, pod: ReadOnlyTree, name: str, response: Response, files: FileSystem) -> None:
        now = self._clock.now()
        lines = [(response.error_log, text) for text in response.errors]
        written = []
        for path, line in (*lines, *response.logs):
            try:
                target = files.resolve(path)
                if target in _STREAMS:
                    written.append((_STREAMS[target], line))
                elif target != "/dev/null":
                    data = f"{line}\n".encode("utf-8", "surrogateescape")
                    files.write(target, data, append=True, modified=now.timestamp())
            except (
                FileError
            ):  # The disk is full, or the log was made read-only: the server goes on without it.
                continue
        if written:
            self.write_log(pod, name, written)


class _ServedFiles:
    """The files of a container, as its server reads them."""

    def __init__(self, files: FileSystem) -> None:
        self._files = files

    def kind(self, path: str) -> str:
        try:
            if not self._files.exists(path):
                return ""
            return "folder" if self._files.entry(path).is_directory else "file"
        except FileError:
            return ""

    def read(self, path: str) -> bytes:
        try:
            return self._files.read(path)
        except FileError as error:
            raise OSError(errno.EACCES, str(error)) from error

    def names(self, path: str) -> Sequence[str]:
        try:
            names = self._files.children(path)
        except FileError:
            return ()
        return [f"{name}/" if self.kind(f"{path.rstrip('/')}/{name}") == "folder" else name for name in names]
