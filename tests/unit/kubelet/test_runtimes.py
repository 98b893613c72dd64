"""The run-time of each container, and of the ports of its pod."""

import pytest

from mockube.container_runtime.behavior import CommandResult
from mockube.container_runtime.state import ContainerState
from mockube.kubelet.runtimes import ChosenRuntime
from tests.support.container_runtimes import simulated_runtime

POD = {
    "metadata": {"name": "p", "namespace": "d", "uid": "u"},
    "spec": {"containers": [{"name": "simulated", "image": "nginx"}, {"name": "process", "image": "app"}]},
    "status": {"containerStatuses": [{"name": "simulated", "state": {"running": {}}}]},
}


class Processes:
    """Runs the container `process`, which listens on one port, and records the calls."""

    def __init__(self):
        self.calls = []

    def runs(self, _, name):
        return name == "process"

    def states(self, _):
        return {"process": ContainerState(restarts=1)}

    def may_change(self, _):
        return True

    def start_container(self, _, name, restarts):
        self.calls.append((name, restarts))

    def remove_pod(self, uid):
        self.calls.append(uid)

    async def exec_sync(self, *_, **__):
        return CommandResult(exit_code=7)

    def listener(self, _, port, *, source="127.0.0.1"):
        self.calls.append(source)
        return self.connect if port == 8080 else None

    async def port_forward(self, *_):
        return self.connect

    async def connect(self, _):
        return "to the process"


@pytest.fixture
def processes():
    return Processes()


@pytest.fixture
def runtime(processes, clock):
    return ChosenRuntime(processes, simulated_runtime(clock))


async def test_container_of_a_known_image_runs_as_a_process(runtime, processes):
    assert (await runtime.exec_sync(POD, "process", ["ls"], 1.0)).exit_code == 7
    runtime.start_container(POD, "process", 2)
    runtime.start_container(POD, "simulated", 2)
    assert processes.calls == [("process", 2)]


def test_states_are_those_of_both(runtime):
    assert {*runtime.states(POD)} == {"process"}
    assert all(runtime.runs(POD, name) for name in ("process", "simulated"))
    assert not runtime.runs(POD, "other")


def test_deleted_pod_is_removed_from_processes(runtime, processes):
    runtime.remove_pod("u")
    assert processes.calls == ["u"]


async def test_process_that_listens_receives_the_connections(runtime, processes):
    connect = await runtime.port_forward(POD, 8080)
    assert await connect(None) == "to the process"
    assert runtime.listener(POD, 8080) == processes.connect


def test_process_sees_the_address_of_its_client(runtime, processes):
    runtime.listener(POD, 8080, source="203.0.113.7")
    assert processes.calls == ["203.0.113.7"]


def test_simulated_program_counts_unless_only_processes_do(runtime):
    assert runtime.listener(POD, 80) is not None
    assert runtime.listener(POD, 80, simulated=False) is None
