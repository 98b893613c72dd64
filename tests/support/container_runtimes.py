"""Container run-times without a server: the kubelet's side of their contract is made of fakes."""

import asyncio
from collections import defaultdict
from contextlib import asynccontextmanager, closing, contextmanager
from datetime import timedelta
from pathlib import Path

from mockube.apimachinery import meta
from mockube.apimachinery.timestamps import format_time
from mockube.component_base.clock import RealClock
from mockube.container_runtime.config.environment import References
from mockube.container_runtime.kwok.runtime import KwokRuntime
from mockube.container_runtime.process.images import image_map
from mockube.container_runtime.process.runtime import ProcessRuntime, ProcessServices
from mockube.container_runtime.runtime import RuntimeEvents
from mockube.container_runtime.simulated.runtime import SimulatedRuntime, SimulationContext
from mockube.container_runtime.streams import STDIN, InputStream, StreamsClosed, TerminalSizes
from tests.support.event_loop import WAIT_TIMEOUT
from tests.support.images import IMAGES

IMAGE = "busybox"


class Objects:
    """Nothing that a container refers to exists."""

    def __init__(self, pod=None):
        self.pod = pod

    async def load_shared(self, *_):
        return References()

    async def load(self, _):
        return References()

    def mount_problem(self, *_):
        return "", ""

    def identity_problem(self, *_):
        return ""

    def environment_problem(self, *_):
        return ""


class Pods:
    """The latest versions of pods, which a test sets."""

    def __init__(self):
        self._pods = {}
        self._events = defaultdict(set)

    def set(self, pod):
        self._pods[meta.uid(pod)] = pod
        self.wake(pod)

    def wake(self, pod):
        for event in self._events[meta.uid(pod)]:
            event.set()

    def latest(self, pod):
        return self._pods.get(meta.uid(pod))

    @contextmanager
    def subscribe(self, pod):
        event = asyncio.Event()
        self._events[meta.uid(pod)].add(event)
        yield event
        self._events[meta.uid(pod)].discard(event)


class NoChecks:
    """A run without probes and hooks is ready at once."""

    def __init__(self, run, _):
        self._run = run

    async def run(self, _):
        self._run.update_state(started=RealClock().now(), passed_startup=True, is_ready=True)

    async def run_pre_stop_hook(self, _):
        return 0.0


class NoEntries:
    """There are no objects of kwok."""

    async def entry(self, *_):
        return None


class ClientStreams:
    """The streams of a client that records what it receives."""

    def __init__(self, data=b"", *, has_input=False):
        self.stdin = InputStream() if has_input else None
        self.sizes = TerminalSizes()
        self.departure = asyncio.Event()
        self.received = defaultdict(bytes)
        self._data = data
        self._changed = asyncio.Event()

    async def send_input(self):
        await self.stdin.feed(self._data)
        await self.stdin.end()

    async def write(self, stream, data):
        if self.departure.is_set():
            raise StreamsClosed
        assert stream != STDIN
        self.received[stream] += data
        self._changed.set()

    async def until(self, text, stream=1):
        async with asyncio.timeout(WAIT_TIMEOUT):
            while text not in self.received[stream]:
                self._changed.clear()
                await self._changed.wait()


def simulated_runtime(clock=None, *, events=None, pods=None, images=IMAGES):
    context = SimulationContext(
        images=images,
        clock=clock or RealClock(),
        events=events or RuntimeEvents(),
        objects=Objects(),
        pods=pods or Pods(),
        view=None,
        api_server=None,
    )
    return SimulatedRuntime(context)


def process_runtime(events, *, logs=None, uids=frozenset()):
    async def pod_uids():
        return uids

    services = ProcessServices(
        clock=RealClock(),
        events=events,
        server="https://127.0.0.1:1",
        objects_of=Objects,
        record_event=lambda *_: None,
        checks=NoChecks,
        volumes=lambda: simulated_runtime().files,
        logs=logs,
        pod_uids=pod_uids,
    )
    return ProcessRuntime(image_map({IMAGE: {}}, Path()), services)


class Machine:
    """One run-time, and the kubelet's view of the pods on it: their statuses follow the states of the containers."""

    def __init__(self, name, **process_files):
        self.events, self.pods = RuntimeEvents(), Pods()
        if name == "process":
            self.runtime = process_runtime(self.events, **process_files)
        else:
            self.runtime = simulated_runtime(events=self.events, pods=self.pods)
        if name == "kwok":
            self.runtime = KwokRuntime(self.runtime, NoEntries(), self.pods, RealClock())
        self.changes = 0
        self._changed = asyncio.Event()
        self.events.on_change(self._on_change)
        self.events.on_output(self._on_change)

    def _on_change(self, pod):
        self.changes += 1
        self._changed.set()
        self.pods.wake(pod)

    def pod(self, script, *, uid="uid-1", **fields):
        """Return a pod whose container runs a script in real time."""
        spec = {"name": "c", "image": IMAGE, "command": ["sh", "-c", script], "stdin": True, **fields}
        tree = {
            "metadata": {"name": "p", "namespace": "ns", "uid": uid},
            "spec": {"containers": [spec], "restartPolicy": "Always"},
            "status": {},
        }
        self.pods.set(tree)
        return tree

    async def start(self, pod, restarts=0):
        """Start a run; return the pod when it runs."""
        self.runtime.start_container(pod, "c", restarts)
        return await self.until(pod, lambda state: state.restarts == restarts and state.started)

    async def until(self, pod, condition):
        """Wait for a state of the container; return the pod with its status."""
        async with asyncio.timeout(WAIT_TIMEOUT):
            while not condition(self.state(pod)):
                self._changed.clear()
                await self._changed.wait()
        return self._with_status(pod)

    async def until_exit(self, pod):
        return await self.until(pod, lambda state: state.exit)

    def state(self, pod):
        return self.runtime.states(pod)["c"]

    def _with_status(self, pod):
        state = self.state(pod)
        started = format_time(state.started)
        if state.exit is None:
            value = {"running": {"startedAt": started}}
        else:
            end = {"startedAt": started, "finishedAt": format_time(state.exit.at)}
            value = {"terminated": {**end, "exitCode": state.exit.code}}
        status = {"name": "c", "state": value, "restartCount": state.restarts}
        tree = {**pod, "status": {"containerStatuses": [status]}}
        self.runtime.update_pod(tree)
        self.pods.set(tree)
        return tree


@asynccontextmanager
async def running_machine(name, **process_files):
    machine = Machine(name, **process_files)
    async with machine.runtime.running():
        yield machine


async def lines_of(machine, pod, run):
    with closing(await machine.runtime.logs(pod, "c", run)) as source:
        until, lines = run.started + timedelta(hours=1), []
        while source.is_behind(until):
            lines += source.advance(until)
        return [(line.stream, line.text) for line in lines]
