"""The network of simulated pods: answers the calls of programs, from the caches, other pods' ports and the API server."""

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from http import HTTPStatus
from typing import Final

import orjson
from msgspec import structs

from mockube.apimachinery import meta
from mockube.apimachinery.hosts import is_loopback
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apimachinery.wellknown import NAMESPACE_SYSTEM
from mockube.component_base.clock import Clock
from mockube.component_base.http1.writing import encode_response
from mockube.container_runtime.api_server import ApiServer
from mockube.container_runtime.images.table import HTTP
from mockube.container_runtime.kubelets import NO_KUBELETS, Kubelets
from mockube.container_runtime.node_machine import NO_SERVICES, NodeServices, ServiceFailed
from mockube.container_runtime.objects import PodVersions
from mockube.container_runtime.process_port import ProcessPort
from mockube.container_runtime.records import Records
from mockube.container_runtime.simulated.client_pace import CLIENT, Backend
from mockube.container_runtime.simulated.network.calls import (
    Accept,
    ClusterCall,
    Connect,
    Exchange,
    HttpRequest,
    ListenOn,
    ListSockets,
    Lookup,
    NetworkCaller,
    NodeRequest,
    Open,
    Reply,
    ServeNames,
    TakeReply,
    decode_call,
    encode_reply,
)
from mockube.container_runtime.streams import ClientConnection, StreamsClosed
from mockube.network import dns
from mockube.network.coredns import Query
from mockube.network.policies import is_allowed
from mockube.network.services import (
    KUBELET_HEALTH_PORT,
    Outcome,
    RouteTarget,
    address_of,
    local_endpoints,
    route,
)
from mockube.network.view import Peer, SyncedView, parse_address, peer_of

from .local_connections import REFUSED, connect_locally, send_datagram_locally, send_locally
from .name_servers import NameServers
from .port_answers import CLIENT_PORT, OpenPort, ReceivedRequest, greeting_of
from .port_responses import PortResponses
from .ports import serve_port
from .program_sockets import (
    answer_about_socket,
    connect_to_process,
    connect_to_program,
    reply_later,
    send_to_program,
    serve_program,
)

_ADMIN_CHECK_SECONDS: Final = 60.0
_PHRASES: Final = {status.value: status.phrase for status in HTTPStatus}
_DNS_PORT: Final = 53
_MAX_HEAD: Final = 16 * 1024
_API_SERVER: Final = "kube-apiserver"
_DNS_POD: Final[ReadOnlyTree] = {
    "metadata": {"name": "coredns", "namespace": "kube-system", "labels": {"k8s-app": "kube-dns"}},
    "spec": {
        "containers": [
            {
                "name": "coredns",
                "ports": [
                    {"name": "dns", "containerPort": _DNS_PORT, "protocol": "UDP"},
                    {"name": "dns-tcp", "containerPort": _DNS_PORT, "protocol": "TCP"},
                ],
            }
        ]
    },
}
"""The pod that policies see behind cluster DNS."""


def _is_api_server(pod: ReadOnlyTree, port: int) -> bool:
    """Return whether a port is that of the API server, in whose static pod the real one answers."""
    if meta.labels(pod).get("component") != _API_SERVER or meta.namespace(pod) != NAMESPACE_SYSTEM:
        return False
    return any(f"--secure-port={port}" in (each.get("command") or ()) for each in pod["spec"]["containers"])


def _outside(address: str) -> Reply:
    return Reply(outcome=Outcome.OUTSIDE.value, problem=f"{address}, which is outside of the cluster,")


def _closed_port(target: RouteTarget) -> Reply:
    """Return the failure of a connection to a port on which nothing is known to listen; an endpoint of a Service may be outside."""
    parsed = parse_address(target.peer.address) if target.pod is None else None
    if parsed is not None and parsed.is_global:
        return _outside(target.peer.address)
    return REFUSED


def _health_of_kubelet(request: HttpRequest) -> Reply:
    """Answer a request to the port of health of a kubelet that runs."""
    if request.path.partition("?")[0] == "/healthz":
        return _plain_reply(request, 200, b"ok", "text/plain; charset=utf-8")
    return _plain_reply(request, 404, b"404 page not found\n", "text/plain; charset=utf-8")


