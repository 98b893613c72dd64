"""The network of the pods whose containers run as processes: gives each its namespace, and each new connection its verdict."""

import asyncio
import logging
import socket
import sys
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from ipaddress import IPv4Network
from typing import Any, Final

from mockube.apimachinery import meta
from mockube.apimachinery.hosts import is_loopback
from mockube.apimachinery.ip_addresses import is_link_local
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.component_base.clock import Clock
from mockube.component_base.supervision import cancel_and_wait, start
from mockube.container_runtime.runtime import PortConnection

from . import nftables, packet_queue
from .accepted import AcceptedConnection
from .datagrams import MAX_RELAYS, MIN_SECONDS, DatagramAnswers, DatagramRelay, Receiver, Relay
from .decisions import (
    Answered,
    ClusterNames,
    Connections,
    Decision,
    Direct,
    Echoed,
    Forwarded,
    Names,
    NoConnections,
    Refusal,
    Served,
)
from .holder import GATEWAYS
from .name_server import answer_datagram, serve_stream
from .namespaces import Namespaces, NetworkProblem, PodNamespace
from .packet_queue import ACCEPT, DROP, NewConnection
from .targets import Targets

LOG: Final = logging.getLogger(__name__)

_SWEEP_SECONDS: Final = 60.0
"""After one to two of these intervals without a datagram a relay is closed."""
_MAX_EXPECTED: Final = 4096
"""Connections that have a verdict and are not accepted yet."""
_BACKLOG: Final = 4096


class _Attachment:
    """A namespace, and the pods in it: one, or those in the network of their node."""

    def __init__(self, namespace: PodNamespace, addresses: Sequence[str], *, is_node: bool) -> None:
        self.namespace = namespace
        self.addresses = tuple(addresses)
        self.is_node = is_node
        self.pods: dict[str, ReadOnlyTree] = {}
        """By uid."""

    @property
    def pod(self) -> ReadOnlyTree:
        return next(iter(self.pods.values()))


class PodNetwork:
    def __init__(self, clock: Clock, balancers: str = "") -> None:
        """`balancers` is the range of the addresses of load balancers."""
        self._clock = clock
        self._balancers = balancers if _is_loopback_range(balancers) else ""
        self.connections: Connections = NoConnections()
        self._on_lost: list[Callable[[ReadOnlyTree], None]] = []
        self._lock = asyncio.Lock()
        self._live: _LiveNetwork | None = None
        self.problem = ""
        """What the machine lacks for it; "" if it has not been tried, or works."""

    def on_lost(self, handler: Callable[[ReadOnlyTree], None]) -> None:
        """Call the handler with each pod whose network somebody has removed."""
        self._on_lost.append(handler)

    async def attach(self, pod: ReadOnlyTree) -> PodNamespace:
        """Return the namespace of a pod, which is made for its first container; raise `NetworkProblem` if that is not possible."""
        async with self._lock:
            if self.problem:
                raise NetworkProblem(self.problem)
            if self._live is None:
                live = _LiveNetwork(
                    self.connections, self._clock, self._balancers, self._report_lost, self._report_end
                )
                try:
                    await live.start()
                except OSError as error:
                    await cancel_and_wait(live.end())
                    self.problem = str(error)
                    raise NetworkProblem(self.problem) from error
                self._live = live
            return await self._live.attach(pod)

    def has(self, pod: ReadOnlyTree) -> bool:
        """Return whether a pod has a namespace."""
        return self._live is not None and self._live.find(pod) is not None

    def has_address(self, address: str) -> bool:
        """Return whether a namespace has an address."""
        return self._live is not None and address in self._live.by_address

    async def release(self, pod: ReadOnlyTree) -> None:
        """Give up a pod's namespace, after its processes have ended."""
        async with self._lock:
            if self._live is not None:
                await self._live.release(pod)

    async def open_socket(
        self, pod: ReadOnlyTree, host: str, source: str = "", kind: int = socket.SOCK_STREAM
    ) -> socket.socket:
        """Open a socket that can connect to an address of a pod, also to its loopback address.

        The pod sees `source` as the address of its client, if it can be that of another machine; otherwise that of its gateway.
        """
        attachment = self._live.find(pod) if self._live is not None else None
        if self._live is None or attachment is None:
            raise NetworkProblem("the pod has no network")
        link = attachment.namespace.link if is_loopback(host) else 0
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        opened = await self._live.namespaces.open_socket(family, kind, link=link)
        is_of_machine = bool(source) and not is_loopback(source) and not is_link_local(source)
        try:
            if not link and is_of_machine and _version(source) == _version(host):
                self._live.mark_source(opened, attachment, source)
        except BaseException:
            opened.close()
            raise
        return opened

    async def close(self) -> None:
        """End all namespaces at once, and then wait for what used them."""
        live, self._live = self._live, None
        if live is not None:
            await cancel_and_wait(live.end())

    def _report_lost(self, pods: Sequence[ReadOnlyTree]) -> None:
        for pod in pods:
            for handler in self._on_lost:
                handler(pod)

    def _report_end(self) -> None:
        """The holder has died; the next container starts another one."""
        live, self._live = self._live, None
        if live is not None:
            LOG.error("the process that holds the network namespaces of pods has ended")
            self._report_lost(
                [pod for attachment in live.by_link.values() for pod in attachment.pods.values()]
            )
            live.end()


