"""The writes that the life of a pod costs: each is one that Kubernetes' own components make, too.

A kubelet writes the status of a starting pod and of one that ends at least once each.
"""

from collections import Counter

import pytest

from tests.support.controllers.deployments import deployment, template
from tests.support.controllers.writes_by_controller import QUIET_SECONDS, recording_cluster

DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
REPLICAS = 8
NODES = 3
STARTED = {"create pods": 1, "create pods/binding": 1, "write pods/status": 1, "create events": 5}
"""Events: SuccessfulCreate, Scheduled, Pulled, Created, Started. The first pod of each node also has Pulling."""
ENDED = {"delete pods": 2, "write pods/status": 1}
"""Deletions: of its controller and of its kubelet."""


@pytest.fixture
async def cluster():
    async with recording_cluster() as started:
        yield started


async def writes_of_pods(manager):
    """Return the writes of pods and events after everything was done, and forget them."""
    await manager.step(QUIET_SECONDS)
    counts = Counter(
        f"{write.verb} {write.resource}"
        for write in manager.transport.done
        if write.resource.partition("/")[0] in ("pods", "events") and write.namespace == "default"
    )
    manager.transport.done.clear()
    return counts


def times(per_pod, count=REPLICAS):
    return Counter({kind: number * count for kind, number in per_pod.items()})


async def test_life_of_a_pod_costs_what_its_components_have_to_write(cluster):
    server, manager = cluster
    await writes_of_pods(manager)
    await server.post(DEPLOYMENTS, deployment(replicas=REPLICAS, template=template("nginx:1.28")))
    created = await writes_of_pods(manager)
    created["create events"] -= 1 + NODES  # of the Deployment, and of the pulls
    assert created == times(STARTED)

    spec = {"template": template("nginx:1.29")}
    await server.patch(f"{DEPLOYMENTS}/web", {"spec": spec}, kind="strategic-merge-patch+json")
    rolled = await writes_of_pods(manager)
    del rolled["create events"]  # one for each step of the Deployment, and two for each pod that ends
    started = {kind: number for kind, number in STARTED.items() if kind != "create events"}
    assert rolled == times(started) + times(ENDED)

    await server.delete(f"{DEPLOYMENTS}/web?propagationPolicy=Background")
    assert await writes_of_pods(manager) == times({**ENDED, "create events": 1})
