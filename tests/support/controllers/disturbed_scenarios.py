"""Scenarios of workloads with a disturbed manager. The test's kubelet acts only while the manager is idle."""

from mockube.apimachinery import conditions, meta
from mockube.component_base.clock import SteppedClock
from mockube.controller_manager.controllers.serviceaccount.controller import SERVICE_ACCOUNT
from tests.support.controllers.running_manager import running_manager
from tests.support.event_loop import yield_to_loop
from tests.support.server.apiserver import running

NAMESPACE = "/api/v1/namespaces/default"
PODS = f"{NAMESPACE}/pods"
CLAIMS = f"{NAMESPACE}/persistentvolumeclaims"
APPS = "/apis/apps/v1/namespaces/default"
REVISIONS = f"{APPS}/controllerrevisions"
MAX_STEP = 1.0
"""The longest step of the clock, in seconds."""


class Scenario:
    """`steps` are taken one by one, each once the state is as expected."""

    path = ""
    """The path of the object under test."""
    controllers = ()
    watched = ()
    """The watched resources, by name."""
    flags = ()
    counts = ("replicas", "readyReplicas", "updatedReplicas")
    """The counters of its status that must equal the number of replicas."""

    def __init__(self, server):
        self.server = server
        self.pods = set()
        """The uids of all pods that ever existed."""
        self.maximum = 0
        """The largest number of pods at one time."""
        self._steps = iter(self.steps())

    def steps(self):
        raise NotImplementedError

    async def check_end(self):
        raise NotImplementedError

    async def advance(self):
        """Run the kubelet, or the next step once the state is as expected; return False at the end."""
        if await self.run_pods() or not await self.is_settled():
            return True
        step = next(self._steps, None)
        if step is not None:
            await step()
        return step is not None

    # --- the steps

    async def create(self, body):
        answer = await self.server.post(self.path.rpartition("/")[0], body)
        assert answer.status == 201, answer.body

    def change(self, **spec):
        async def step():
            answer = await self.server.patch(self.path, {"spec": spec})
            assert answer.status == 200, answer.body

        return step

    # --- state

    async def items(self, path):
        return (await self.server.get(path)).body["items"]

    async def undeleted(self, path):
        return [item for item in await self.items(path) if not meta.is_deleting(item)]

    async def is_settled(self):
        """No new pod has appeared since the kubelet ran, and the status has the expected values."""
        if {*map(meta.uid, await self.items(PODS))} - self.pods:
            return False
        answer = await self.server.get(self.path)
        return answer.status == 404 or self.is_rolled_out(answer.body)

    def is_rolled_out(self, found):
        status = found.get("status") or {}
        counts = {status.get(field) for field in self.counts}
        seen = status.get("observedGeneration") == found["metadata"]["generation"]
        return seen and counts == {found["spec"]["replicas"]}

    # --- the kubelet

    async def run_pods(self):
        """Start pending pods and remove terminating ones; return whether there were any."""
        items = await self.items(PODS)
        self.pods |= {*map(meta.uid, items)}
        self.maximum = max(self.maximum, sum(not meta.is_deleting(pod) for pod in items))
        return any([await self._update_pod_status(pod) for pod in items])

    async def _update_pod_status(self, pod):
        path = f"{PODS}/{meta.name(pod)}"
        if meta.is_deleting(pod):
            await self.server.delete(path, {"gracePeriodSeconds": 0})
            return True
        status = _next_kubelet_status(pod)
        if status is not None:
            body = {"status": status}
            answer = await self.server.patch(f"{path}/status", body, kind="strategic-merge-patch+json")
            assert answer.status == 200, answer.body
        return status is not None


def _next_kubelet_status(pod):
    """Return the status that a kubelet would write, if it differs: containers running, readiness gates considered."""
    gates = pod["spec"].get("readinessGates", ())
    ready = all(conditions.is_true(pod, gate["conditionType"]) for gate in gates)
    running_images = {
        container["name"]: container["image"] for container in pod["status"].get("containerStatuses", ())
    }
    desired_images = {container["name"]: container["image"] for container in pod["spec"]["containers"]}
    if (conditions.is_true(pod, "Ready"), running_images) == (ready, desired_images):
        return None
    return {
        "phase": "Running",
        "conditions": [{"type": "Ready", "status": str(ready)}],
        "containerStatuses": [
            {"name": name, "image": image, "imageID": f"id-{image}", "ready": ready, "restartCount": 0}
            for name, image in desired_images.items()
        ],
    }


async def run_scenario(kind, disturbance_of):
    """Run the scenario of a kind to its end, and replace a killed manager; return how many were killed."""
    clock, deaths = SteppedClock(), 0
    async with running(*kind.flags, clock=clock) as server:
        scenario, disturbance = kind(server), disturbance_of(server, clock)
        controllers = [SERVICE_ACCOUNT, *kind.controllers]
        while await _lives(scenario, disturbance, clock, controllers):
            disturbance.revive()
            deaths += 1
    return deaths


async def _lives(scenario, disturbance, clock, controllers):
    """Run one manager until it is killed or the scenario ends; return whether it was killed."""
    server = scenario.server
    async with running_manager(server, clock, controllers=controllers, disturbance=disturbance) as manager:
        await _run_to_end(scenario, manager, disturbance)
        if not disturbance.is_dead:
            await scenario.check_end()
    return disturbance.is_dead


async def _run_to_end(scenario, manager, disturbance):
    for _ in range(4000):
        if disturbance.is_dead:
            return
        await yield_to_loop(10)
        if manager.transport.in_flight == 0 and not await scenario.advance():
            return
        if (due := manager.clock.next_due()) is not None:
            manager.clock.advance(min(due, MAX_STEP))
    raise AssertionError("the scenario does not end")
