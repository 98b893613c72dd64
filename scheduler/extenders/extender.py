"""One extender: its requests over HTTP, and the pods that concern it."""

import errno
import os
import socket
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple
from urllib.parse import quote as percent_encode
from urllib.parse import urlsplit, urlunsplit

import orjson

from mockube.apimachinery import meta
from mockube.apimachinery.gotext import quote
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.connections import Address, ConnectionBroken, Connections, NotConnected
from mockube.client.tls import REAL_CLOCK, tls_context
from mockube.component_base.http1.writing import encode_request
from mockube.component_base.supervision import timeout
from mockube.scheduler.choice import EXTENDER
from mockube.scheduler.cluster import ClusterSnapshot
from mockube.scheduler.config.extender_access import ExtenderAccess
from mockube.scheduler.filters.filter import Rejection
from mockube.scheduler.nodeinfo import NodeInfo
from mockube.scheduler.podinfo import PodInfo
from mockube.scheduler.preemption import Candidate, no_victims
from mockube.scheduler.scores.score import MAX_NODE_SCORE

from . import messages
from .messages import ExtenderError

_MAX_BODY_BYTES: Final = 1 << 26
"""The maximum length of a response: one with all nodes of a large cluster is shorter."""
_MAX_EXTENDER_PRIORITY: Final = 10
_IN_PATHS: Final = "/%!$&'()*+,;=:@~"
"""The characters of a path that are not encoded."""
_OK: Final = 200
_TIMED_OUT: Final = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"


class Filtered(NamedTuple):
    """The nodes that an extender accepts, and why it rejects others."""

    nodes: Sequence[NodeInfo]
    rejections: Mapping[str, Rejection]


