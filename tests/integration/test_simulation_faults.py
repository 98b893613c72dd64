"""Simulated pods while requests to the server fail: the end state is that of an undisturbed run."""

import itertools

import pytest

from mockube.client.wire import OutcomeUnknown, Response, Unreachable
from mockube.component_base.clock import SteppedClock
from mockube.controller_manager.components import SIMULATED_NODES, SIMULATED_PODS
from mockube.controller_manager.config.settings import Config, Simulation
from mockube.kubelet.node_pools.pool import plain_nodes
from tests.support.controllers.running_manager import running_manager
from tests.support.server.apiserver import running

PODS = "/api/v1/namespaces/default/pods"
RUNNABLES = (SIMULATED_NODES, SIMULATED_PODS)
CONFIG = Config(simulation=Simulation(simulate_nodes=plain_nodes(2)))

SPECS = {
    "service": {},
    "sleeper": {"command": ["sleep", "20"]},
    "failing": {"command": ["sh", "-c", "sleep 5; exit 3"]},
    "crashing": {"command": ["false"]},
}
POLICIES = {"service": "Always", "sleeper": "Never", "failing": "Never", "crashing": "OnFailure"}


async def send_unchanged(send, request, headers):
    return await send(request, headers)


async def loses_the_answer(send, request, headers):
    await send(request, headers)
    raise OutcomeUnknown("the connection was cut")


async def is_unreachable(send, request, headers):
    raise Unreachable("nobody listens")


def answers(code):
    async def answer(send, request, headers):
        return Response(code, None, b"no")

    return answer


class FaultyTransport:
    """A transport on which writes of pods fail, in the order of a sequence of faults."""

    def __init__(self, transport, faults):
        self.transport = transport
        self.faults = itertools.cycle(faults)

    def __getattr__(self, name):
        return getattr(self.transport, name)

    async def send(self, request, headers):
        fault = next(self.faults) if not request.is_read and "/pods/" in request.target else send_unchanged
        return await fault(self.transport.send, request, headers)


async def make(server, name):
    container = {"name": "c", "image": "busybox", **SPECS[name]}
    spec = {"nodeName": "node-1", "restartPolicy": POLICIES[name], "containers": [container]}
    assert (await server.post(PODS, {"metadata": {"name": name}, "spec": spec})).status == 201


def pod_summary(pod):
    """Return the pod without times and versions."""
    status = pod["status"]
    container = status["containerStatuses"][0]
    end = container["state"].get("terminated") or container["lastState"].get("terminated") or {}
    ready = {condition["type"]: condition["status"] for condition in status["conditions"]}
    return status["phase"], container["restartCount"], end.get("exitCode"), *container["state"], ready


async def final_state(faults):
    """Return the final state of all pods, and the writes after the cluster became idle."""
    clock = SteppedClock()
    async with running(clock=clock) as server:
        await server.post("/api/v1/namespaces", {"metadata": {"name": "kube-node-lease"}})
        await server.post("/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "default"}})
        async with running_manager(server, clock, runnables=RUNNABLES, config=CONFIG) as manager:
            manager.transport.transport = FaultyTransport(manager.transport.transport, faults)
            for name in SPECS:
                await make(server, name)
            await manager.step(45)
            ends = {
                pod["metadata"]["name"]: pod_summary(pod) for pod in (await server.get(PODS)).body["items"]
            }
            await server.delete(f"{PODS}/service")
            await manager.step(5)
            left = [pod["metadata"]["name"] for pod in (await server.get(PODS)).body["items"]]
            written = len(manager.transport.writes)
            await manager.step(5)
            quiet = [target for _, target in manager.transport.writes[written:] if "/pods/" in target]
            return ends, left, quiet


@pytest.fixture
async def undisturbed_end():
    return await final_state([send_unchanged])


@pytest.mark.parametrize(
    "faults",
    [
        pytest.param([loses_the_answer, send_unchanged], id="lost responses"),
        pytest.param([is_unreachable, is_unreachable, send_unchanged], id="connection refused"),
        pytest.param([answers(500), answers(409), answers(503), send_unchanged], id="refusals"),
        pytest.param([send_unchanged, answers(429), loses_the_answer, answers(409)], id="all faults"),
    ],
)
async def test_disturbed_simulation_reaches_same_state(faults, undisturbed_end):
    ends, left, quiet = undisturbed_end
    assert ends["sleeper"][:3] == ("Succeeded", 0, 0)
    assert ends["failing"][:3] == ("Failed", 0, 3)
    assert ends["crashing"][:3] == ("Running", 3, 1)
    assert left == ["crashing", "failing", "sleeper"]
    assert quiet == []
    assert await final_state(faults) == undisturbed_end
