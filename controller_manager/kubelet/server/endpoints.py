"""The handlers of the simulated kubelets by path: the paths are a real kubelet's, and all nodes share one listener.

The node of a request is that of the pod in the path, or else the one in the header `Mockube-Node`.
"""

from contextlib import closing, suppress
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Final

import orjson
from aiohttp import web
from msgspec.structs import replace

from mockube.apimachinery import meta
from mockube.apimachinery.clock import Clock
from mockube.apimachinery.gotext import int_or_none
from mockube.apimachinery.randomness import Random
from mockube.apimachinery.status import ApiError
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.controller_manager.cache.store import Lister
from mockube.controller_manager.client.podview import PodView
from mockube.controller_manager.client.resources import Key
from mockube.controller_manager.client.wire import NoResponse
from mockube.controller_manager.kubelet.containers.environment import environment_of
from mockube.controller_manager.kubelet.containers.logs import LogReplay
from mockube.controller_manager.kubelet.containers.mounts import files_of, shared_mounts
from mockube.controller_manager.kubelet.containers.runs import (
    ContainerRun,
    NoLogs,
    container_spec,
    host_of,
    main_process,
    run_of,
)
from mockube.controller_manager.kubelet.containers.writable import mounts_of
from mockube.controller_manager.kubelet.node_objects import is_disconnected, is_simulated
from mockube.controller_manager.kubelet.server.authorization import (
    KubeletAuthorizer,
    request_attributes,
    user_of,
)
from mockube.controller_manager.kubelet.server.container_logs import (
    BadLogOptions,
    LogOptions,
    LogSource,
    LogStream,
    PodWatchers,
    current_run,
    log_options,
)
from mockube.controller_manager.kubelet.server.execution import execute, running_container
from mockube.controller_manager.kubelet.server.http_errors import HttpError
from mockube.controller_manager.kubelet.server.interactive import InteractiveContainers
from mockube.controller_manager.kubelet.server.kwok_objects import HostLog, KwokKind, KwokObjects
from mockube.controller_manager.kubelet.server.node_health import NodeHealthEndpoints
from mockube.controller_manager.kubelet.server.port_forward import serve_port_forward
from mockube.controller_manager.kubelet.server.ports import is_open, serve_port
from mockube.controller_manager.kubelet.server.remote_command import (
    StreamOptions,
    Work,
    serve_streams,
    stream_options,
)
from mockube.controller_manager.kubelet.server.spdy_session import ByteStream
from mockube.controller_manager.kubelet.server.streams import STDOUT, Streams, success_status
from mockube.controller_manager.kubelet.server.upgrade import UpgradedResponse, upgrade
from mockube.controller_manager.kubelet.shell.filesystem import FileSystem
from mockube.controller_manager.kubelet.shell.invocation import run_command
from mockube.controller_manager.workloads.indexes import BY_NODE

if TYPE_CHECKING:
    from mockube.controller_manager.kubelet.processes.process_run import ProcessRun
    from mockube.controller_manager.kubelet.processes.runtime import ProcessRuntime
    from mockube.controller_manager.kubelet.server.node_pages import NodePages

NODE_HEADER: Final = "Mockube-Node"
_POD_PATHS: Final = frozenset({"containerLogs", "exec", "attach", "portForward"})