class HTTPExtender:
    """It belongs to the event loop in which it sends its first request."""

    def __init__(self, configuration: ExtenderAccess) -> None:
        self._configuration = configuration.extender
        self._access = configuration.access
        self._timeout = configuration.timeout
        self._connections: Connections | None = None
        self._managed = frozenset(one.name for one in self._configuration.managed_resources)

    @property
    def name(self) -> str:
        return self._configuration.url_prefix

    @property
    def is_ignorable(self) -> bool:
        """Whether pods are scheduled without the extender if it fails."""
        return self._configuration.ignorable

    @property
    def filters(self) -> bool:
        return bool(self._configuration.filter_verb)

    @property
    def prioritizes(self) -> bool:
        return bool(self._configuration.prioritize_verb)

    @property
    def preempts(self) -> bool:
        return bool(self._configuration.preempt_verb)

    @property
    def binds(self) -> bool:
        return bool(self._configuration.bind_verb)

    def is_interested(self, pod: PodInfo) -> bool:
        """Return whether a pod concerns the extender: without managed resources, every pod does."""
        if not self._managed:
            return True
        containers = [one for name in ("containers", "initContainers") for one in pod.spec.get(name) or ()]
        return any(
            not self._managed.isdisjoint((container.get("resources") or {}).get(name) or ())
            for container in containers
            for name in ("requests", "limits")
        )

    async def filter(self, pod: PodInfo, nodes: Sequence[NodeInfo]) -> Filtered:
        """Return the nodes that the extender accepts. Raises ExtenderError."""
        caches_nodes = self._configuration.node_cache_capable
        args = messages.filter_args(pod, nodes, names_only=caches_nodes)
        result = messages.filter_result(await self._send(self._configuration.filter_verb, args))
        if result.error:
            raise ExtenderError(result.error)
        rejections = {
            **{name: Rejection((reason,), plugin=EXTENDER) for name, reason in result.failed.items()},
            **{
                name: Rejection((reason,), is_unresolvable=True, plugin=EXTENDER)
                for name, reason in result.unresolvable.items()
            },
        }
        if caches_nodes and result.names is not None:
            return Filtered(self._named(result.names, nodes), rejections)
        return Filtered([_node_of(tree) for tree in result.nodes or ()], rejections)

    def _named(self, names: Sequence[str], nodes: Sequence[NodeInfo]) -> Sequence[NodeInfo]:
        by_name = {node.name: node for node in nodes}
        for name in names:
            if name not in by_name:
                raise ExtenderError(
                    f"extender {quote(self.name)} claims a filtered node {quote(name)} "
                    "which is not found in the input node list"
                )
        return [by_name[name] for name in names]

    async def scores(self, pod: PodInfo, nodes: Sequence[NodeInfo]) -> Mapping[str, int]:
        """Return the weighted scores by the names of nodes. Raises ExtenderError."""
        args = messages.filter_args(pod, nodes, names_only=self._configuration.node_cache_capable)
        result = messages.scores(await self._send(self._configuration.prioritize_verb, args))
        factor = self._configuration.weight * (MAX_NODE_SCORE // _MAX_EXTENDER_PRIORITY)
        totals: dict[str, int] = {}
        for name, score in result:
            totals[name] = totals.get(name, 0) + score * factor
        return totals

    async def process_preemption(
        self, pod: PodInfo, candidates: Sequence[Candidate], snapshot: ClusterSnapshot
    ) -> list[Candidate]:
        """Return the candidates that the extender accepts, with the victims that it chooses. Raises ExtenderError."""
        args = messages.preemption_args(pod, candidates, names_only=self._configuration.node_cache_capable)
        result = messages.preemption_result(await self._send(self._configuration.preempt_verb, args))
        nodes = {node.name: node for node in snapshot.nodes} if result else {}
        chosen = []
        for name, victims in result.items():
            if name not in nodes:
                raise ExtenderError(f"nodeinfo not found for node name {quote(name)}")
            if not victims.uids and self.is_ignorable:
                continue
            if not victims.uids:
                raise ExtenderError(no_victims(name))
            pods = [self._victim(uid, nodes[name]) for uid in victims.uids]
            chosen.append(Candidate(node=name, victims=pods, pdb_violations=victims.pdb_violations))
        return chosen

    def _victim(self, uid: str, node: NodeInfo) -> PodInfo:
        if uid not in node.pods:
            raise ExtenderError(
                f"extender: {self.name} claims to preempt pod (UID: &{{{uid}}}) on node: {node.name}, "
                "but the pod is not found on that node"
            )
        return node.pods[uid]

    async def bind(self, pod: PodInfo, node: str) -> None:
        """Let the extender bind a pod. Raises ExtenderError."""
        result = await self._send(self._configuration.bind_verb, messages.binding_args(pod, node))
        if error := messages.binding_error(result):
            raise ExtenderError(error)

    async def close(self) -> None:
        if self._connections is not None:
            await self._connections.close()

    async def _send(self, verb: str, args: ReadOnlyTree) -> Any:
        url = f"{self._access.server}/{verb}"
        if self._connections is None:
            self._connections = self._access_connections()
        try:
            async with timeout(REAL_CLOCK, self._timeout):
                response = await self._connections.exchange(
                    _encode(url, orjson.dumps(args)), seconds=self._timeout, is_head=False
                )
        except (NotConnected, ConnectionBroken, TimeoutError) as error:
            raise ExtenderError(f"Post {quote(url)}: {_problem(error, url)}") from error
        if response.status != _OK:
            raise ExtenderError(f"failed {verb} with extender at URL {url}, code {response.status}")
        return messages.decode(response.body)

    def _access_connections(self) -> Connections:
        parts = urlsplit(self._access.server)
        host, is_secure = parts.hostname or "", parts.scheme == "https"
        address = Address(
            host=host,
            port=parts.port or (443 if is_secure else 80),
            trust=tls_context(self._access, REAL_CLOCK) if is_secure else None,
            server_name=self._access.server_name or host,
        )
        return Connections(address, REAL_CLOCK, _MAX_BODY_BYTES)


def _encode(url: str, body: bytes) -> bytes:
    parts = urlsplit(url)
    target = urlunsplit(("", "", percent_encode(parts.path, _IN_PATHS), parts.query, ""))
    headers = {
        "Host": parts.netloc.rpartition("@")[2],
        "User-Agent": "mockube",
        "Content-Type": "application/json",
        "Content-Length": str(len(body)),
    }
    return encode_request("POST", target, headers.items(), body)


def _node_of(tree: ReadOnlyTree) -> NodeInfo:
    """Return a node as upstream makes one of a response: without pods and images, so that scores do not count these."""
    node = NodeInfo(meta.name(tree) if tree.get("metadata") else "")
    node.set_node(tree)
    node.images = {}
    return node


def _problem(error: Exception, url: str) -> str:
    """Return Go's message for a request without a response."""
    causes: list[BaseException] = []
    cause: BaseException | None = error
    while cause is not None:
        causes.append(cause)
        cause = cause.__cause__
    parts = urlsplit(url)
    if isinstance(causes[-1], TimeoutError):
        return _TIMED_OUT
    if isinstance(causes[-1], socket.gaierror):
        return f"dial tcp: lookup {parts.hostname}: no such host"
    if isinstance(causes[-1], ConnectionRefusedError):
        port = parts.port or (443 if parts.scheme == "https" else 80)
        reason = os.strerror(errno.ECONNREFUSED).lower()
        return f"dial tcp {parts.hostname}:{port}: connect: {reason}"
    return str(causes[-1])
