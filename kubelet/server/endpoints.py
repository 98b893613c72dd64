"""The handlers of the simulated kubelets by path: the paths are a real kubelet's, and all nodes share one listener.

The node of a request is that to which its client has connected, or else the one in the header `Mockube-Node`, or that of the pod in the path.
"""

from contextlib import closing, suppress
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from aiohttp import web
from msgspec import Struct

from mockube.apimachinery.randomness import Random
from mockube.apimachinery.status import ApiError
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.cache.store import Lister
from mockube.client.component_helpers.indexes import BY_NODE
from mockube.client.podview import PodView
from mockube.client.wire import NoResponse
from mockube.component_base.clock import Clock
from mockube.component_base.supervision import run_until
from mockube.container_runtime.behavior import KILLED
from mockube.container_runtime.log_stream import LogStream, current_run
from mockube.container_runtime.objects import ObjectsUnavailable
from mockube.container_runtime.runs import (
    ContainerNotFound,
    ContainerRun,
    NoLogs,
    container_spec,
    run_of,
    running_container,
)
from mockube.container_runtime.runtime import (
    Command,
    CommandFailed,
    ExecRequest,
    NotPermitted,
    RuntimeProblem,
)
from mockube.container_runtime.streams import STDIN, Streams
from mockube.kubelet.containers import Containers
from mockube.kubelet.kwok_objects import KwokObjects
from mockube.kubelet.node_machine.kubelet_start import CONFIG
from mockube.kubelet.node_objects import is_disconnected, is_simulated, runs_kubelet
from mockube.kubelet.pod_lifecycle.container_context import ContainerContext

from . import pod_pages
from .authentication import TokenAuthenticator, user_of
from .authorization import KubeletAuthorizer, request_attributes
from .container_logs import BadLogOptions, log_options
from .http_errors import HttpError
from .node_counters import KubeletCounters
from .node_health import NodeHealthEndpoints
from .node_logs import NodeLogs
from .port_endpoints import PortEndpoints
from .remote_command import StreamServer, stream_options
from .sessions import Sessions
from .statuses import exit_status, failure_status, success_status

if TYPE_CHECKING:
    from .node_pages import NodePages
    from .node_usage import FindClaim

NODE_HEADER: Final = "Mockube-Node"
USAGE_PATH: Final = "/mockube/usage"
"""The page of all nodes: `pod_usage`."""
_POD_PATHS: Final = frozenset({"containerLogs", "exec", "attach", "portForward", "run", "checkpoint"})


class NodePageSettings(Struct, frozen=True, kw_only=True):
    """What the metrics and statistics of a node are made from, besides its pods."""

    find_claim: "FindClaim"
    """Returns a PersistentVolumeClaim by namespace and name."""
    counters: KubeletCounters
    kwok: KwokObjects
    random: Random
    """The source of randomness for metric expressions."""
    container_context: ContainerContext


class ClientAccess(NamedTuple):
    """Who clients are, and what they may do."""

    authenticator: TokenAuthenticator
    authorizer: KubeletAuthorizer


