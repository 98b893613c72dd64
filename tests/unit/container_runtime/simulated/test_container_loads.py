"""What containers use is computed from their programs, their requests and their commands, when it is read."""

import asyncio

import pytest

from mockube.apimachinery.timestamps import format_time
from mockube.component_base.clock import SteppedClock
from mockube.container_runtime.records import Records
from mockube.container_runtime.runtime import ExecRequest
from mockube.container_runtime.simulated.client_pace import CLIENT, ClientPace
from mockube.container_runtime.simulated.container_loads import ContainerLoads
from mockube.container_runtime.simulated.cpu_record import WINDOW, CpuRecord
from tests.support.container_runtimes import ClientStreams, Pods, simulated_runtime
from tests.support.event_loop import yield_to_loop
from tests.support.images import IMAGES

MEBIBYTE = 1 << 20
HPA_EXAMPLE = {"image": "registry.k8s.io/hpa-example", "resources": {"limits": {"cpu": "500m"}}}


def running(clock, *argv, **fields):
    """Return a pod with one container that runs since now."""
    command = {"command": list(argv)} if argv else {}
    described = {"name": "c", "image": "busybox", **command, **fields}
    state = {"running": {"startedAt": format_time(clock.now())}}
    return {
        "metadata": {"name": "p", "namespace": "ns", "uid": "u"},
        "spec": {"containers": [described], "nodeName": "n"},
        "status": {"containerStatuses": [{"name": "c", "restartCount": 0, "state": state}]},
    }


def stats(loads, pod):
    return loads.stats(pod, pod["spec"]["containers"][0])


@pytest.mark.parametrize(
    ("argv", "fields", "cores"),
    [
        (("sh", "-c", "while true; do true; done"), {}, 1.0),
        (("stress", "--cpu", "2"), {"image": "polinux/stress", "resources": {"limits": {"cpu": "1"}}}, 1.0),
        (("sleep", "1000"), {}, 0.0),
        ((), {"image": "registry.k8s.io/hpa-example"}, 0.0),
    ],
)
def test_cpu_of_a_program_is_what_it_keeps_busy_up_to_its_limit(argv, fields, cores):
    clock = SteppedClock()
    pod = running(clock, *argv, **fields)
    clock.advance(60)
    assert stats(ContainerLoads(IMAGES, Records(), clock), pod).cores == cores


def test_program_that_is_unknown_has_no_stats():
    clock = SteppedClock()
    loads = ContainerLoads(IMAGES, Records(), clock)
    assert stats(loads, running(clock, image="example.org/app")) is None
    assert stats(loads, running(clock, "/app/server", image="example.org/app")) is None


def test_memory_of_a_server_is_that_of_its_image():
    clock = SteppedClock()
    pod = running(clock, image="registry.k8s.io/hpa-example")
    clock.advance(60)
    assert stats(ContainerLoads(IMAGES, Records(), clock), pod).memory == 10 * MEBIBYTE


async def requests_for(loads, clock, pod, seconds, *, step=None):
    """Send requests with a pause of 10 ms for some time; the clock advances to each timer, or by steps."""
    pace = ClientPace(clock, CpuRecord())

    async def send():
        CLIENT.set(pace)
        while True:
            await loads.serve_request(pod, pod["spec"]["containers"][0])
            with pace.waiting(0.01, 0.0):
                await clock.sleep(0.01)

    task = asyncio.create_task(send())
    until = clock.monotonic() + seconds
    while clock.monotonic() < until:
        await yield_to_loop()
        clock.advance(step or max(clock.next_due() or 0.0, 0.001))
    task.cancel()


@pytest.mark.parametrize("step", [None, 2.0])
async def test_requests_use_cpu_up_to_the_limit(step):
    clock = SteppedClock()
    loads, pod = ContainerLoads(IMAGES, Records(), clock), running(clock, **HPA_EXAMPLE)
    await requests_for(loads, clock, pod, 40, step=step)
    assert stats(loads, pod).cores == pytest.approx(0.51, abs=0.02)


@pytest.mark.parametrize("step", [None, 2.0])
async def test_requests_of_one_client_are_as_many_as_it_has_time_for(step):
    clock = SteppedClock()
    loads, pod = ContainerLoads(IMAGES, Records(), clock), running(clock, image="registry.k8s.io/hpa-example")
    await requests_for(loads, clock, pod, 40, step=step)
    assert stats(loads, pod).cores == pytest.approx(0.05 / 0.0725, abs=0.05)


async def test_usage_falls_to_that_at_rest_after_the_last_request():
    clock = SteppedClock()
    loads, pod = ContainerLoads(IMAGES, Records(), clock), running(clock, **HPA_EXAMPLE)
    await requests_for(loads, clock, pod, 40)
    clock.advance(WINDOW + 1)
    assert stats(loads, pod).cores == 0.0


