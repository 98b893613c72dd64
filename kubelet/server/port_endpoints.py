"""`/portForward` and `/connect`: connections to the ports of a pod's processes, or of its simulated containers."""

from types import ModuleType
from typing import TYPE_CHECKING

from aiohttp import web

from mockube.apimachinery.gotext import int_or_none
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.cache.store import Lister
from mockube.client.component_helpers.indexes import BY_NODE
from mockube.client.podview import PodView
from mockube.component_base.clock import Clock
from mockube.container_runtime.simulated.connections.local_connections import local_port
from mockube.container_runtime.simulated.connections.port_responses import PortResponses
from mockube.container_runtime.simulated.connections.ports import is_open, serve_port
from mockube.container_runtime.streams import ClientConnection, StreamsClosed

from .http_errors import HttpError
from .kwok_objects import KwokKind, KwokObjects
from .port_forward import serve_port_forward
from .sessions import Sessions
from .upgrade import UpgradedConnection, UpgradedResponse, upgrade

if TYPE_CHECKING:
    from mockube.container_runtime.process.runtime import ProcessRuntime


class PortEndpoints:
    def __init__(
        self,
        pods: Lister[PodView],
        processes: "ProcessRuntime | None",
        kwok: KwokObjects | None,
        sessions: Sessions,
        responses: PortResponses,
        clock: Clock,
    ) -> None:
        self._pods = pods
        self._processes = processes
        self._kwok = kwok
        self._sessions = sessions
        self._responses = responses
        self._clock = clock

    async def forward(self, request: web.BaseRequest, pod: PodView) -> web.StreamResponse:
        async def connect(port: int, client: ClientConnection) -> str:
            current_pod = self._pods.get(*pod.key)
            current = None if current_pod is None else current_pod.object
            problem = f"failed to connect to localhost:{port}"
            failed = f"error forwarding port {port} to pod {pod.uid}, uid : {problem}"
            local = local_port(self._processes, current, port) if current is not None else None
            if local is not None:
                problem = await _process_streams().connect_port(local, client, self._clock)
                return f"{failed}: {problem}" if problem else ""
            try:
                entry = await self._kwok_entry(current, port)
            except HttpError as error:
                return str(error)
            if entry is not None:
                return str(await _process_streams().connect_target(entry, client, self._clock))
            if current is None or not is_open(current, port):
                refused = f"dial tcp4 127.0.0.1:{port}: connect: connection refused"
                return f"{failed} inside the simulated pod: {refused}"
            await serve_port(current, port, client, self._responses)
            return ""

        return await serve_port_forward(request, connect, self._sessions)

    async def connect(
        self, request: web.BaseRequest, address: str, port: str, node: str
    ) -> web.StreamResponse:
        """Connect the client to a port of a pod of the node, by the pod's address."""
        number = int_or_none(port) or 0
        pods = [pod for pod in self._pods.by_index(BY_NODE, node) if not pod.is_terminal]
        target_pod = next(
            (pod.object for pod in pods if (pod.object.get("status") or {}).get("podIP") == address), None
        )
        local = local_port(self._processes, target_pod, number) if target_pod is not None else None
        is_simulated = local is None and request.query.get("only") != "processes"
        if target_pod is None or (local is None and not (is_simulated and is_open(target_pod, number))):
            raise HttpError(502, "connection refused")
        connection = upgrade(request, {"Upgrade": "tcp"})
        await self._sessions.run_apart(self._serve(connection, target_pod, number, local))
        return UpgradedResponse()

    async def _serve(
        self, connection: UpgradedConnection, pod: ReadOnlyTree, port: int, local: int | None
    ) -> None:
        try:
            if local is None:
                await serve_port(pod, port, connection, self._responses)
            else:
                await _process_streams().connect_port(local, connection, self._clock)
        except StreamsClosed:
            pass
        finally:
            await connection.close()

    async def _kwok_entry(self, pod: ReadOnlyTree | None, port: int) -> ReadOnlyTree | None:
        if self._kwok is None or pod is None:
            return None
        return await self._kwok.entry(KwokKind.PORT_FORWARD, pod, port)


def _process_streams() -> ModuleType:
    """Import the module that only processes and kwok's objects need."""
    from . import process_streams  # noqa: PLC0415 - for few

    return process_streams
