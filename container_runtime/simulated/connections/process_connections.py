"""Where the connections of processes with networks of their own lead: as those of simulated pods, and outside of the cluster, too."""

import errno
from collections.abc import Callable
from functools import partial
from typing import Final
from urllib.parse import urlsplit

from mockube.apimachinery import ip_addresses, meta
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.component_base.clock import Clock
from mockube.component_base.supervision import timeout
from mockube.container_runtime.objects import PodVersions
from mockube.container_runtime.pod_network.decisions import (
    Answered,
    ClusterNames,
    Decision,
    Direct,
    Echoed,
    Forwarded,
    Names,
    Refusal,
    Served,
)
from mockube.container_runtime.pod_network.packet_queue import ICMP, NewConnection
from mockube.container_runtime.port_connections import relay
from mockube.container_runtime.process_port import ProcessPort
from mockube.container_runtime.simulated.network.calls import Lookup, Reply, decode_reply, encode_call
from mockube.container_runtime.streams import ClientConnection
from mockube.network import dns
from mockube.network.policies import is_allowed
from mockube.network.services import Outcome, RouteTarget, address_of
from mockube.network.view import Address, Peer, SyncedView, parse_address, peer_of

from .pod_connections import PodConnections
from .port_answers import OpenPort
from .port_responses import PortResponses
from .ports import serve_port

_DNS_PORT: Final = 53
_CONNECT_SECONDS: Final = 120.0
"""How long an address outside of the cluster has to accept a connection; the pod's own attempt ends by then."""
MAX_ATTEMPTS: Final = 512
"""The connections to addresses outside that are attempted at the same time."""
_UNREACHABLE: Final = frozenset({errno.EHOSTUNREACH, errno.ENETUNREACH, errno.EADDRNOTAVAIL})
_NO_TYPE: Final = "NONE"
_ALIAS: Final = "CNAME"


def _is_of_machine(address: Address) -> bool:
    """Return whether connections to an address stay on the machine that opens them, or go to many."""
    return address.is_loopback or address.is_unspecified or address.is_multicast


