"""The handlers of the simulated kubelets by path: the paths are a real kubelet's, and all nodes share one listener.

The node of a request is that of the pod in the path, or else the one in the header `Mockube-Node`.
"""

from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Final

import orjson
from aiohttp import web
from msgspec.structs import replace

from mockube.apimachinery.randomness import Random
from mockube.apimachinery.status import ApiError
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.cache.store import Lister
from mockube.client.component_helpers.indexes import BY_NODE
from mockube.client.podview import PodView
from mockube.client.resources import Key
from mockube.client.wire import NoResponse
from mockube.component_base.clock import Clock
from mockube.component_base.supervision import run_until
from mockube.container_runtime.config.environment import environment_of
from mockube.container_runtime.simulated.execution import execute, running_container
from mockube.container_runtime.simulated.files.mounts import files_of, known_mounts, shared_mounts
from mockube.container_runtime.simulated.files.writable import mounts_of
from mockube.container_runtime.simulated.images.table import file_places
from mockube.container_runtime.simulated.interactive import InteractiveContainers
from mockube.container_runtime.simulated.programs import commands as runs
from mockube.container_runtime.simulated.programs.commands import ContainerRun, NoLogs
from mockube.container_runtime.simulated.programs.log_replay import LogReplay
from mockube.container_runtime.simulated.programs.program import KILLED
from mockube.container_runtime.simulated.shell.filesystem import FileSystem
from mockube.container_runtime.simulated.shell.invocation import run_command
from mockube.container_runtime.simulated.shell.process import Run
from mockube.container_runtime.streams import STDIN, STDOUT, Streams, exit_status, success_status
from mockube.kubelet.node_objects import is_disconnected, is_simulated

from .authorization import KubeletAuthorizer, request_attributes, user_of
from .container_logs import (
    BadLogOptions,
    LogOptions,
    LogSource,
    LogStream,
    PodWatchers,
    current_run,
    log_options,
)
from .http_errors import HttpError
from .kwok_objects import HostLog, KwokKind, KwokObjects
from .node_counters import KubeletCounters
from .node_health import NodeHealthEndpoints
from .port_endpoints import PortEndpoints
from .remote_command import StreamOptions, StreamServer, stream_options
from .sessions import Sessions

