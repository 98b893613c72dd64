"""The number of writes of each controller in a scenario is within the range of the real controllers.

The recordings hold the minimum and maximum over several runs of a real cluster: creations and deletions must be exact,
and updates not above the maximum. The clock is stepped, so the speed of the machine does not matter.
"""

import pytest

from tests.conformance.golden import golden
from tests.support.controllers.writes_by_controller import QUIET_SECONDS, count_writes, recording_cluster
from tests.support.recorded.recordings import cases

CALLED = {
    "deployment-controller": "deployment",
    "replicaset-controller": "replicaset",
    "statefulset-controller": "statefulset",
    "generic-garbage-collector": "garbage",
    "daemon-set-controller": "daemonset",
    "job-controller": "job",
    "endpointslice-controller": "endpointslice",
    "endpoint-controller": "endpoint",
    "replication-controller": "replication",
    "horizontal-pod-autoscaler": "autoscaler",
    "disruption-controller": "disruption",
}
"""The accounts of the controllers, as the recordings name them."""
NAMESPACE = "trail"


@pytest.fixture
async def cluster():
    # The nodes of the recordings wrote as kwok's: not the status of a pod that has ended, which kubelets and these nodes write.
    async with recording_cluster(NAMESPACE) as started:
        yield started


@pytest.mark.parametrize("scenario", cases("trails/*.jsonl"))
async def test_controllers_write_no_more_than_recorded(scenario, cluster):
    server, manager = cluster
    for number, step in enumerate(scenario["steps"]):
        manager.transport.done.clear()
        await send_recorded_request(server, step["request"])
        await manager.step(QUIET_SECONDS)
        found = count_writes(manager.transport.done, NAMESPACE, CALLED)
        assert not [*budget_violations(step["budget"], found)], f"step {number}"


async def send_recorded_request(server, request):
    request = golden.fill(request, NAMESPACE, [])
    path = request["path"]
    match request["method"]:
        case "POST":
            answer = await server.post(path, request["body"])
        case "PATCH":
            kind = request["headers"]["Content-Type"].removeprefix("application/")
            answer = await server.patch(path, request["body"], kind=kind)
        case "DELETE":
            answer = await server.delete(path)
    assert answer.status < 300, answer.body


def budget_violations(budget, found):
    """Return the counts outside the budget."""
    for kind in sorted({*budget, *found}):
        minimum, maximum = budget.get(kind, (0, 0))
        is_exact = kind.split()[1] in ("create", "delete")
        if found[kind] > maximum or (is_exact and found[kind] < minimum):
            yield f"{kind}: {found[kind]} (real: {minimum} to {maximum})"
