"""The name servers of the cluster: which pods answer at an address, and by which Corefile.

A cluster without the Service kube-dns has the answers of one with CoreDNS. With it, a name is resolved by a ready pod behind it, if there is one.
"""

from collections import Counter
from typing import Final
from weakref import WeakValueDictionary

from msgspec import Struct

from mockube.apimachinery import meta
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.container_runtime.records import Records
from mockube.container_runtime.simulated.network.calls import ServeNames
from mockube.network import dns
from mockube.network.coredns import NameServer, Query
from mockube.network.coredns_metrics import ServerMetrics
from mockube.network.corefile import PORT, Corefile, parse
from mockube.network.dns import Answer
from mockube.network.policies import is_allowed
from mockube.network.services import RouteTarget, route
from mockube.network.view import ClusterView, Peer

_SERVICE: Final = ("kube-system", "kube-dns")
_LABEL: Final = "k8s-app"
_PROGRAM: Final = "coredns"
_PROTOCOL: Final = "UDP"
_MAX_SERVERS: Final = 1000
_NOBODY: Final = Peer(address="")


class _Server(Struct, weakref=True):
    """A server that runs in a pod: what it has read, and what it counts."""

    corefile: Corefile
    metrics: ServerMetrics


class NameServers:
    def __init__(self, records: Records, view: ClusterView, cluster_dns: str) -> None:
        self._records = records
        self._view = view
        self._cluster_dns = cluster_dns
        self._servers: WeakValueDictionary[str, _Server] = WeakValueDictionary()
        """All servers by the uid of the pod, the one that was started first at the front."""
        self._had_cluster_dns = False
        """Whether CoreDNS has run as kubeadm installs it: without its Service, names are not resolved then."""
        self._turns: Counter[str] = Counter()

    def start(self, pod: ReadOnlyTree, served: ServeNames) -> None:
        """Note the Corefile that a pod serves from now on."""
        self._had_cluster_dns |= (
            meta.namespace(pod) == _SERVICE[0] and meta.labels(pod).get(_LABEL) == _SERVICE[1]
        )
        uid, corefile = meta.uid(pod), parse(served.corefile, served.path)
        server = self._servers.pop(uid, None) or _Server(corefile, ServerMetrics(corefile))
        server.corefile = corefile
        server.metrics.use(corefile)
        self._records.put(uid, server)
        self._servers[uid] = server
        if len(self._servers) > _MAX_SERVERS:
            self._records.pop(next(iter(self._servers)), _Server)

    def metrics(self, pod: ReadOnlyTree) -> str:
        """Return what the name server in a pod shows to Prometheus."""
        server = self._servers.get(meta.uid(pod))
        return "" if server is None else server.metrics.text()

    def serves(self, address: str) -> bool:
        """Return whether pods of the cluster decide what is answered at an address."""
        if address == self._cluster_dns:
            return self._had_cluster_dns or self._view.service(*_SERVICE) is not None
        if not self._servers:
            return False
        pod = self._view.pod_at(address)
        return (pod is not None and _runs_coredns(pod)) or bool(self._view.services_at(address))

    def answer(
        self, source: Peer, address: str, query: Query, forwards: int = 0, protocol: str = _PROTOCOL
    ) -> Answer | None:
        """Answer a query of a client; None if no server does."""
        target = self._choose(source, address)
        if target is None or target.pod is None:
            return None
        if source is not _NOBODY and not is_allowed(self._view, source, target.peer, target.port, protocol):
            return None
        server = self._servers.get(meta.uid(target.pod))
        if (
            server is None
        ):  # It starts, or another program serves names, whose answers are those of the cluster.
            if _runs_coredns(target.pod):
                return None
            if source is _NOBODY:  # what it knows besides is not known
                return Answer(is_outside=True)
            return dns.resolve(self._view, query.name, query.record_type)
        answer = NameServer(server.corefile, self._view, self._forward).answer(query, forwards)
        server.metrics.note(query, source.address, protocol, answer)
        return answer

    def _choose(self, source: Peer, address: str) -> RouteTarget | None:
        """Return the pod behind an address that answers next, as kube-proxy balances."""
        if address == self._cluster_dns and (service := self._view.service(*_SERVICE)) is not None:
            address = service["spec"].get("clusterIP") or address
        targets = route(self._view, source, address, PORT, _PROTOCOL).targets
        self._turns[address] += 1
        return targets[self._turns[address] % len(targets)] if targets else None

    def _forward(self, address: str, query: Query, forwards: int) -> Answer | None:
        """Return what a server of the cluster answers to another one; None for an address outside of it."""
        is_inside = self._view.pod_at(address) is not None or bool(self._view.services_at(address))
        if not is_inside and address != self._cluster_dns:
            return None
        return self.answer(_NOBODY, address, query, forwards) or Answer(exists=False, code="SERVFAIL")


def _runs_coredns(pod: ReadOnlyTree) -> bool:
    return any(_PROGRAM in (container.get("image") or "") for container in pod["spec"]["containers"])