def _plain_reply(request: HttpRequest, status: int, body: bytes, content_type: str) -> Reply:
    """Return the answer of a server without TLS."""
    return Reply(
        outcome=Outcome.OPEN.value,
        speaks=HTTP,
        status=0 if request.uses_tls else status,
        reason=_PHRASES[status],
        headers=(("Content-Type", content_type), ("Content-Length", str(len(body)))),
        body=body,
    )


def _report_unknown(target: RouteTarget, port: OpenPort, on_unknown: Callable[[str, str], None]) -> None:
    """Report a server that is not simulated, and in whose place something answers."""
    if port.unknown and target.pod is not None:
        name = meta.namespaced_name(target.pod)
        on_unknown(port.unknown, f"mockube answers on port {target.port} of pod {name} in its place")


class _BytesClient:
    """A client that sends some data, and nothing more."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.departure = asyncio.Event()
        self.received = bytearray()

    async def read(self, limit: int) -> bytes:
        data, self._data = self._data[:limit], self._data[limit:]
        return data

    async def write(self, data: bytes) -> None:
        self.received += data

    async def end(self) -> bool:
        return False


class PodConnections:
    def __init__(  # noqa: PLR0913, PLR0917 - each argument is a dependency
        self,
        records: Records,
        view: SyncedView,
        api_server: ApiServer,
        pods: PodVersions,
        responses: PortResponses,
        process_port: Callable[[ReadOnlyTree, int], ProcessPort | None],
        clock: Clock,
        *,
        nodes: NodeServices = NO_SERVICES,
        kubelets: Kubelets = NO_KUBELETS,
    ) -> None:
        """`process_port` returns where a port of a pod is reached whose container runs as a process."""
        self._view = view
        self._nodes = nodes
        self.kubelets = kubelets
        self._api_server = api_server
        self._pods = pods
        self._responses = responses
        self._process_port = process_port
        self._clock = clock
        self._databases = responses.databases
        self._turns: Counter[tuple[str, int]] = Counter()
        """The number of connections to each address and port, which are balanced in turn."""
        self.cluster_dns = nodes.cluster_dns()
        self._name_servers = NameServers(records, view, self.cluster_dns)
        self._admin_policy = ""
        self._admin_checked_at: float | None = None
        self._admin_lock = asyncio.Lock()

    def metrics_of_names(self, pod: ReadOnlyTree) -> str:
        """Return what the name server in a pod shows to Prometheus; "" if there is none."""
        return self._name_servers.metrics(pod)

    def caller(
        self, pod: ReadOnlyTree, on_unknown: Callable[[str, str], None] = lambda *_: None
    ) -> NetworkCaller:
        """Return the function that answers calls of a pod's programs.

        `on_unknown` is called with what is not simulated about the server of another pod, and with what answers in its place.
        """

        async def answer(request: bytes) -> bytes:
            return encode_reply(await self._answer(self._pods.latest(pod) or pod, request, on_unknown))

        return answer

    async def _answer(
        self, pod: ReadOnlyTree, request: bytes, on_unknown: Callable[[str, str], None]
    ) -> Reply:
        match decode_call(request):
            case NodeRequest() as node_request:
                return await self._ask_node(pod, node_request)
            case ListSockets():
                return Reply(outcome=Outcome.OPEN.value, body=self._responses.sockets(pod))
            case ListenOn() | Accept() | Exchange() | TakeReply() as about_socket:
                return answer_about_socket(pod, about_socket, self._responses.listeners)
            case call:
                return await self._answer_from_cluster(pod, call, on_unknown)

    async def _answer_from_cluster(
        self, pod: ReadOnlyTree, call: ClusterCall, on_unknown: Callable[[str, str], None]
    ) -> Reply:
        await self._view.wait_synced()
        policy = await self._find_admin_policy()
        if policy:
            return Reply(outcome=Outcome.TIMEOUT.value, problem=f"{policy}, which is not simulated,")
        source = peer_of(pod)
        match call:
            case Lookup() as lookup:
                return self._look_up(source, lookup)
            case ServeNames() as served:
                self._name_servers.start(pod, served)
                return Reply(outcome=Outcome.OPEN.value)
            case Connect(protocol="ICMP") as connect:
                return self._echo(source, connect)
            case Open() as connection:
                return await self._keep_open(source, connection, on_unknown)
            case Connect() as connect:
                return await self._connect(source, connect, on_unknown)
            case HttpRequest() as http:
                return await self._send(pod, source, http, on_unknown)

    async def _ask_node(self, pod: ReadOnlyTree, request: NodeRequest) -> Reply:
        """Answer a program of the node of a pod. Only the programs of nodes send these requests."""
        node = pod["spec"].get("nodeName") or ""
        try:
            answer = await self._nodes.answer(node, request.service, orjson.loads(request.arguments))
        except ServiceFailed as error:
            return Reply(outcome="failed", body=str(error).encode())
        return Reply(outcome="open", body=orjson.dumps(answer))

    def _look_up(self, source: Peer, lookup: Lookup) -> Reply:
        if self._name_servers.serves(lookup.server):
            query = Query(lookup.name, lookup.record_type)
            answer = self._name_servers.answer(source, lookup.server, query, protocol=lookup.protocol)
            if answer is None:
                return Reply(outcome=Outcome.TIMEOUT.value)
            outcome = Outcome.OUTSIDE if answer.is_outside else Outcome.OPEN
            return Reply(
                outcome=outcome.value, exists=answer.exists, records=answer.records, code=answer.code
            )
        if lookup.server != self.cluster_dns:
            answer = dns.resolve(self._view, lookup.name, lookup.record_type)
            outcome = Outcome.OUTSIDE if answer.is_outside else Outcome.OPEN
            return Reply(outcome=outcome.value)
        server = Peer(address=self.cluster_dns, pod=_DNS_POD)
        if not is_allowed(self._view, source, server, _DNS_PORT, lookup.protocol):
            return Reply(outcome=Outcome.TIMEOUT.value)
        answer = dns.resolve(self._view, lookup.name, lookup.record_type)
        outcome = Outcome.OUTSIDE if answer.is_outside else Outcome.OPEN
        return Reply(outcome=outcome.value, exists=answer.exists, records=answer.records)

    def _echo(self, source: Peer, connect: Connect) -> Reply:
        """Answer an echo request: a pod and a node answer it, a Service does not."""
        if self._view.services_at(connect.address):
            return Reply(outcome=Outcome.TIMEOUT.value)
        pod, node = self._view.pod_at(connect.address), self._view.node_at(connect.address)
        if pod is None and node is None:
            outcome = route(self._view, source, connect.address, 0).outcome
            return Reply(outcome=outcome.value)
        target = (
            peer_of(pod) if pod is not None else Peer(address=connect.address, node=meta.name(node or {}))
        )
        allowed = is_allowed(self._view, source, target, 0, "ICMP")
        return Reply(outcome=(Outcome.OPEN if allowed else Outcome.TIMEOUT).value)

    async def _keep_open(
        self, source: Peer, connection: Open, on_unknown: Callable[[str, str], None]
    ) -> Reply:
        """Open a connection over which a program sends and receives until it closes it."""
        opened = self.open(source, connection.address, connection.port)
        if isinstance(opened, Reply):
            return opened
        target, port = opened
        if target.is_api_server or target.kubelet or target.checked is not None or target.pod is None:
            return Reply(outcome=Outcome.OPEN.value)
        process_port = self._port_of_process(source, target, connection.address)
        if process_port is not None:
            return await connect_to_process(process_port, self._clock)
        if port.is_accepted:
            return await connect_to_program(self._responses.listeners, meta.uid(target.pod), target.port)
        _report_unknown(target, port, on_unknown)
        client = connection.address if is_loopback(connection.address) else source.address
        return serve_program(
            lambda stream: serve_port(target.pod or {}, target.port, self._responses, stream, client)
        )

    async def _connect(self, source: Peer, connect: Connect, on_unknown: Callable[[str, str], None]) -> Reply:
        opened = self.open(source, connect.address, connect.port, connect.protocol)
        if isinstance(opened, Reply):
            return opened
        target, port = opened
        if target.is_api_server or target.kubelet or target.checked is not None:
            return Reply(outcome=Outcome.OPEN.value, speaks=HTTP, uses_tls=bool(port.uses_tls))
        if connect.protocol != "TCP":
            return await self._send_datagram(source, connect, opened, on_unknown)
        process_port = self._port_of_process(source, target, connect.address)
        if process_port is not None:
            return await connect_locally(process_port, connect.data, self._clock)
        if port.is_accepted and target.pod is not None:
            address = connect.address if is_loopback(connect.address) else source.address
            return await reply_later(self._send_to_program(target, port, connect.data, address))
        connections, is_full = self._responses.connections, False
        if target.pod is not None:
            is_full = bool(connections.refusal(target.pod, port))
            connections.hold_for(target.pod, port, 0.0 if is_full else connect.seconds)
        return Reply(
            outcome=Outcome.OPEN.value,
            speaks=port.speaks,
            is_full=is_full,
            uses_tls=bool(port.uses_tls),
            is_denied=connect.login is not None
            and await self._databases.denies(target.pod, port, connect.login),
            body=await self._first_reply(
                target,
                port,
                connect.data,
                connect.address if is_loopback(connect.address) else source.address,
            ),
        )

    async def _send_datagram(
        self,
        source: Peer,
        connect: Connect,
        opened: tuple[RouteTarget, OpenPort],
        on_unknown: Callable[[str, str], None],
    ) -> Reply:
        """Send a datagram; the reply is empty if nothing answers it, or nobody knows what does."""
        target, port = opened
        process_port = self._port_of_process(source, target, connect.address)
        if process_port is not None and process_port.has_own_network and connect.data:
            return await send_datagram_locally(process_port, connect.data, self._clock)
        body = b""
        if target.pod is not None and connect.data:
            if port.unknown:
                name = meta.namespaced_name(target.pod)
                answer = f"no datagram of port {target.port} of pod {name} comes back"
                on_unknown(port.unknown, answer)
            address = connect.address if is_loopback(connect.address) else source.address
            body = await self._responses.reply_to_datagram(
                target.pod, target.port, port, connect.data, f"{address}:{CLIENT_PORT}"
            )
        return Reply(outcome=Outcome.OPEN.value, body=body)

    async def _send_to_program(self, target: RouteTarget, port: OpenPort, data: bytes, source: str) -> Reply:
        """Connect to a program that listens, send some data, and return all that it sends if there are any."""
        if data:
            return Reply(outcome=Outcome.OPEN.value, body=await self._first_reply(target, port, data, source))
        assert target.pod is not None
        flows = await self._responses.listeners.connect(meta.uid(target.pod), target.port)
        if flows is None:
            return REFUSED
        flows[0].end()
        flows[1].leave()
        return Reply(outcome=Outcome.OPEN.value)

    def _port_of_process(self, source: Peer, target: RouteTarget, address: str) -> ProcessPort | None:
        """Return the port of a process as a client reaches it by an address: both ends have one of that version of IP."""
        process_port = self._process_port(target.pod, target.port) if target.pod is not None else None
        if process_port is None or is_loopback(address):
            return None if process_port is None else process_port.seen_from(source.address)
        host = address_of(target, address)
        return process_port.at_address(host or process_port.host).seen_from(source.address_like(address))

    async def _first_reply(self, target: RouteTarget, port: OpenPort, data: bytes, source: str) -> bytes:
        """Return what a server sends to a client that has connected and sends some data."""
        if port.speaks not in ("", HTTP):
            return greeting_of(port) + await self._responses.reply_to(target.pod, port, data)
        if target.pod is None or not data:
            return b""
        client = _BytesClient(data)
        await serve_port(target.pod, target.port, self._responses, client, source)
        return bytes(client.received)

    def open(
        self, source: Peer, address: str, number: int, protocol: str = "TCP"
    ) -> tuple[RouteTarget, OpenPort] | Reply:
        """Open a connection; return its target with the port, or the failure."""
        found = self.find(source, address, number, protocol)
        if isinstance(found, Reply):
            return found
        target, port = found
        return (target, port) if port is not None else _closed_port(target)

    def find(
        self, source: Peer, address: str, number: int, protocol: str
    ) -> tuple[RouteTarget, OpenPort | None] | Reply:
        """Return where a connection leads, with the port if it is known to be open, or why it leads nowhere."""
        pod_route = route(self._view, source, address, number, protocol)
        if pod_route.outcome is Outcome.OUTSIDE:
            return _outside(address)
        if not pod_route.targets:
            return Reply(outcome=pod_route.outcome.value)
        target, port = self._choose(pod_route.targets, address, number, protocol)
        client = CLIENT.get()
        if client is not None:
            client.balance_among(partial(self._backends, pod_route.targets))
        if not is_allowed(self._view, source, target.peer, target.port, protocol):
            return Reply(outcome=Outcome.TIMEOUT.value)
        if target.kubelet and self.kubelets.is_disconnected(target.kubelet):
            return Reply(outcome=Outcome.TIMEOUT.value)
        if target.kubelet and self.kubelets.port_of(target.kubelet) is None:
            return Reply(outcome=Outcome.REFUSED.value)
        if target.is_api_server or target.kubelet or target.checked is not None:
            is_plain = target.checked is not None or target.port == KUBELET_HEALTH_PORT
            return target, OpenPort(speaks=HTTP, uses_tls=not is_plain)
        process_port = self._process_port(target.pod, target.port) if target.pod is not None else None
        if process_port is not None and (protocol == "TCP" or process_port.has_own_network):
            return target, OpenPort(uses_tls=None)
        return target, port

    def _choose(
        self, targets: tuple[RouteTarget, ...], address: str, number: int, protocol: str
    ) -> tuple[RouteTarget, OpenPort | None]:
        """Choose a target in turn; in the network of a node, the pod that listens on the port."""
        turn = self._turns[address, number]
        self._turns[address, number] += 1
        hosted = [target for target in targets if target.peer.pod is None and target.pod is not None]
        for target in hosted if len(hosted) == len(targets) else ():
            port = self._responses.open_port(target.pod, target.port, protocol) if target.pod else None
            if port is not None:
                is_api_server = target.pod is not None and _is_api_server(target.pod, target.port)
                return structs.replace(target, is_api_server=is_api_server), port
        target = targets[turn % len(targets)]
        return target, self._responses.open_port(target.pod, target.port, protocol) if target.pod else None

    async def _send(
        self,
        pod: ReadOnlyTree,
        source: Peer,
        request: HttpRequest,
        on_unknown: Callable[[str, str], None],
    ) -> Reply:
        opened = self.open(source, request.address, request.port)
        if isinstance(opened, Reply):
            return opened
        target, port = opened
        if target.is_api_server:
            return await self._send_to_api_server(pod, request)
        if target.kubelet or target.checked is not None:
            return await self._send_to_node(target, request)
        assert target.pod is not None
        process_port = self._port_of_process(source, target, request.address)
        if process_port is not None:
            return await send_locally(process_port, request)
        return await self._send_to_simulated(source, request, target, port, on_unknown)

    async def _send_to_simulated(
        self,
        source: Peer,
        request: HttpRequest,
        target: RouteTarget,
        port: OpenPort,
        on_unknown: Callable[[str, str], None],
    ) -> Reply:
        assert target.pod is not None
        if port.is_accepted:
            if request.uses_tls:
                return Reply(outcome=Outcome.OPEN.value)
            uid = meta.uid(target.pod)
            return await reply_later(send_to_program(self._responses.listeners, uid, target.port, request))
        uses_tls = request.uses_tls if port.uses_tls is None else port.uses_tls
        if port.speaks not in ("", HTTP) or uses_tls is not request.uses_tls:
            return Reply(outcome=Outcome.OPEN.value, speaks=port.speaks, uses_tls=uses_tls)
        received = ReceivedRequest(
            method=request.method,
            path=request.path,
            headers={name.lower(): value for name, value in request.headers},
            client=f"{request.address if is_loopback(request.address) else source.address}:{CLIENT_PORT}",
            body=request.body,
        )
        _report_unknown(target, port, on_unknown)
        answer = await self._responses.respond(target.pod, target.port, port, received)
        if not answer.status:
            return Reply(outcome=Outcome.OPEN.value, uses_tls=uses_tls)
        headers = [("Content-Type", answer.content_type), ("Content-Length", str(len(answer.body)))]
        if answer.server:
            headers.insert(0, ("Server", answer.server))
        if answer.location:
            headers.append(("Location", answer.location))
        headers += answer.headers
        return Reply(
            outcome=Outcome.OPEN.value,
            speaks=HTTP,
            uses_tls=uses_tls,
            is_certificate_known=not port.unknown,
            certificate=await self._responses.certificate(target.pod, port) if uses_tls else b"",
            status=answer.status,
            reason=_PHRASES.get(answer.status, ""),
            headers=tuple(headers),
            body=b"" if request.method == "HEAD" else answer.body,
        )

    def _health_of_service(self, target: RouteTarget, service: ReadOnlyTree, request: HttpRequest) -> Reply:
        """Answer as kube-proxy on the node of a `healthCheckNodePort`."""
        count = local_endpoints(self._view, service, target.peer.node)
        name = f'"namespace": "{meta.namespace(service)}",\n\t\t"name": "{meta.name(service)}"'
        text = f'{{\n\t"service": {{\n\t\t{name}\n\t}},\n\t"localEndpoints": {count},\n\t"serviceProxyHealthy": true\n}}'
        reply = _plain_reply(request, 200 if count else 503, text.encode(), "application/json")
        further = (("X-Content-Type-Options", "nosniff"), ("X-Load-Balancing-Endpoint-Weight", str(count)))
        return structs.replace(reply, headers=(*reply.headers, *further))

    async def serve_health(self, target: RouteTarget, service: ReadOnlyTree, client: ClientConnection) -> str:
        """Answer the request of a process, whatever its path, as kube-proxy on the node of a `healthCheckNodePort`."""
        head = b""
        while b"\r\n\r\n" not in head:
            data = await client.read(_MAX_HEAD)
            head += data
            if not data or len(head) > _MAX_HEAD:
                return ""
        request = HttpRequest(address=target.peer.address, port=target.port, method="GET", path="/")
        reply = self._health_of_service(target, service, request)
        headers = [header for header in reply.headers if header[0] != "Content-Length"]
        with suppress(StreamsClosed):
            await client.write(encode_response(reply.status, [*headers, ("Connection", "close")], reply.body))
        return ""

    async def _send_to_node(self, target: RouteTarget, request: HttpRequest) -> Reply:
        """Send a request to a kubelet or to kube-proxy."""
        if target.checked is not None:
            return self._health_of_service(target, target.checked, request)
        kubelet = self.kubelets.port_of(target.kubelet)
        if kubelet is None:
            return REFUSED
        if target.port == KUBELET_HEALTH_PORT:
            return _health_of_kubelet(request)
        return await send_locally(kubelet, request)

    async def _send_to_api_server(self, pod: ReadOnlyTree, request: HttpRequest) -> Reply:
        """Send a request to the API server with its own credentials, as from the pod."""
        if not request.uses_tls:
            body = b"Client sent an HTTP request to an HTTPS server.\n"
            return Reply(outcome=Outcome.OPEN.value, speaks=HTTP, status=400, reason="Bad Request", body=body)
        response = await self._api_server.send(
            request.method,
            request.path,
            request.headers,
            request.body,
            certificate=request.certificate,
            key=request.key,
        )
        if response is not None:
            with suppress(ValueError):
                return Reply(
                    outcome=Outcome.OPEN.value,
                    speaks=HTTP,
                    uses_tls=True,
                    authority=await self._api_server.authority(meta.namespace(pod) or NAMESPACE_SYSTEM),
                    status=response.status,
                    reason=HTTPStatus(response.status).phrase,
                    headers=(
                        ("Content-Type", "application/json"),
                        ("Content-Length", str(len(response.body))),
                    ),
                    body=response.body,
                )
        return Reply(outcome=Outcome.OPEN.value, speaks=HTTP, uses_tls=True)

    async def _find_admin_policy(self) -> str:
        """Return the kind and name of a policy of administrators, which the network does not simulate; "" if there is none."""
        async with self._admin_lock:
            now = self._clock.monotonic()
            if self._admin_checked_at is None or now - self._admin_checked_at >= _ADMIN_CHECK_SECONDS:
                self._admin_policy = await self._api_server.admin_policy()
                self._admin_checked_at = now
        return self._admin_policy

    def _backends(self, targets: Sequence[RouteTarget]) -> Sequence[Backend]:
        """Return the pods that answer at these targets, with their containers."""
        opened = [
            (target.pod, self._responses.open_port(target.pod, target.port))
            for target in targets
            if target.pod is not None
        ]
        return [
            (pod, port.container) for pod, port in opened if port is not None and port.container is not None
        ]