class KubeletEndpoints:
    def __init__(
        self,
        pods: Lister[PodView],
        nodes: Lister[ReadOnlyTree],
        *,
        watchers: PodWatchers,
        interactive: InteractiveContainers,
        authorizer: KubeletAuthorizer,
        clock: Clock,
    ) -> None:
        self._node_pages: NodePages | None = None
        self._health = NodeHealthEndpoints()
        self.random: Random | None = None
        """The source of randomness for metric expressions; without it there are no node pages."""
        self.processes: ProcessRuntime | None = None
        """The runtime of containers that run as processes of this machine; None if no container does."""
        self.kwok: KwokObjects | None = None
        """kwok's objects for simulated containers."""
        self._pods = pods
        self._nodes = nodes
        self._watchers = watchers
        self._interactive = interactive
        self._references = interactive.references
        self._authorizer = authorizer
        self._clock = clock
        self._files = interactive.files

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        try:
            return await self._dispatch(request)
        except HttpError as error:
            return web.Response(status=error.code, text=str(error))
        except (ApiError, NoResponse) as error:
            return web.Response(
                status=500, text=f"could not authenticate or authorize the request at the API server: {error}"
            )

    async def _dispatch(self, request: web.BaseRequest) -> web.StreamResponse:
        parts = request.path.strip("/").split("/")
        pod = self._find_pod(parts)
        node = pod.node if pod is not None else request.headers.get(NODE_HEADER, "")
        await self._authorize(request, node)
        self._check_node(request, node)
        match (request.method, parts):
            case ("GET", ["healthz", *_]) | ("GET" | "DELETE", ["metrics", "slis"]):
                return self._health.respond(request, self._nodes.get("", node) or {})
            case ("GET", ["pods" | "runningpods"]):
                return self._list_pods(node)
            case ("GET", ["containerLogs", _, name, container]):
                return await self._logs(request, self._require_pod(pod, name), container)
            case ("GET" | "POST", ["exec", _, name, *_, container]):
                return await self._exec(request, self._require_pod(pod, name), container)
            case ("GET" | "POST", ["portForward", _, name, *_]):
                return await self._port_forward(request, self._require_pod(pod, name))
            case ("GET", ["metrics", *_] | ["stats", "summary"] | ["configz"]):
                return await self._node_page(request, node)
            case ("GET", ["connect", address, port]):
                return await self._connect(request, address, port, node)
            case ("GET" | "POST", ["attach", _, name, *_, container]):
                return await self._attach(request, self._require_pod(pod, name), container)
            case _:
                raise HttpError(404, "404 page not found\n")

    def _find_pod(self, parts: list[str]) -> PodView | None:
        return self._pods.get(parts[1], parts[2]) if len(parts) >= 3 and parts[0] in _POD_PATHS else None

    def _require_pod(self, pod: PodView | None, name: str) -> PodView:
        if pod is None:
            raise HttpError(404, f'pod "{name}" does not exist')
        return pod

    async def _authorize(self, request: web.BaseRequest, node: str) -> None:
        user = user_of(request.get_extra_info("peercert"))
        if user is None:
            raise HttpError(401, "Unauthorized")
        attributes = request_attributes(request.method, request.path, node)
        if not await self._authorizer.is_allowed(user, attributes):
            subresources = f"subresource(s)=[{' '.join(attributes.subresources)}]"
            text = f"user={user.name}, verb={attributes.verb}, resource=nodes, {subresources}"
            raise HttpError(403, f"Forbidden ({text})\n")

    def _check_node(self, request: web.BaseRequest, name: str) -> None:
        """Refuse a request for a node that is not simulated, and abort the connection to a disconnected node."""
        node = self._nodes.get("", name)
        if node is None or not is_simulated(node):
            raise HttpError(404, f"node {name!r} is not simulated here")
        if is_disconnected(node):
            if request.transport is not None:
                request.transport.abort()
            raise HttpError(503, "the node is disconnected")

    def _list_pods(self, node: str) -> web.Response:
        items = [pod.object for pod in self._pods.by_index(BY_NODE, node)]
        body = orjson.dumps({"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": items})
        return web.Response(body=body, content_type="application/json")

    async def _node_page(self, request: web.BaseRequest, name: str) -> web.Response:
        node = self._nodes.get("", name)
        page = None
        if self.kwok is not None and self.random is not None and node is not None:
            if self._node_pages is None:
                from mockube.controller_manager.kubelet.server.node_pages import (  # noqa: PLC0415 - rarely used
                    NodePages,
                )

                process_totals = (lambda _: None) if self.processes is None else self.processes.probe_totals
                self._node_pages = NodePages(self._pods, self.kwok, self._clock, self.random, process_totals)
            page = await self._node_pages.respond(request.path, request.query, node)
        if page is None:
            raise HttpError(404, "404 page not found\n")
        return page

    async def _exec(self, request: web.BaseRequest, pod: PodView, name: str) -> web.StreamResponse:
        container, run = running_container(pod.object, name)
        options = stream_options(request.query)
        command = request.query.getall("command", [])
        if not command:
            raise HttpError(400, "you must specify a command")
        process = self._process(pod, name)
        if process is not None:
            return await self._serve_process(
                request,
                options,
                lambda streams: _streams().run_exec(process, command, options, streams),
            )
        if (entry := await self._kwok_entry(KwokKind.EXEC, pod.object, name)) is not None:
            commands = _streams().HostCommands(entry)
            return await self._serve_process(
                request,
                options,
                lambda streams: _streams().run_exec(commands, command, options, streams),
            )
        references = await self._references.load_shared(pod.object, container)
        files = await self._files.file_system(pod.object, container)
        host = host_of(pod.object, container, references, run.started, files=files)
        host.now, host.has_terminal, host.is_strict = self._clock.now, options.tty, False
        environment = environment_of(pod.object, container, references)
        if options.tty:
            environment.setdefault("TERM", "xterm")
        directory = container.get("workingDir") or "/"
        execution = run_command(host, command, environment, directory)
        return await serve_streams(
            request, options, lambda streams: execute(execution, streams, self._clock), self._clock
        )

    async def _attach(self, request: web.BaseRequest, pod: PodView, name: str) -> web.StreamResponse:
        """Stream the container's output from now on; only a process or an interactive container reads input."""
        container, run = running_container(pod.object, name)
        options = stream_options(request.query)
        process = self._process(pod, name)
        if process is not None:
            with process.listen() as output:
                return await self._serve_process(
                    request, options, lambda streams: _streams().attach_to(process, output, streams)
                )
        interactive = self._interactive.run_of(pod.object, name)
        if interactive is not None:
            with interactive.listen() as output:
                return await serve_streams(
                    request, options, lambda streams: interactive.attach(output, streams), self._clock
                )
        attach_time = self._clock.now()
        log_source = await self._log_source(pod, container, run, KwokKind.ATTACH)

        async def attach(streams: Streams) -> bytes:
            with closing(log_source), self._watchers.subscribe(pod.key) as pod_changed:
                stream = LogStream(
                    LogOptions(follow=True, since=attach_time),
                    log_source,
                    run,
                    clock=self._clock,
                    latest_run=lambda: current_run(self._object(pod.key), pod.uid, name, run),
                    pod_changed=pod_changed,
                )
                await stream.write_to(lambda data: streams.write(STDOUT, data))
            return success_status()

        return await serve_streams(request, options, attach, self._clock)

    def _process(self, pod: PodView, name: str) -> "ProcessRun | None":
        """Return the run of a container that is a process; None if the container is simulated."""
        if self.processes is None or not self.processes.is_process(pod.object, name):
            return None
        run = self.processes.run_of(pod.object, name)
        if run is None or run.spec is None or run.state.exit is not None:
            raise HttpError(500, f'container not found ("{name}")')
        return run

    async def _serve_process(
        self, request: web.BaseRequest, options: StreamOptions, work: Work
    ) -> web.StreamResponse:
        """Serve the streams of a process without a simulated terminal, because a process has a real one."""
        return await serve_streams(request, replace(options, tty=False), work, self._clock)

    def _local_port(self, pod: ReadOnlyTree, port: int) -> int | None:
        """Return the port of this machine for a pod's port; None if no process of the pod runs."""
        runs = self.processes.runs_of(meta.uid(pod)) if self.processes is not None else ()
        alive = [run for run in runs if run.state.is_alive]
        local_port = next((run.ports[port] for run in alive if port in run.ports), None)
        return local_port or (port if alive else None)

    async def _port_forward(self, request: web.BaseRequest, pod: PodView) -> web.StreamResponse:
        async def connect(port: int, stream: ByteStream) -> str:
            current = self._object(pod.key)
            problem = f"failed to connect to localhost:{port}"
            failed = f"error forwarding port {port} to pod {pod.uid}, uid : {problem}"
            local = self._local_port(current, port) if current is not None else None
            if local is not None:
                problem = await _streams().connect_port(local, stream)
                return f"{failed}: {problem}" if problem else ""
            try:
                entry = await self._kwok_entry(KwokKind.PORT_FORWARD, current or {}, port)
            except HttpError as error:
                return str(error)
            if entry is not None:
                return str(await _streams().connect_target(entry, stream))
            if current is None or not is_open(current, port):
                refused = f"dial tcp4 127.0.0.1:{port}: connect: connection refused"
                return f"{failed} inside the simulated pod: {refused}"
            await serve_port(current, port, stream)
            return ""

        return await serve_port_forward(request, connect)

    async def _connect(
        self, request: web.BaseRequest, address: str, port: str, node: str
    ) -> web.StreamResponse:
        """Connect the client to a port of a pod of the node, by the pod's address."""
        number = int_or_none(port) or 0
        pods = [pod for pod in self._pods.by_index(BY_NODE, node) if not pod.is_terminal]
        target_pod = next(
            (pod.object for pod in pods if (pod.object.get("status") or {}).get("podIP") == address), None
        )
        local = self._local_port(target_pod, number) if target_pod is not None else None
        is_simulated = local is None and request.query.get("only") != "processes"
        if target_pod is None or (local is None and not (is_simulated and is_open(target_pod, number))):
            raise HttpError(502, "connection refused")
        connection = upgrade(request, {"Upgrade": "tcp"})
        try:
            if local is None:
                await serve_port(target_pod, number, connection)
            else:
                await _streams().connect_port(local, connection)
        except ConnectionError:
            pass
        finally:
            connection.close()
        return UpgradedResponse()

    async def _logs(self, request: web.BaseRequest, pod: PodView, name: str) -> web.StreamResponse:
        container = container_spec(pod.object, name)
        if container is None:
            raise HttpError(404, f'container "{name}" not found in pod "{pod.key.name}"')
        try:
            options = log_options(request.query, self._clock.now())
            run = run_of(pod.object, name, previous=options.previous)
        except (BadLogOptions, NoLogs) as error:
            raise HttpError(400, str(error)) from error
        log_source = await self._log_source(pod, container, run, KwokKind.LOGS)
        response = web.StreamResponse(headers={"Content-Type": "text/plain"})
        response.enable_chunked_encoding()
        await response.prepare(request)
        with closing(log_source), self._watchers.subscribe(pod.key) as pod_changed:
            stream = LogStream(
                options,
                log_source,
                run,
                clock=self._clock,
                latest_run=lambda: current_run(self._object(pod.key), pod.uid, name, run),
                pod_changed=pod_changed,
            )
            with suppress(ConnectionError):  # the client has disconnected
                await stream.write_to(response.write)
                await response.write_eof()
        return response

    async def _kwok_entry(self, kind: KwokKind, pod: ReadOnlyTree, target: str | int) -> ReadOnlyTree | None:
        return await self.kwok.entry(kind, pod, target) if self.kwok is not None and pod else None

    async def _log_source(
        self, pod: PodView, container: ReadOnlyTree, run: ContainerRun, kind: KwokKind
    ) -> LogSource:
        name = container["name"]
        if self.processes is not None and self.processes.is_process(pod.object, name):
            path = self.processes.log_of(pod.object, name, run.restarts)
            if path is None:
                raise HttpError(
                    500, f"unable to retrieve container logs for container {name!r} of pod {pod.key}"
                )
            process_log: LogSource = _streams().open_log(path)
            return process_log
        if (interactive_log := self._interactive.log_of(pod.object, name, run.restarts)) is not None:
            return interactive_log
        entry = await self._kwok_entry(kind, pod.object, name)
        if entry is not None and entry.get("logsFile"):
            log = HostLog(Path(entry["logsFile"]), run.started, follow=entry.get("follow") is not False)
            if kind is KwokKind.ATTACH:
                log.skip_to_end()
            return log
        references = await self._references.load_shared(pod.object, container)
        host = host_of(pod.object, container, references, run.started)
        volumes = await self._files.volumes_after_init_containers(pod.object, container)
        if volumes:
            mounts = mounts_of(shared_mounts(pod.object, container, references), volumes)
            host.files = FileSystem(
                files_of(pod.object, container, references), mounts=mounts, is_partial=True
            )
        return LogReplay(main_process(pod.object, container, references, host), host, run.started)

    def _object(self, key: Key) -> ReadOnlyTree | None:
        pod = self._pods.get(*key)
        return None if pod is None else pod.object


def _streams() -> ModuleType:
    """Import the module that only processes and kwok's objects need."""
    from mockube.controller_manager.kubelet.server import process_streams  # noqa: PLC0415 - for few

    return process_streams
