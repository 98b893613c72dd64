"""The containers whose servers answer by a configuration in files: how such a server starts, and what it answers to probes."""

from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Final

from msgspec.structs import replace

from mockube.apimachinery import meta
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.container_runtime.images.table import ImageTable
from mockube.container_runtime.pod_script import script_of
from mockube.container_runtime.port_probe import USER_AGENT, PortAnswer, PortProbe

from . import predictions
from .connections.port_answers import CLIENT_PORT, ReceivedRequest
from .connections.port_responses import PortResponses
from .programs import commands, program
from .programs.contexts import concurrent_containers
from .server_contract import RunningServer
from .servers.listeners import listeners_of
from .servers.running_servers import RunningServers

_WITHOUT_DIRECTIVE: Final = "its requests are answered without it"


class ConfiguredContainers:
    def __init__(
        self,
        images: ImageTable,
        servers: RunningServers,
        responses: PortResponses,
        write_log: Callable[[ReadOnlyTree, str, Sequence[tuple[int, str]]], None],
        note_unknown: Callable[[ReadOnlyTree, str, str, str], None],
    ) -> None:
        """`write_log` adds lines to the log of a container; `note_unknown` reports what is not simulated, and what that means."""
        self._images = images
        self._servers = servers
        self._responses = responses
        self._write_log = write_log
        self._note_unknown = note_unknown

    def is_configured(self, pod: ReadOnlyTree, container: ReadOnlyTree) -> bool:
        """Return whether a configuration in files says what the server of a container answers."""
        has_server = self._servers.find(pod, container["name"]) is not None
        return has_server or bool(commands.server_command(self._images, pod, container))

    def started(self, pod: ReadOnlyTree) -> Collection[str]:
        """Return the names of the containers whose programs have started a server."""
        return {
            other["name"] for other in concurrent_containers(pod) if self._servers.find(pod, other["name"])
        }

    def prepare(self, pod: ReadOnlyTree, container: ReadOnlyTree, restarts: int) -> None:
        """Prepare the start of a server by the command of a container."""
        name = container["name"]
        server = self._server(pod, name, runs_entrypoint=not container.get("command"))
        self._servers.start(meta.uid(pod), name, restarts, server)

    def of_run(self, pod: ReadOnlyTree, container: ReadOnlyTree, restarts: int) -> RunningServer | None:
        """Return the server that the command of a container starts; None for an image without one that is simulated."""
        runs_entrypoint = not container.get("command")
        make = partial(self._server, pod, container["name"], runs_entrypoint=runs_entrypoint)
        return self._of_run(pod, container, restarts, make)

    def of_client(self, pod: ReadOnlyTree, container: ReadOnlyTree, restarts: int) -> RunningServer | None:
        """Return the server of a container for the command of a client; None for an image without one that is simulated."""

        def make() -> RunningServer:
            listeners = listeners_of(self._images, pod, container, self._servers)
            return self._server(pod, container["name"], runs=bool(listeners.ports))

        return self._of_run(pod, container, restarts, make)

    def _of_run(
        self, pod: ReadOnlyTree, container: ReadOnlyTree, restarts: int, make: Callable[[], RunningServer]
    ) -> RunningServer | None:
        if program.configured_kind(self._images, container) is None:
            return None
        return self._servers.of_run(meta.uid(pod), container["name"], restarts, make)

    def _server(
        self, pod: ReadOnlyTree, name: str, *, runs: bool = False, runs_entrypoint: bool = False
    ) -> RunningServer:
        return RunningServer(
            runs=runs,
            runs_entrypoint=runs_entrypoint,
            write_log=lambda stream, line: self._write_log(pod, name, [(stream, line)]),
            on_not_simulated=lambda text: self._note_unknown(pod, name, text, _WITHOUT_DIRECTIVE),
        )

    async def probe(self, pod: ReadOnlyTree, request: PortProbe, started: Collection[str]) -> PortAnswer:
        """Return the answer of a pod in some of whose containers servers have started; `pod` is its latest version."""
        opened = self._responses.open_port(pod, request.port)
        if opened is None or opened.configured is None:
            others = [each for each in pod["spec"]["containers"] if each["name"] not in started]
            rest = {**pod, "spec": {**pod["spec"], "containers": others}}
            return predictions.port_answer(self._images, rest, request, script_of(meta.annotations(pod)))
        answer = PortAnswer(speaks=opened.speaks, uses_tls=opened.uses_tls)
        if request.path is None or opened.uses_tls is None:
            return answer
        status = pod.get("status") or {}
        address = status.get("podIP") or ""
        headers = {"host": f"{address}:{request.port}", "user-agent": USER_AGENT, "accept": "*/*"}
        client = status.get("hostIP") or address
        received = ReceivedRequest(
            method="GET", path=request.path, headers=headers, client=f"{client}:{CLIENT_PORT}"
        )
        response = await self._responses.respond(pod, request.port, opened, received)
        body = response.body.decode("utf-8", "replace")
        return replace(answer, status=response.status, location=response.location, body=body)
