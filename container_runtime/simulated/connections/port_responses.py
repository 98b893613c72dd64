"""The HTTP responses of simulated containers, also those that depend on their files or on Ingresses."""

import ssl
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import lru_cache
from http import HTTPStatus
from posixpath import normpath
from typing import Final

import msgspec
from msgspec.structs import replace

from mockube.apimachinery import meta
from mockube.apimachinery.randomness import SystemRandom
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.component_base.clock import Clock
from mockube.component_base.serving_certificates import self_signed_tls_context, tls_context_of_pair
from mockube.container_runtime.images.table import ImageTable, PortBehavior
from mockube.container_runtime.records import Records
from mockube.container_runtime.runs import container_status, running_seconds
from mockube.container_runtime.simulated.pod_files import PodFiles
from mockube.container_runtime.simulated.servers.http_paths import KindOfFile, served_file
from mockube.container_runtime.simulated.servers.live_probes import may_be_of_image
from mockube.container_runtime.simulated.servers.running_servers import RunningServers
from mockube.container_runtime.simulated.servers.server_programs import AgnhostPort
from mockube.container_runtime.simulated.shell.vfs.file_entry import FileError
from mockube.container_runtime.simulated.shell.vfs.file_system import FileSystem
from mockube.network.ingress import (
    NGINX,
    matched_path,
    rewritten_path,
    rule_in,
)
from mockube.network.services import RouteTarget, endpoints
from mockube.network.view import SyncedView

from . import port_answers
from .access_logs import AccessLogs
from .agnhost_responses import AgnhostResponses
from .configured_responses import ConfiguredResponses
from .connection_limits import OpenConnections
from .databases import Databases
from .listening_sockets import listening_sockets
from .port_answers import HttpAnswer, OpenPort, ReceivedRequest
from .port_listeners import PortListeners
from .redis_client import REDIS

_MAX_FORWARDS: Final = 4
"""The number of Ingress controllers behind each other."""