def test_first_requests_count_after_a_whole_window():
    record = CpuRecord()
    for second in range(30):
        record.add(100.0 + second, 100.9 + second, 0.5)
        assert record.cores(101.0 + second) == (0.0 if second < WINDOW - 1 else pytest.approx(0.5))


async def test_command_of_a_client_that_fills_the_memory_kills_its_container():
    clock, pods = SteppedClock(), Pods()
    runtime = simulated_runtime(clock, pods=pods)
    pod = running(clock, "sleep", "1000", resources={"limits": {"memory": "0"}})
    pod["spec"]["containers"][0]["resources"]["limits"]["memory"] = "1100k"
    pods.set(pod)
    command = await runtime.exec(pod, "c", ExecRequest(command=["tail", "/dev/zero"]))
    task = asyncio.create_task(command(ClientStreams()))
    while not task.done():
        await yield_to_loop()
        clock.advance(1)
    assert task.result() == 137
    await yield_to_loop()
    end = runtime.states(pod)["c"].exit
    assert (runtime.states(pod)["c"].restarts, end.code, end.reason) == (0, 137, "OOMKilled")


def stress(size, seconds):
    return ["stress", "--vm", "1", "--vm-bytes", size, "--vm-keep", "--timeout", f"{seconds}s"]


async def results(runtime, clock, pod, *commands):
    """Run commands of clients, each one second after the previous one has begun; return their exit codes."""
    tasks = []
    for argv in commands:
        command = await runtime.exec(pod, "c", ExecRequest(command=argv))
        tasks.append(asyncio.create_task(command(ClientStreams())))
        await yield_to_loop()
        clock.advance(1)
    while not all(task.done() for task in tasks):
        await yield_to_loop()
        clock.advance(1)
    return [task.result() for task in tasks]


@pytest.mark.parametrize(
    ("fields", "commands", "codes"),
    [
        pytest.param({}, [stress("60M", 5), stress("60M", 5)], [0, 137], id="commands at the same time"),
        pytest.param(
            {},
            [stress("60M", 1), ["sleep", "9"], stress("60M", 5)],
            [0, 0, 0],
            id="commands one after another",
        ),
        pytest.param(
            {"command": stress("60M", 1000), "stdin": True},
            [stress("60M", 5)],
            [0],
            id="a computed run that is none",
        ),
        pytest.param({"command": stress("60M", 1000)}, [stress("60M", 5)], [137], id="a computed run"),
    ],
)
async def test_command_has_the_memory_that_the_rest_of_its_container_does_not_use(fields, commands, codes):
    clock, pods = SteppedClock(), Pods()
    runtime = simulated_runtime(clock, pods=pods)
    pod = running(
        clock,
        image="polinux/stress",
        resources={"limits": {"memory": "100Mi"}},
        **{"command": ["sleep", "1000"], **fields},
    )
    pods.set(pod)
    clock.advance(10)
    assert await results(runtime, clock, pod, *commands) == codes


async def test_run_leaves_no_memory_to_the_next_one_that_was_killed_for_it():
    clock, pods = SteppedClock(), Pods()
    runtime = simulated_runtime(clock, pods=pods)
    pod = running(clock, "tail", "/dev/zero", stdin=True, resources={"limits": {"memory": "100Mi"}})
    pods.set(pod)
    async with runtime.running():
        runtime.start_container(pod, "c", 0)
        while runtime.states(pod)["c"].exit is None:
            await yield_to_loop()
            clock.advance(1)
    assert runtime.states(pod)["c"].exit.reason == "OOMKilled"
    assert runtime.container_stats(pod, "c").memory == MEBIBYTE


async def test_file_of_the_cgroup_has_the_memory_in_use():
    clock, pods = SteppedClock(), Pods()
    runtime = simulated_runtime(clock, pods=pods)
    pod = running(clock, "stress", "--vm", "1", "--vm-bytes", "50M", "--vm-keep", image="polinux/stress")
    clock.advance(10)
    command = await runtime.exec(pod, "c", ExecRequest(command=["cat", "/sys/fs/cgroup/memory.current"]))
    streams = ClientStreams()
    assert await command(streams) == 0
    assert streams.received[1] == b"%d\n" % (51 * MEBIBYTE)


async def test_pod_is_slow_once_its_answers_take_as_long_as_a_probe_waits():
    clock, slow = SteppedClock(), []
    pod = running(clock, **HPA_EXAMPLE)
    loads = ContainerLoads(IMAGES, Records(), clock, on_slow=slow.append)
    container = pod["spec"]["containers"][0]
    tasks = [asyncio.create_task(loads.serve_request(pod, container)) for _ in range(9)]
    await yield_to_loop()
    assert not loads.is_slow(pod)
    assert loads.serve_probe(pod, container) == pytest.approx(10 * 0.05 / 0.51)
    tasks += [asyncio.create_task(loads.serve_request(pod, container)) for _ in range(2)]
    await yield_to_loop()
    assert (loads.is_slow(pod), slow) == (True, [pod])
    for task in tasks:
        task.cancel()
