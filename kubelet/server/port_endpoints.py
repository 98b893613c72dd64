"""`/portForward` and `/connect`: connections to the ports of pods."""

from aiohttp import web

from mockube.apimachinery.gotext import int_or_none
from mockube.client.cache.store import Lister
from mockube.client.component_helpers.indexes import BY_NODE
from mockube.client.podview import PodView
from mockube.container_runtime.runtime import PortConnection, RuntimeProblem
from mockube.container_runtime.streams import ClientConnection, StreamsClosed
from mockube.kubelet.containers import Containers

from .http_errors import HttpError
from .port_forward import serve_port_forward
from .sessions import Sessions
from .upgrade import UpgradedConnection, UpgradedResponse, upgrade


class PortEndpoints:
    def __init__(self, pods: Lister[PodView], containers: Containers, sessions: Sessions) -> None:
        self._pods = pods
        self._runtime = containers.runtime
        self._drops = containers.drops_api_server
        self._sessions = sessions

    async def forward(self, request: web.BaseRequest, pod: PodView) -> web.StreamResponse:
        async def connect(port: int, client: ClientConnection) -> str:
            latest = self._pods.get(*pod.key)
            # Nothing listens in a deleted pod.
            tree = {**pod.object, "status": {}} if latest is None else latest.object
            try:
                serve = await self._runtime.port_forward(tree, port)
            except RuntimeProblem as problem:
                return str(problem)
            return await serve(client)

        return await serve_port_forward(request, connect, self._sessions)

    async def connect(
        self, request: web.BaseRequest, address: str, port: str, node: str
    ) -> web.StreamResponse:
        """Connect the client to a port of a pod of the node, by the pod's address."""
        pods = [pod for pod in self._pods.by_index(BY_NODE, node) if not pod.is_terminal]
        target = next(
            (pod.object for pod in pods if (pod.object.get("status") or {}).get("podIP") == address), None
        )
        number = int_or_none(port) or 0
        if target is not None and await self._drops(target, number):
            raise HttpError(504, "a NetworkPolicy drops the packets of the API server")
        simulated = request.query.get("only") != "processes"
        serve = None if target is None else self._runtime.listener(target, number, simulated=simulated)
        if serve is None:
            raise HttpError(502, "connection refused")
        connection = upgrade(request, {"Upgrade": "tcp"})
        await self._sessions.run_apart(_serve(connection, serve))
        return UpgradedResponse()


async def _serve(connection: UpgradedConnection, serve: PortConnection) -> None:
    try:
        await serve(connection)
    except StreamsClosed:
        pass
    finally:
        await connection.close()