if TYPE_CHECKING:
    from mockube.container_runtime.process.process_run import ProcessRun
    from mockube.container_runtime.process.runtime import ProcessRuntime

    from .node_pages import NodePages
    from .node_usage import FindClaim
    from .process_streams import CommandRunner

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
        self.find_claim: FindClaim = lambda _, __: None
        """Returns a PersistentVolumeClaim by namespace and name."""
        self.counters = KubeletCounters(clock)
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
        self._sessions = Sessions()
        self._streams = StreamServer(clock, self._sessions)

    async def end(self) -> None:
        """End all streams of clients, and their commands."""
        await self._sessions.end()

    def _ports(self) -> PortEndpoints:
        responses = self._interactive.responses
        return PortEndpoints(self._pods, self.processes, self.kwok, self._sessions, responses, self._clock)

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
                return await self._ports().forward(request, self._require_pod(pod, name))
            case ("GET", ["metrics", *_] | ["stats", "summary"] | ["configz"]):
                return await self._node_page(request, node)
            case ("GET", ["connect", address, port]):
                return await self._ports().connect(request, address, port, node)
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
                from .node_pages import NodePages  # noqa: PLC0415 - rarely used
                from .node_usage import NodeUsage  # noqa: PLC0415 - rarely used

                self._node_pages = NodePages(
                    NodeUsage(
                        self._pods, self.kwok, self._clock, self.random, self.find_claim, self.counters
                    ),
                    self.kwok,
                    self._clock,
                    self._interactive,
                    lambda pod: self.processes.probe_totals(pod) if self.processes else None,
                    self.counters,
                )
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
        process = await self._command_runner(pod, name)
        if process is not None:
            work = partial(_process_streams().run_exec, process, command, has_terminal=options.tty)
            options = replace(options, tty=False)  # a process has a real terminal
        else:
            if self._files.note_command(pod.uid, name, command, has_input=STDIN in options.streams):
                self._interactive.on_change(pod.key)
            execution = await self._simulated_command(pod, container, run, command, options)
            network = self._interactive.network.caller(pod.object)
            work = partial(execute, execution, self._clock, network)

        async def run_within_container(streams: Streams) -> bytes:
            status = await run_until(self._end_of_run(pod, name, run), work(streams))
            return exit_status(KILLED) if status is None else status

        return await self._streams.serve(request, options, run_within_container)

    async def _command_runner(self, pod: PodView, name: str) -> "CommandRunner | None":
        """Return what runs the commands of a container on this machine; None if they are simulated."""
        process = self._process(pod, name)
        if process is not None:
            return process
        entry = await self._kwok_entry(KwokKind.EXEC, pod.object, name)
        return None if entry is None else _process_streams().HostCommands(entry)

    async def _simulated_command(
        self,
        pod: PodView,
        container: ReadOnlyTree,
        run: ContainerRun,
        command: list[str],
        options: StreamOptions,
    ) -> Run:
        references = await self._references.load_shared(pod.object, container)
        files = await self._files.file_system(pod.object, container, references=references)
        host = runs.host_of(pod.object, container, references, run.started, files=files)
        host.now, host.has_terminal, host.is_strict = self._clock.now, options.tty, False
        environment = environment_of(pod.object, container, references)
        if options.tty:
            environment.setdefault("TERM", "xterm")
        return run_command(host, command, environment, container.get("workingDir") or "/")

    async def _end_of_run(self, pod: PodView, name: str, run: ContainerRun) -> None:
        """Wait until the container has ended, with which all its commands end."""
        with self._watchers.subscribe(pod.key) as pod_changed:
            while (latest := current_run(self._object(pod.key), pod.uid, name, run)) is not None:
                if latest.finished is not None:
                    return
                pod_changed.clear()
                await pod_changed.wait()

    async def _attach(self, request: web.BaseRequest, pod: PodView, name: str) -> web.StreamResponse:
        """Stream the container's output from now on; only a process or an interactive container reads input."""
        container, run = running_container(pod.object, name)
        options = stream_options(request.query)
        process = self._process(pod, name)
        if process is not None:
            options = replace(options, tty=False)  # a process has a real terminal
            with process.output.listen() as output:
                return await self._streams.serve(
                    request, options, partial(_process_streams().attach_to, process, output)
                )
        interactive = self._interactive.run_of(pod.object, name)
        if interactive is not None:
            with interactive.listen() as output:
                return await self._streams.serve(request, options, partial(interactive.attach, output))
        attach_time = self._clock.now()
        log_source = await self._log_source(pod, container, run, KwokKind.ATTACH)

        async def attach(streams: Streams) -> bytes:
            if streams.stdin is not None:
                streams.stdin.discard()
            with closing(log_source), self._watchers.subscribe(pod.key) as pod_changed:
                stream = LogStream(
                    LogOptions(follow=True, since=attach_time),
                    log_source,
                    run,
                    clock=self._clock,
                    latest_run=lambda: current_run(self._object(pod.key), pod.uid, name, run),
                    pod_changed=pod_changed,
                )
                sending = stream.write_to(partial(streams.write, STDOUT))
                await run_until(streams.departure.wait(), sending)
            return success_status()

        return await self._streams.serve(request, options, attach)

    def _process(self, pod: PodView, name: str) -> "ProcessRun | None":
        """Return the run of a container that is a process; None if the container is simulated."""
        if self.processes is None or not self.processes.is_process(pod.object, name):
            return None
        run = self.processes.run_of(pod.object, name)
        if run is None or run.spec is None or run.state.exit is not None:
            raise HttpError(500, f'container not found ("{name}")')
        return run

    async def _logs(self, request: web.BaseRequest, pod: PodView, name: str) -> web.StreamResponse:
        container = runs.container_spec(pod.object, name)
        if container is None:
            raise HttpError(404, f'container "{name}" not found in pod "{pod.key.name}"')
        try:
            options = log_options(request.query, self._clock.now())
            run = runs.run_of(pod.object, name, previous=options.previous)
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
            process_log: LogSource = _process_streams().open_log(path)
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
        host = runs.host_of(pod.object, container, references, run.started)
        volumes = await self._files.volumes_after_init_containers(pod.object, container)
        if volumes:
            mounts = mounts_of(shared_mounts(pod.object, container, references), volumes)
            host.files = FileSystem(
                files_of(pod.object, container, references),
                mounts=mounts,
                is_partial=True,
                volumes=known_mounts(pod.object, container, references),
                places=file_places(container),
            )
        return LogReplay(runs.main_process(pod.object, container, references, host), host, run.started)

    def _object(self, key: Key) -> ReadOnlyTree | None:
        pod = self._pods.get(*key)
        return None if pod is None else pod.object


def _process_streams() -> ModuleType:
    """Import the module that only processes and kwok's objects need."""
    from . import process_streams  # noqa: PLC0415 - for few

    return process_streams