class PortResponses:
    def __init__(  # noqa: PLR0913, PLR0917 - each argument is a dependency
        self,
        records: Records,
        images: ImageTable,
        files: PodFiles,
        view: SyncedView,
        work: Callable[[ReadOnlyTree, ReadOnlyTree], Awaitable[None]],
        access_logs: AccessLogs,
        clock: Clock,
        servers: RunningServers,
    ) -> None:
        """`work` is called with a pod and its container that answers a request, and lasts as long as the container works on it."""
        self._images = images
        self._work = work
        self._files = files
        self._view = view
        self._access_logs = access_logs
        self._clock = clock
        self._servers = servers
        self.metrics: Callable[[ReadOnlyTree], str] = lambda _: ""
        """Returns what a pod shows to Prometheus; set by the run-time, whose network needs the responses."""
        self.configured = ConfiguredResponses(files, clock)
        self.agnhost = AgnhostResponses(records, files, clock)
        self.databases = Databases(records, images, files, clock, view)
        self.connections = OpenConnections(records, clock)
        self.listeners = PortListeners(clock)

    def open_port(self, pod: ReadOnlyTree, port: int, protocol: str = "TCP") -> OpenPort | None:
        """Return what listens on a port of a pod; None if nothing does."""
        opened = port_answers.open_port(self._images, pod, port, protocol, self._servers, self._clock.now())
        is_known = opened is not None and not opened.unknown
        if protocol == "TCP" and not is_known and self.listeners.knows(meta.uid(pod), port):
            return OpenPort(container=opened.container if opened is not None else None, is_accepted=True)
        return opened

    def is_closed(self, pod: ReadOnlyTree, port: int) -> bool:
        """Return whether the program that is to listen on a port of a pod has not been called."""
        now = self._clock.now()
        return any(
            not port_answers.has_begun(self._images, pod, container, port, self._servers, now)
            for container in port_answers.running_containers(pod)
        )

    def sockets(self, pod: ReadOnlyTree) -> bytes:
        """Return what listens in a pod, as JSON."""
        return msgspec.json.encode([*listening_sockets(self._images, pod, self._servers, self._clock.now())])

    async def tls_context(self, pod: ReadOnlyTree, opened: OpenPort) -> ssl.SSLContext:
        """Return the TLS of a server: with the certificate of its configuration, or else a self-signed one."""
        pair = await self._certificate(pod, opened)
        with suppress(ssl.SSLError):
            if pair is not None:
                return _context_of(*pair)
        return self_signed_tls_context("127.0.0.1", now=self._clock.now(), random=SystemRandom())

    async def certificate(self, pod: ReadOnlyTree, opened: OpenPort) -> bytes:
        """Return the certificates that the configuration of a server names, as PEM; empty if it names none that it can use."""
        pair = await self._certificate(pod, opened)
        if pair is None:
            return b""
        try:
            _context_of(*pair)
        except ssl.SSLError:
            return b""
        return pair[0]

    async def _certificate(self, pod: ReadOnlyTree, opened: OpenPort) -> tuple[bytes, bytes] | None:
        if opened.configured is None or opened.container is None:
            return None
        return await self.configured.certificate(pod, opened.container, opened.configured)

    async def reply_to(self, pod: ReadOnlyTree | None, opened: OpenPort, data: bytes) -> bytes:
        """Return what a server of another protocol than HTTP replies to data of its client."""
        if pod is not None and opened.container is not None and opened.speaks == REDIS:
            return await self.databases.reply(pod, opened.container, data) if data else b""
        return port_answers.reply_to(opened.behavior, data)

    async def reply_to_datagram(
        self, pod: ReadOnlyTree, port: int, opened: OpenPort, data: bytes, client: str
    ) -> bytes:
        """Return the datagram with which a pod answers another one; empty if it sends none."""
        if opened.container is None or opened.behavior is None:
            return b""
        await self._work(pod, opened.container)
        return await self.agnhost.reply_to_datagram(
            pod, opened.container, opened.behavior, port, data, client
        )

    async def respond(
        self, pod: ReadOnlyTree, port: int, opened: OpenPort, request: ReceivedRequest, forwards: int = 0
    ) -> HttpAnswer:
        """Return the response of a pod on an open port that speaks HTTP; its server logs the request."""
        if opened.container is not None:
            await self._work(pod, opened.container)
        if opened.configured is not None and opened.container is not None:
            return await self.configured.respond(pod, opened.container, opened.configured, port, request)
        behavior, container = opened.behavior, opened.container
        if behavior is None or container is None:
            answer = port_answers.fixed_answer(pod, port, opened, request)
            assert answer is not None
            return answer
        now = self._clock.now()
        request = replace(
            request,
            elapsed=running_seconds(pod, container["name"], now) or 0.0,
            time=f"{now:%Y-%m-%d %H:%M:%S.%f} +0000 UTC",
            metrics=self.metrics(pod),
        )
        if isinstance(behavior, AgnhostPort):
            restarts = (container_status(pod, container["name"]) or {}).get("restartCount") or 0
            request = replace(request, run=(meta.uid(pod), container["name"], restarts))
            return await self.agnhost.respond(pod, container, behavior, port, request)
        answer = port_answers.fixed_answer(pod, port, opened, request)
        answer = answer or await self._answer(pod, opened, request, forwards)
        self._access_logs.note(pod, container, behavior, request, answer)
        return answer

    async def _answer(
        self, pod: ReadOnlyTree, opened: OpenPort, request: ReceivedRequest, forwards: int
    ) -> HttpAnswer:
        """Return the answer that depends on Ingresses or on files."""
        behavior, container = opened.behavior, opened.container
        assert behavior is not None
        assert container is not None
        if behavior.ingress:
            return await self._forward(opened, request, forwards)
        if not behavior.root:
            return port_answers.missing_answer(behavior)
        if request.method not in ("GET", "HEAD"):
            return port_answers.missing_answer(behavior, 405)
        files = await self._files.file_system(pod, container)
        answer = file_response(behavior, request, files)
        path = normpath("/" + request.path.partition("?")[0].lstrip("/"))
        if answer.status == HTTPStatus.NOT_FOUND and may_be_of_image(self._images, container, behavior, path):
            text = f"mockube: {path} of the image {container.get('image')} is not simulated\n"
            return HttpAnswer(status=HTTPStatus.NOT_IMPLEMENTED, body=text.encode())
        return answer

    async def _forward(self, opened: OpenPort, request: ReceivedRequest, forwards: int) -> HttpAnswer:
        """Return the response of the backend that an Ingress names for the request."""
        behavior = opened.behavior
        assert behavior is not None
        await self._view.wait_synced()
        path, mark, query = request.path.partition("?")
        host = request.headers.get("host", "").partition(":")[0]
        matched = matched_path(behavior.ingress, path)
        if matched is None:
            return port_answers.missing_answer(behavior, 400)
        rule = rule_in(self._view, behavior.ingress, host, matched)
        if rule is None or forwards >= _MAX_FORWARDS:
            return port_answers.missing_answer(behavior)
        sent = path if behavior.ingress == NGINX else matched
        request = replace(request, path=f"{rewritten_path(rule, matched) or sent}{mark}{query}")
        target = self._backend_target(*rule.backend)
        target_port = (
            self.open_port(target.pod, target.port) if target is not None and target.pod is not None else None
        )
        if target is None or target.pod is None or target_port is None:
            return port_answers.missing_answer(behavior, 502 if target is not None else 503)
        return await self.respond(target.pod, target.port, target_port, request, forwards + 1)

    def _backend_target(self, namespace: str, name: str, port: int | str) -> RouteTarget | None:
        service = self._view.service(namespace, name)
        if service is None:
            return None
        service_port = next(
            (
                entry
                for entry in service["spec"].get("ports") or ()
                if port in (entry["port"], entry.get("name"))
            ),
            None,
        )
        if service_port is None:
            return None
        return next(iter(endpoints(self._view, service, service_port)), None)


@lru_cache(maxsize=64)
def _context_of(certificate: bytes, key: bytes) -> ssl.SSLContext:
    return tls_context_of_pair(certificate, key)


def file_response(behavior: PortBehavior, request: ReceivedRequest, files: FileSystem) -> HttpAnswer:
    """Return what a server of files sends for a request."""
    served = served_file(behavior, request.path, kind_of_file(files))
    if served.location:
        host = request.headers.get("host", "")
        location = f"http://{host}{served.location}" if host else served.location
        return replace(port_answers.missing_answer(behavior, served.status), location=location)
    if served.status != HTTPStatus.OK:
        return port_answers.missing_answer(behavior, served.status)
    try:
        if files.entry(served.path).is_directory:
            return port_answers.folder_answer(behavior, request.path, files.children(served.path))
        return port_answers.file_answer(behavior, served.path, files.read(served.path))
    except FileError:
        return port_answers.missing_answer(behavior, 403)


def kind_of_file(files: FileSystem) -> KindOfFile:
    """Return a function that returns what a path is: file, folder, or "" if it does not exist."""

    def kind(path: str) -> str:
        try:
            if not files.exists(path):
                return ""
            return "folder" if files.entry(path).is_directory else "file"
        except FileError:
            return ""

    return kind
