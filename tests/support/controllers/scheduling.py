"""A server with a scheduler, and what tests of decisions ask of it."""

import itertools
from contextlib import asynccontextmanager

from mockube.component_base.clock import SteppedClock
from mockube.controller_manager.components import KUBE_SCHEDULER
from mockube.controller_manager.controllers.persistentvolume.controller import PERSISTENT_VOLUME_BINDER
from mockube.controller_manager.controllers.serviceaccount.controller import SERVICE_ACCOUNT
from tests.support.controllers.running_manager import running_manager
from tests.support.server.apiserver import running

PODS = "/api/v1/namespaces/default/pods"
NODES = "/api/v1/nodes"
NO_HELP = "preemption: 0/{0} nodes are available: {0} Preemption is not helpful for scheduling."


class SchedulingScenario:
    def __init__(self, server, manager):
        self.server = server
        self.manager = manager
        self.numbers = itertools.count(1)

    async def node(self, name, *, cpu="4", pods="110", taints=(), unschedulable=False, **labels):
        spec = {"taints": list(taints), "unschedulable": unschedulable}
        labels = {"kubernetes.io/hostname": name, **labels}
        await self.post(NODES, {"metadata": {"name": name, "labels": labels}, "spec": spec})
        allocatable = {"cpu": cpu, "memory": "16Gi", "pods": pods}
        answer = await self.server.patch(
            f"{NODES}/{name}/status", {"status": {"capacity": allocatable, "allocatable": allocatable}}
        )
        assert answer.status == 200, answer.body
        # Nodes begin with a taint for not being ready.
        await self.server.patch(f"{NODES}/{name}", {"spec": {"taints": list(taints) or None}})

    async def pod(self, name, *, cpu=None, labels=None, port=None, **spec):
        container = {"name": "c", "image": "i"}
        container |= {"resources": {"requests": {"cpu": cpu}}} if cpu else {}
        container |= {"ports": [{"containerPort": port, "hostPort": port}]} if port else {}
        metadata = {"name": name, "labels": labels or {"app": "web"}}
        await self.post(PODS, {"metadata": metadata, "spec": {"containers": [container], **spec}})
        await self.manager.settle()
        return await self.place(name)

    async def post(self, path, body):
        answer = await self.server.post(path, body)
        assert answer.status == 201, answer.body
        return answer.body

    async def place(self, name):
        return (await self.server.get(f"{PODS}/{name}")).body["spec"].get("nodeName")

    async def refusal(self, name):
        pod = (await self.server.get(f"{PODS}/{name}")).body
        (condition,) = [one for one in pod["status"]["conditions"] if one["type"] == "PodScheduled"]
        assert (condition["status"], condition["reason"]) == ("False", "Unschedulable")
        return condition["message"]

    async def events(self, reason):
        items = (await self.server.get("/apis/events.k8s.io/v1/namespaces/default/events")).body["items"]
        return [one for one in items if one["reason"] == reason]


@asynccontextmanager
async def scheduling():
    clock = SteppedClock()
    async with (
        running(clock=clock) as server,
        running_manager(
            server, clock, controllers=[SERVICE_ACCOUNT, PERSISTENT_VOLUME_BINDER], runnables=[KUBE_SCHEDULER]
        ) as manager,
    ):
        yield SchedulingScenario(server, manager)
