"""The run-time keeps nothing of a pod that is removed, whatever clients have done in it."""

import gc

import pytest

from mockube.container_runtime.simulated.runtime import SimulatedRuntime
from tests.support.event_loop import yield_to_loop
from tests.support.kept_objects import places_of
from tests.support.running_containers import Cluster, shell

UID = "uid-that-nothing-else-has"


@pytest.fixture
async def cluster():
    made = Cluster(shell("sleep 1000"), shell("cat", name="live", stdin=True))
    made.pod["metadata"]["uid"] = UID
    async with made.runtime.running():
        yield made


def kept(cluster):
    return [place for place in places_of(cluster.runtime, {UID}) if "_pods" not in place]


async def test_pod_in_which_commands_have_run_leaves_nothing(cluster):
    runtime: SimulatedRuntime = cluster.runtime
    runtime.start_container(cluster.pod, "live", 0)
    await cluster.exec(
        "sh", "-c", "echo a > /tmp/file; unknown-program; head -c 1000000 /dev/zero > /dev/null"
    )
    await runtime.exec_sync(cluster.pod, "c", ["cat", "/tmp/file"], 1)
    runtime.loads.kill(cluster.pod, "c")
    await cluster.advance(2)
    assert kept(cluster)
    runtime.remove_containers(UID)
    runtime.remove_pod(UID)
    await yield_to_loop(50)
    gc.collect()
    assert kept(cluster) == []
    assert runtime.kills(cluster.pod) == {}