class _LiveNetwork:
    """The namespaces with their rules, from a start of the holder to its end."""

    def __init__(
        self,
        connections: Connections,
        clock: Clock,
        balancers: str,
        on_lost: Callable[[Sequence[ReadOnlyTree]], None],
        on_end: Callable[[], None],
    ) -> None:
        self._connections = connections
        self._clock = clock
        self._balancers = balancers
        self._report_lost = on_lost
        self.namespaces = Namespaces(self._on_lost_link, on_end)
        self.by_link: dict[int, _Attachment] = {}
        self.by_address: dict[str, _Attachment] = {}
        self._by_key: dict[str, _Attachment] = {}
        self._netfilter: socket.socket | None = None
        self._queue: socket.socket | None = None
        self._targets: Targets | None = None
        self._may_mark = True
        """Whether the kernel has not refused a mark yet."""
        self._servers: list[asyncio.Server] = []
        self._listeners: dict[int, int] = {}
        """The port of this process' listener, by the version of IP."""
        self._name_ports: dict[int, int] = {}
        self._transports: list[asyncio.DatagramTransport] = []
        self._undecided: set[tuple[Any, ...]] = set()
        self._expected: OrderedDict[tuple[str, int], Served] = OrderedDict()
        """The connections that clients may complete, by address and port of the client."""
        self._relays: dict[tuple[str, int, str, int], Relay] = {}
        self._relay_ports: dict[tuple[str, int, str, int], int] = {}
        self._tasks: set[asyncio.Task[Any]] = set()

    async def start(self) -> None:
        await self.namespaces.start()
        gateways = {version: GATEWAYS[version] for version in self.namespaces.versions}
        self._netfilter = await self.namespaces.open_netfilter()
        _install_rules(self._netfilter, gateways)
        self._targets = Targets(self._netfilter)
        self._queue = await self.namespaces.open_netfilter()
        try:
            packet_queue.bind(self._queue)
        except OSError as error:
            raise NetworkProblem(f"a queue of packets (nfnetlink_queue): {error.strerror}") from error
        for version, gateway in gateways.items():
            await self._listen(version, gateway)
        asyncio.get_running_loop().add_reader(self._queue, self._read_packets)
        self._run("idle relays", self._sweep())

    async def _listen(self, version: int, gateway: str) -> None:
        family = socket.AF_INET if version == 4 else socket.AF_INET6
        listener = await self.namespaces.open_socket(family)
        listener.bind((gateway, 0))
        self._listeners[version] = listener.getsockname()[1]
        self._servers.append(
            await asyncio.start_server(self._accept, sock=listener, backlog=_BACKLOG, limit=1 << 17)
        )
        names = await self.namespaces.open_socket(family, socket.SOCK_DGRAM)
        names.bind((gateway, 0))
        self._name_ports[version] = names.getsockname()[1]
        transport, _ = await asyncio.get_running_loop().create_datagram_endpoint(
            lambda: Receiver(lambda data, client: self._receive_query(transport, data, client)), sock=names
        )
        self._transports.append(transport)

    def end(self) -> "list[asyncio.Task[Any]]":
        """End the holder, close all that is open, and cancel the tasks; return these."""
        loop = asyncio.get_running_loop()
        if self._queue is not None:
            loop.remove_reader(self._queue)
        tasks = [*self._tasks]
        for task in tasks:
            task.cancel()
        for server in self._servers:
            server.close()
        for transport in self._transports:
            transport.close()
        for relay in self._relays.values():
            relay.close()
        for served in self._expected.values():
            served.abandon()
        self._expected.clear()
        for opened in (self._queue, self._netfilter):
            if opened is not None:
                opened.close()
        self._queue = self._netfilter = None
        for attachment in self.by_link.values():
            attachment.namespace.close()
        self.by_link.clear()
        self.namespaces.close()
        return tasks

    def mark_source(self, opened: socket.socket, attachment: _Attachment, source: str) -> None:
        """Let the connection of a socket have a source address, where the kernel permits marks."""
        assert self._targets is not None
        if not self._may_mark or source in attachment.addresses:
            return
        mark = nftables.SEEN_FROM | self._targets.number_of(source, 0)
        try:
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_MARK, mark.to_bytes(4, sys.byteorder))
        except PermissionError:
            self._may_mark = False

    # --- pods

    def find(self, pod: ReadOnlyTree) -> _Attachment | None:
        return self._by_key.get(_key_of(pod))

    async def attach(self, pod: ReadOnlyTree) -> PodNamespace:
        attachment = self.find(pod)
        if attachment is None:
            addresses = addresses_of(pod)
            if not addresses:
                raise NetworkProblem("the pod has no address")
            supported = [address for address in addresses if _version(address) in self.namespaces.versions]
            is_node = bool(pod["spec"].get("hostNetwork"))
            namespace = await self.namespaces.add(
                supported, network_settings(pod), self._balancers, is_node=is_node
            )
            attachment = _Attachment(namespace, supported, is_node=is_node)
            self._by_key[_key_of(pod)] = self.by_link[namespace.link] = attachment
            for address in supported:
                self.by_address[address] = attachment
        attachment.pods[meta.uid(pod)] = pod
        return attachment.namespace

    async def release(self, pod: ReadOnlyTree) -> None:
        attachment = self.find(pod)
        if attachment is None or attachment.pods.pop(meta.uid(pod), None) is None or attachment.pods:
            return
        self._forget(attachment, _key_of(pod))
        await self.namespaces.drop(attachment.namespace)

    def _forget(self, attachment: _Attachment, key: str) -> None:
        self._by_key.pop(key, None)
        self.by_link.pop(attachment.namespace.link, None)
        for address in attachment.addresses:
            if self.by_address.get(address) is attachment:
                del self.by_address[address]
        if self._targets is not None:
            self._targets.remove(attachment.addresses)
        for relay in [one for one in self._relays if one[0] in attachment.addresses]:
            self._close_relay(relay)

    def _on_lost_link(self, link: int) -> None:
        attachment = self.by_link.get(link)
        if attachment is None:
            return
        pods = [*attachment.pods.values()]
        self._forget(attachment, _key_of(attachment.pod))
        attachment.namespace.close()
        self._report_lost(pods)

    # --- new connections

    def _read_packets(self) -> None:
        assert self._queue is not None
        try:
            waiting = [*packet_queue.read(self._queue)]
        except BlockingIOError:
            return
        for packet in waiting:
            if isinstance(packet, int):
                self._give_verdict(packet, DROP)
                continue
            key = packet[2:]
            if key in self._undecided:  # the client sent the packet again
                self._give_verdict(packet.packet, DROP)
                continue
            self._undecided.add(key)
            self._run("the decision on a connection", self._decide(packet, key))

    async def _decide(self, packet: NewConnection, key: tuple[Any, ...]) -> None:
        mark: int | None = None
        try:
            attachment = self.by_link.get(packet.link)
            if attachment is not None and attachment.pods and packet.source in attachment.addresses:
                decision = await self._connections.decide(attachment.pod, packet)
                mark = await self._mark_of(decision, packet, attachment)
        except OSError as error:
            LOG.warning(
                "a connection from %s to %s port %s failed: %s",
                packet.source,
                packet.address,
                packet.port,
                error,
            )
        finally:
            self._undecided.discard(key)
            self._give_verdict(packet.packet, DROP if mark is None else ACCEPT, mark or 0)

    def _give_verdict(self, packet: int, verdict: int, mark: int = 0) -> None:
        if self._queue is not None:
            packet_queue.give_verdict(self._queue, packet, verdict, mark)

    async def _mark_of(  # noqa: PLR0911 - one for each kind of decision
        self, decision: Decision, packet: NewConnection, attachment: _Attachment
    ) -> int | None:
        """Return the mark of a verdict; None to drop the packet."""
        assert self._targets is not None
        version = _version(packet.address)
        gateway = GATEWAYS[version]
        match decision:
            case Refusal.REFUSED:
                return nftables.REFUSED
            case Refusal.UNREACHABLE:
                return nftables.UNREACHABLE
            case Direct(address, port):
                # What a node sends to itself comes back this way without another source.
                is_hairpin = address in attachment.addresses and not attachment.is_node
                hairpin = nftables.HAIRPIN if is_hairpin else 0
                if (address, port) == (packet.address, packet.port):
                    return hairpin
                return self._targets.number_of(address, port) | hairpin
            case Served():
                self._expect((packet.source, packet.source_port), decision)
                return self._targets.number_of(gateway, self._listeners[version])
            case ClusterNames() if packet.protocol == "UDP":
                return self._targets.number_of(gateway, self._name_ports[version])
            case ClusterNames() if packet.protocol == "TCP":
                look_up = partial(self._connections.look_up, attachment.pod)
                connect: PortConnection = partial(serve_stream, look_up, self._clock)
                self._expect((packet.source, packet.source_port), Served(connect))
                return self._targets.number_of(gateway, self._listeners[version])
            case Echoed():
                return self._targets.number_of(gateway, 0)
            case Forwarded() | Answered():
                port = await self._open_relay(packet, self._relay_of(decision), gateway)
                return self._targets.number_of(gateway, port) if port else None
            case _:
                return None

    # --- what this process serves

    def _expect(self, client: tuple[str, int], served: Served) -> None:
        old = self._expected.pop(client, None)
        if old is not None:
            old.abandon()
        self._expected[client] = served
        if len(self._expected) > _MAX_EXPECTED:
            self._expected.popitem(last=False)[1].abandon()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        served = self._expected.pop(writer.get_extra_info("peername")[:2], None)
        connection = AcceptedConnection(reader, writer)
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            if served is not None:
                await served.connect(connection)
        except OSError:
            pass
        finally:
            self._tasks.discard(task)
            await connection.close()

    def _receive_query(self, transport: asyncio.DatagramTransport, data: bytes, client: Any) -> None:
        attachment = self.by_address.get(client[0])
        if attachment is not None and attachment.pods and len(self._tasks) < _MAX_EXPECTED:
            self._run("a query of a name", self._answer_query(transport, attachment.pod, data, client))

    async def _answer_query(
        self, transport: asyncio.DatagramTransport, pod: ReadOnlyTree, data: bytes, client: Any
    ) -> None:
        async def look_up(name: str, record_type: str) -> Names:
            return await self._connections.look_up(pod, name, record_type)

        answer = await answer_datagram(data, look_up, self._clock)
        if answer:
            transport.sendto(answer, client)

    # --- datagrams that this process forwards or answers

    def _relay_of(self, decision: Forwarded | Answered) -> Relay:
        now = self._clock.real.monotonic()
        if isinstance(decision, Answered):
            return DatagramAnswers(now, decision.reply)
        return DatagramRelay(now, decision.address, decision.port)

    async def _open_relay(self, packet: NewConnection, relay: Relay, gateway: str) -> int:
        """Return the port of the relay of a pod's port to an address; 0 if there are too many new ones."""
        key = (packet.source, packet.source_port, packet.address, packet.port)
        if key in self._relays:
            return self._relay_ports[key]
        if len(self._relays) >= MAX_RELAYS:
            oldest = next(iter(self._relays))
            if relay.opened_at - self._relays[oldest].opened_at < MIN_SECONDS:
                return 0
            self._close_relay(oldest)
        self._relays[key] = relay
        try:
            inner = await self.namespaces.open_socket(
                socket.AF_INET6 if ":" in gateway else socket.AF_INET, socket.SOCK_DGRAM
            )
            inner.bind((gateway, 0))
            self._relay_ports[key] = inner.getsockname()[1]
            await relay.open(inner)
        except BaseException:
            self._close_relay(key)
            raise
        if key not in self._relays:
            relay.close()
            raise NetworkProblem("too many datagrams to different addresses")
        return self._relay_ports[key]

    def _close_relay(self, key: tuple[str, int, str, int]) -> None:
        relay = self._relays.pop(key, None)
        if relay is None:  # another one has replaced it
            return
        relay.close()
        port = self._relay_ports.pop(key, None)
        if port is not None and self._targets is not None:
            self._targets.remove((GATEWAYS[_version(key[0])],), port)

    async def _sweep(self) -> None:
        """Close relays without datagrams, and forget connections that clients do not complete."""
        while True:
            waiting = [*self._expected.items()]
            await self._clock.real.sleep(_SWEEP_SECONDS)
            for client, served in waiting:
                if self._expected.get(client) is served:
                    del self._expected[client]
                    served.abandon()
            for key, relay in [*self._relays.items()]:
                if relay.is_used:
                    relay.is_used = False
                else:
                    self._close_relay(key)

    def _run(self, name: str, work: Any) -> None:
        task = start(name, work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _install_rules(netfilter: socket.socket, gateways: Mapping[int, str]) -> None:
    """Install the rules with the queue that the kernel has: that of nf_tables, or that of x_tables."""
    problem: OSError | None = None
    for by_target in (False, True):
        try:
            nftables.install(netfilter, gateways, by_target=by_target)
        except OSError as error:
            problem = problem or error
        else:
            return
    assert problem is not None
    raise NetworkProblem(f"rules for packets (nf_tables): {problem.strerror}") from problem


def addresses_of(pod: ReadOnlyTree) -> list[str]:
    """Return the addresses of a pod; in the network of its node those of the node."""
    status = pod.get("status") or {}
    kinds = ("hostIPs", "hostIP") if pod["spec"].get("hostNetwork") else ("podIPs", "podIP")
    entries = status.get(kinds[0]) or ([{"ip": status[kinds[1]]}] if status.get(kinds[1]) else [])
    return [entry["ip"] for entry in entries]


def network_settings(pod: ReadOnlyTree) -> dict[str, str]:
    """Return the sysctls of a pod that belong to its network namespace, by their paths."""
    sysctls = (pod["spec"].get("securityContext") or {}).get("sysctls") or ()
    names = {str(one["name"]).replace(".", "/"): str(one.get("value") or "") for one in sysctls}
    return {
        name.removeprefix("net/"): value
        for name, value in names.items()
        if name.startswith("net/") and ".." not in name
    }


def _key_of(pod: ReadOnlyTree) -> str:
    node = pod["spec"].get("nodeName") or ""
    return f"node/{node}" if pod["spec"].get("hostNetwork") else meta.uid(pod)


def _is_loopback_range(cidr: str) -> bool:
    """Return whether a range is one of loopback addresses of IPv4; the kernel of a pod sends these nowhere else."""
    try:
        return IPv4Network(cidr).is_loopback
    except ValueError:
        return False


def _version(address: str) -> int:
    return 6 if ":" in address else 4