class KubeletEndpoints:
    def __init__(
        self,
        pods: Lister[PodView],
        nodes: Lister[ReadOnlyTree],
        *,
        containers: Containers,
        access: ClientAccess,
        clock: Clock,
        pages: NodePageSettings,
    ) -> None:
        self._node_pages: NodePages | None = None
        self._health = NodeHealthEndpoints()
        self._pages = pages
        self.counters = pages.counters
        self._pods = pods
        self._nodes = nodes
        self._versions = containers.pods
        self._runtime = containers.runtime
        self._machines = containers.machines
        self._logs_of_nodes = NodeLogs(containers.machines, containers.services)
        self._probe_records = containers.probe_records
        self._access = access
        self._clock = clock
        self._sessions = Sessions()
        self._streams = StreamServer(clock, self._sessions)
        self._ports = PortEndpoints(pods, containers, self._sessions)

    async def end(self) -> None:
        """End all streams of clients, and their commands."""
        await self._sessions.end()

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        try:
            return await self._dispatch(request)
        except HttpError as error:
            return web.Response(status=error.code, text=str(error))
        except ContainerNotFound as error:
            return web.Response(status=500, text=str(error))
        except RuntimeProblem as error:
            return web.Response(status=403 if isinstance(error, NotPermitted) else 500, text=str(error))
        except (ApiError, NoResponse, ObjectsUnavailable) as error:
            return web.Response(
                status=500, text=f"could not authenticate or authorize the request at the API server: {error}"
            )

    async def _dispatch(self, request: web.BaseRequest) -> web.StreamResponse:
        parts = request.path.strip("/").split("/")
        # Pods connect to the kubelet of one node, as `listener` notes; the API server names the node of each request.
        node = str(getattr(request.protocol, "node", "")) or request.headers.get(NODE_HEADER, "")
        pod = self._find_pod(parts)
        if pod is not None and node and pod.node != node:
            pod = None  # A kubelet knows only its own pods.
        node = pod.node if pod is not None else node
        await self._authorize(request, node)
        if (request.method, request.path) == ("GET", USAGE_PATH):
            return await self._usage(request)
        self._check_node(request, parts, node)
        return await self._respond(request, parts, pod, node)

    async def _respond(  # noqa: C901, PLR0911, PLR0912 - a table of paths
        self, request: web.BaseRequest, parts: list[str], pod: PodView | None, node: str
    ) -> web.StreamResponse:
        match (request.method, parts):
            case ("GET", ["healthz", *_]) | ("GET" | "DELETE", ["metrics", "slis"]):
                return self._health.respond(request, self._nodes.get("", node) or {})
            case ("GET", ["pods" | "runningpods" | "allocatedPods"]):
                return pod_pages.pod_list(parts[0], self._pods.by_index(BY_NODE, node))
            case ("GET", ["logs", *_]):
                return await self._logs_of_nodes.respond(request, self._nodes.get("", node) or {})
            case (_, ["mockube", "shell"]):
                return await self._shell(request, node)
            case ("POST", ["run", _, name, *_, container]):
                return await self._run(request, self._require_pod(pod, name), container)
            case ("POST", ["checkpoint", _, name, container]):
                return pod_pages.refuse_checkpoint(self._require_pod(pod, name), container)
            case ("GET", ["containerLogs", _, name, container]):
                return await self._logs(request, self._require_pod(pod, name), container)
            case ("GET" | "POST", ["exec", _, name, *_, container]):
                return await self._exec(request, self._require_pod(pod, name), container)
            case ("GET" | "POST", ["portForward", _, name, *_]):
                return await self._ports.forward(request, self._require_pod(pod, name))
            case ("GET", ["metrics", *_] | ["stats", "summary"] | ["configz"]):
                return await self._node_page(request, node)
            case ("GET", ["connect", address, port]):
                return await self._ports.connect(request, address, port, node)
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
            user = await self._access.authenticator.user_of(request.headers.get("Authorization", ""))
        if user is None:
            raise HttpError(401, "Unauthorized")
        attributes = request_attributes(request.method, request.path, node)
        if not await self._access.authorizer.is_allowed(user, attributes):
            subresources = f"subresource(s)=[{' '.join(attributes.subresources)}]"
            text = f"user={user.name}, verb={attributes.verb}, resource=nodes, {subresources}"
            raise HttpError(403, f"Forbidden ({text})\n")

    def _check_node(self, request: web.BaseRequest, parts: list[str], name: str) -> None:
        """Refuse a request for a node that is not simulated, and abort the connection if nothing would answer it.

        The shell and the ports of a node do not depend on its kubelet.
        """
        node = self._nodes.get("", name)
        if node is None or not is_simulated(node):
            raise HttpError(404, f"node {name!r} is not simulated here")
        if is_disconnected(node) if parts[0] in ("mockube", "connect") else not runs_kubelet(node):
            if request.transport is not None:
                request.transport.abort()
            raise HttpError(503, "the node is disconnected")

    async def _node_page(self, request: web.BaseRequest, name: str) -> web.StreamResponse:
        node = self._nodes.get("", name)
        page = None
        if node is not None:
            if self._node_pages is None:
                self._node_pages = self._make_node_pages()
            settings = await self._settings(name) if request.path == "/configz" else None
            page = await self._node_pages.respond(request.path, request.query, node, settings)
        if page is None:
            raise HttpError(404, "404 page not found\n")
        return page

    async def _settings(self, node: str) -> bytes | None:
        """Return the file with the settings of a node's kubelet; None if there is none."""
        await self._machines.refresh(node)
        file = self._machines.find(node, CONFIG)
        return None if file is None else file.data

    async def _usage(self, request: web.BaseRequest) -> web.Response:
        from .pod_usage import pod_usage_page  # noqa: PLC0415 - rarely used

        namespace, name = request.query.get("namespace", ""), request.query.get("name", "")
        return await pod_usage_page(self._pods, self._runtime, namespace=namespace, name=name)

    def _make_node_pages(self) -> "NodePages":
        from .node_pages import NodePages  # noqa: PLC0415 - rarely used
        from .node_usage import NodeUsage, UsageSources, measured_usage  # noqa: PLC0415 - rarely used

        pages = self._pages
        sources = UsageSources(
            kwok=pages.kwok,
            random=pages.random,
            find_claim=pages.find_claim,
            counters=pages.counters,
            measure=lambda pod: measured_usage(pod, self._runtime),
        )
        usage = NodeUsage(self._pods, self._clock, sources)
        return NodePages(
            usage, pages.kwok, self._clock, self._probe_records, pages.container_context, pages.counters
        )

    async def _exec(self, request: web.BaseRequest, pod: PodView, name: str) -> web.StreamResponse:
        _, run = running_container(pod.object, name)
        options = stream_options(request.query)
        command = request.query.getall("command", [])
        if not command:
            raise HttpError(400, "you must specify a command")
        exec_request = ExecRequest(
            command=command, has_input=STDIN in options.streams, has_terminal=options.tty
        )
        execute = await self._runtime.exec(pod.object, name, exec_request)

        async def run_within_container(streams: Streams) -> bytes:
            return await run_until(
                self._end_of_run(pod, name, run), _status_of(execute, streams)
            ) or exit_status(KILLED)

        return await self._streams.serve(request, options, run_within_container)

    async def _shell(self, request: web.BaseRequest, name: str) -> web.StreamResponse:
        """Run a command of root on a node. Only POST is served, for which users need the verb create on nodes/proxy."""
        node = self._nodes.get("", name)
        if request.method != "POST" or node is None:
            raise HttpError(405, "the shell of a node needs a POST request\n")
        options = stream_options(request.query)
        command = request.query.getall("command", [])
        if not command:
            raise HttpError(400, "you must specify a command")
        exec_request = ExecRequest(
            command=command, has_input=STDIN in options.streams, has_terminal=options.tty
        )
        execute = await self._machines.exec(node, exec_request)
        return await self._streams.serve(request, options, partial(_status_of, execute))

    async def _run(self, request: web.BaseRequest, pod: PodView, name: str) -> web.StreamResponse:
        """Run a command without input, and respond with its output."""
        running_container(pod.object, name)
        exec_request = ExecRequest(command=request.query.get("cmd", "").split(" "))
        return await pod_pages.run_in_container(await self._runtime.exec(pod.object, name, exec_request))

    async def _end_of_run(self, pod: PodView, name: str, run: ContainerRun) -> None:
        """Wait until the container has ended, with which all its commands end."""
        with self._versions.subscribe(pod.object) as pod_changed:
            while (latest := current_run(self._versions.latest(pod.object), name, run)) is not None:
                if latest.finished is not None:
                    return
                pod_changed.clear()
                await pod_changed.wait()

    async def _attach(self, request: web.BaseRequest, pod: PodView, name: str) -> web.StreamResponse:
        running_container(pod.object, name)
        options = stream_options(request.query)
        async with self._runtime.attach(pod.object, name, has_terminal=options.tty) as attachment:

            async def attach(streams: Streams) -> bytes:
                await attachment(streams)
                return success_status()

            return await self._streams.serve(request, options, attach)

    async def _logs(self, request: web.BaseRequest, pod: PodView, name: str) -> web.StreamResponse:
        if container_spec(pod.object, name) is None:
            raise HttpError(404, f'container "{name}" not found in pod "{pod.key.name}"')
        try:
            options = log_options(request.query, self._clock.now())
            run = run_of(pod.object, name, previous=options.previous)
        except (BadLogOptions, NoLogs) as error:
            raise HttpError(400, str(error)) from error
        log_source = await self._runtime.logs(pod.object, name, run)
        response = web.StreamResponse(headers={"Content-Type": "text/plain"})
        response.enable_chunked_encoding()
        await response.prepare(request)
        with closing(log_source), self._versions.subscribe(pod.object) as pod_changed:
            stream = LogStream(
                options,
                log_source,
                run,
                clock=self._clock,
                latest_run=lambda: current_run(self._versions.latest(pod.object), name, run),
                pod_changed=pod_changed,
            )
            with suppress(ConnectionError):  # the client has disconnected
                await stream.write_to(response.write)
                await response.write_eof()
        return response


async def _status_of(execute: Command, streams: Streams) -> bytes:
    """Run a command; return the Status for the client."""
    try:
        return exit_status(await execute(streams))
    except CommandFailed as error:
        return failure_status(str(error))
