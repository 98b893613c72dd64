"""The run-time of each container, and of the ports of its pod."""

import pytest

from mockube.container_runtime.behavior import CommandResult
from mockube.container_runtime.image_service import StoredImage
from mockube.container_runtime.state import ContainerState
from mockube.kubelet.runtimes import ChosenImages, ChosenRuntime
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


class Calls:
    """A run-time that returns its name for every call, and records the calls; `answers` are the exceptions."""

    def __init__(self, name, calls, **answers):
        self._name, self._calls, self._answers = name, calls, answers

    def runs(self, _, name):
        return name == self._name

    def __getattr__(self, method):
        def call(*_, **__):
            self._calls.append(f"{self._name}.{method}")
            return self._answers.get(method, self._name)

        async def call_later(*_, **__):
            return call()

        return call_later if method in {"exec_sync", "probe_port", "exec", "logs", "port_forward"} else call


CALLS = {
    **{
        method: [f"{{}}.{method}"]
        for method in [
            "container_stats",
            "live_handlers",
            "start_container",
            "stop_container",
            "exec_sync",
            "probe_port",
            "exec",
            "attach",
            "logs",
        ]
    },
    **{
        method: [f"simulated.{method}"]
        for method in ["disk_usage", "node_disk_use", "node_path_type", "node_files", "add_node_files"]
    },
    **{
        method: [f"process.{method}", f"simulated.{method}"]
        for method in ["update_pod", "remove_containers", "remove_pod"]
    },
    **{method: [f"simulated.{method}", f"process.{method}"] for method in ("states", "kills")},
}
ARGUMENTS = {
    "live_handlers": lambda name: (POD, {"name": name}),
    "start_container": lambda name: (POD, name, 0),
    "stop_container": lambda name: (POD, name, 0.0),
    "exec_sync": lambda name: (POD, name, [], 1.0),
    "probe_port": lambda name: (POD, name, None),
    "exec": lambda name: (POD, name, None),
    "logs": lambda name: (POD, name, None),
    "container_stats": lambda name: (POD, name),
    "attach": lambda name: (POD, name),
    "node_disk_use": lambda _: ("node",),
    "node_path_type": lambda _: ("node", "/"),
    "node_files": lambda _: ("node", "/"),
    "add_node_files": lambda _: ("node", {}),
}


@pytest.mark.parametrize("container", ["process", "simulated"])
@pytest.mark.parametrize("method", CALLS)
async def test_call_goes_to_the_run_time_of_the_container_or_to_both(method, container):
    calls = []
    answers = {"states": {"process": 1}, "kills": {"process": 1}}
    both = (Calls("process", calls, **answers), Calls("simulated", calls, states={"process": 0}, kills={}))
    arguments = ARGUMENTS.get(method, lambda _: (POD,))(container)
    named = {"has_terminal": False} if method == "attach" else {}
    answer = getattr(ChosenRuntime(*both), method)(*arguments, **named)
    answer = await answer if hasattr(answer, "__await__") else answer
    assert calls == [each.format(container) for each in CALLS[method]]
    if len(calls) == 1 and answer is not None:
        assert answer == calls[0].partition(".")[0]
    elif method in answers:
        assert answer == {"process": 1}


@pytest.mark.parametrize(
    ("process", "simulated", "expected"),
    [(False, False, False), (True, False, True), (False, True, True)],
)
def test_pod_may_change_if_one_of_its_run_times_changes_it(process, simulated, expected):
    runtime = ChosenRuntime(
        Calls("process", [], may_change=process), Calls("simulated", [], may_change=simulated)
    )
    assert runtime.may_change(POD) is expected


async def test_port_without_a_process_belongs_to_the_simulation():
    calls = []
    runtime = ChosenRuntime(Calls("process", calls, listener=None), Calls("simulated", calls))
    assert await runtime.port_forward(POD, 80) == "simulated"
    assert runtime.listener(POD, 80) == "simulated"
    only_processes = {"spec": {"containers": [{"name": "process"}]}}
    assert runtime.listener(only_processes, 80) is None


async def test_run_times_run_together():
    order = []

    class Running:
        def __init__(self, name):
            self.name = name

        def running(self):
            return self

        async def __aenter__(self):
            order.append(f"{self.name} begins")

        async def __aexit__(self, *_):
            order.append(f"{self.name} ends")

    async with ChosenRuntime(Running("process"), Running("simulated")).running():
        order.append("both run")
    assert order == ["simulated begins", "process begins", "both run", "process ends", "simulated ends"]


def test_images_of_processes_go_before_simulated_ones():
    calls = []
    image = StoredImage(names=("app",))
    processes = Calls("process", calls, image_status=None, list_images=[image])
    images = ChosenImages(processes, Calls("simulated", calls, list_images=["other"]))
    assert images.list_images("node") == [image, "other"]
    assert images.image_status("node", "nginx") == "simulated"
    assert images.pull_image("nginx", has_credentials=True) == "simulated"
    del calls[:]
    processes._answers["image_status"] = image
    assert images.image_status("node", "app") == image
    assert images.pull_image("app", has_credentials=True) == image
    images.add_image("node", image)
    images.remove_image("node", ["app"])
    images.forget_node("node")
    assert calls == [
        "process.image_status",
        "process.image_status",
        "simulated.add_image",
        "simulated.remove_image",
        "simulated.forget_node",
    ]
