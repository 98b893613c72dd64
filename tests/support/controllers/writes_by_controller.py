"""Count a manager's writes by the controller that made them, as a server's audit log would."""

from collections import Counter
from contextlib import asynccontextmanager
from dataclasses import dataclass

from mockube.controller_manager import catalog
from mockube.controller_manager.config.settings import Config, Simulation
from mockube.kubelet.node_pools.pool import plain_nodes
from tests.support.controllers.running_manager import CountingTransport, running_cluster

QUIET_SECONDS = 90
"""Seconds in which the cluster becomes idle."""
_LEFT_OUT = (catalog.SIMULATED_STORAGE_CLASS, catalog.SERVICE_LOAD_BALANCERS, catalog.ROOT_CA)
_VERBS = {"POST": "create", "PUT": "write", "PATCH": "write", "DELETE": "delete"}


@dataclass(frozen=True)
class Write:
    account: str
    verb: str
    namespace: str
    resource: str
    """The resource with its subresource, as pods/status."""


class WriteRecorder(CountingTransport):
    """Also records the user of each write that the server carried out."""

    def __init__(self, transport):
        super().__init__(transport)
        self.done = []

    async def send(self, request, headers):
        answer = await super().send(request, headers)
        if not request.is_read and answer.status < 300:
            self.done.append(_write(request, headers["User-Agent"]))
        return answer


@asynccontextmanager
async def recording_cluster(*namespaces):
    """An idle server with three nodes and some namespaces, and its manager of Kubernetes' controllers, which records writes."""
    manager = {
        "controllers": [one for one in catalog.CONTROLLERS if not one.needs],
        "runnables": [one for one in catalog.RUNNABLES if one not in _LEFT_OUT],
        "config": Config(simulation=Simulation(simulate_nodes=plain_nodes(3))),
        "counting": WriteRecorder,
    }
    async with running_cluster(namespaces=("kube-node-lease", *namespaces), **manager) as (server, started):
        await started.step(QUIET_SECONDS)
        yield server, started


def _write(request, agent):
    path = request.target.partition("?")[0].strip("/").split("/")
    rest = path[2:] if path[0] == "api" else path[3:]
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 2:
        _, namespace, *rest = rest
    resource, _, *subresource = (*rest, "")
    return Write(
        agent.rpartition("/")[2].rpartition(":")[2],
        _VERBS[request.method],
        namespace,
        "/".join(part for part in (resource, *subresource) if part),
    )


def count_writes(writes, namespace, called):
    """Count the writes of each kind in a namespace, by the accounts' short names; events are not counted."""
    return Counter(
        f"{called[write.account]} {write.verb} {write.resource}"
        for write in writes
        if write.namespace == namespace and write.account in called and write.resource != "events"
    )