class ProcessConnections:
    """The `Connections` of a `PodNetwork`."""

    def __init__(  # noqa: PLR0913, PLR0917 - its parts are those of the run-time
        self,
        network: PodConnections,
        view: SyncedView,
        pods: PodVersions,
        responses: PortResponses,
        process_port: Callable[[ReadOnlyTree, int], ProcessPort | None],
        has_address: Callable[[str], bool],
        server: str,
        clock: Clock,
    ) -> None:
        """`has_address` returns whether a process has a network with an address; `server` is the URL of the API server."""
        self._network = network
        self._view = view
        self._pods = pods
        self._responses = responses
        self._process_port = process_port
        self._has_address = has_address
        url = urlsplit(server)
        self._server = ProcessPort(url.hostname or "", url.port or 443)
        self._clock = clock
        self._attempts = 0

    async def decide(self, pod: ReadOnlyTree, connection: NewConnection) -> Decision:
        await self._view.wait_synced()
        source, address = peer_of(self._pods.latest(pod) or pod), connection.address
        if connection.protocol == ICMP:
            return self._echo(source, address)
        is_query = address == self._network.cluster_dns and connection.port == _DNS_PORT
        if is_query and not self._view.services_at(address):
            return ClusterNames()
        found = self._network.find(source, address, connection.port, connection.protocol)
        if isinstance(found, Reply):
            return await self._closed(source, connection, Outcome(found.outcome))
        component = await self._connect_to_component(found[0])
        return component or await self._connect_to_target(source, connection, *found, is_query=is_query)

    async def _connect_to_target(
        self,
        source: Peer,
        connection: NewConnection,
        target: RouteTarget,
        port: OpenPort | None,
        *,
        is_query: bool,
    ) -> Decision:
        """Connect to a pod, or to an endpoint of a Service that is none."""
        process_port = self._process_port(target.pod, target.port) if target.pod is not None else None
        if process_port is not None and process_port.has_own_network:
            direct = address_of(target, connection.address)
            return Direct(direct, process_port.port) if direct else Refusal.REFUSED
        if is_query and port is not None:
            return ClusterNames()
        if target.pod is None:
            return await self._connect_to_endpoint(source, connection, target)
        if port is None:
            return await self._closed(source, connection, Outcome.REFUSED)
        if process_port is not None:
            return await self._connect(process_port) if connection.protocol == "TCP" else Refusal.DROPPED
        return self._connect_to_simulated(source, connection, target.pod, target.port, port)

    def _connect_to_simulated(
        self, source: Peer, connection: NewConnection, pod: ReadOnlyTree, number: int, port: OpenPort
    ) -> Decision:
        if connection.protocol == "UDP":
            client = f"{source.address}:{connection.source_port}"
            return Answered(lambda data: self._responses.reply_to_datagram(pod, number, port, data, client))
        if connection.protocol == "TCP":
            return Served(partial(self._serve, pod, number, source.address))
        return Refusal.DROPPED

    async def _connect_to_component(self, target: RouteTarget) -> Decision | None:
        """Connect to the API server, a kubelet or kube-proxy; return None if the target is a pod."""
        if target.is_api_server:
            return await self._connect(self._server)
        if target.kubelet:
            kubelet = self._network.kubelets.port_of(target.kubelet)
            return Refusal.REFUSED if kubelet is None else await self._connect(kubelet)
        if target.checked is not None:
            return Served(partial(self._network.serve_health, target, target.checked))
        return None

    async def look_up(self, pod: ReadOnlyTree, name: str, record_type: str) -> Names:
        call = encode_call(
            Lookup(server=self._network.cluster_dns, name=name, record_type=record_type or _NO_TYPE)
        )
        reply = decode_reply(await self._network.caller(pod)(call))
        outcome = Outcome(reply.outcome)
        target = "" if record_type == _ALIAS or reply.code else dns.outside_target(reply.records)
        return Names(
            exists=reply.exists,
            records=reply.records,
            is_outside=outcome is Outcome.OUTSIDE or bool(target),
            target=target,
            is_dropped=outcome is Outcome.TIMEOUT,
        )

    def _echo(self, source: Peer, address: str) -> Decision:
        if self._view.services_at(address):
            return Refusal.DROPPED
        pod, node = self._view.pod_at(address), self._view.node_at(address)
        if pod is None and node is None:
            return Refusal.DROPPED  # echo requests to the outside need rights that this process may lack
        target = peer_of(pod) if pod is not None else Peer(address=address, node=meta.name(node or {}))
        if not is_allowed(self._view, source, target, 0, ICMP):
            return Refusal.DROPPED
        return Direct(address, 0) if self._has_address(address) else Echoed()

    async def _connect_to_endpoint(
        self, source: Peer, connection: NewConnection, target: RouteTarget
    ) -> Decision:
        """Connect to an endpoint of a Service that is no pod, as if the client used its address: kube-proxy translates addresses once."""
        address = parse_address(target.peer.address)
        if address is None or self._view.services_at(str(address)):
            return Refusal.DROPPED
        translated = connection._replace(address=str(address), port=target.port)
        if self._view.node_at(str(address)) is not None:
            return await self._closed(source, translated, Outcome.REFUSED)
        return await self._outside(source, translated)

    async def _closed(self, source: Peer, connection: NewConnection, outcome: Outcome) -> Decision:
        match outcome:
            case Outcome.REFUSED if self._has_address(connection.address):
                return Direct(connection.address, connection.port)  # a node's own network knows
            case Outcome.REFUSED:
                return Refusal.REFUSED
            case Outcome.UNREACHABLE | Outcome.OUTSIDE:
                return await self._outside(source, connection)
            case _:
                return Refusal.DROPPED

    async def _outside(self, source: Peer, connection: NewConnection) -> Decision:
        """Connect to an address that is not one of the cluster, as this machine can."""
        address, port = connection.address, connection.port
        parsed = ip_addresses.parse(address)
        if parsed is None or _is_of_machine(parsed) or address in (source.address, *source.addresses):
            return Refusal.DROPPED
        if not is_allowed(self._view, source, Peer(address=address), port, connection.protocol):
            return Refusal.DROPPED
        if connection.protocol == "UDP":
            return Forwarded(address, port)
        return (
            await self._connect(ProcessPort(address, port))
            if connection.protocol == "TCP"
            else Refusal.DROPPED
        )

    async def _connect(self, port: ProcessPort) -> Decision:
        """Connect in the place of a pod, which gets its answer when the other end has answered."""
        if self._attempts >= MAX_ATTEMPTS:
            return Refusal.DROPPED
        self._attempts += 1
        try:
            async with timeout(self._clock.real, _CONNECT_SECONDS):
                reader, writer = await port.connect()
        except ConnectionRefusedError:
            return Refusal.REFUSED
        except TimeoutError:
            return Refusal.DROPPED
        except OSError as error:
            return Refusal.UNREACHABLE if error.errno in _UNREACHABLE else Refusal.DROPPED
        finally:
            self._attempts -= 1
        return Served(partial(relay, reader, writer, self._clock), abandon=writer.close)

    async def _serve(self, pod: ReadOnlyTree, port: int, source: str, client: ClientConnection) -> str:
        await serve_port(pod, port, self._responses, client, source)
        return ""
