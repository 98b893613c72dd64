"""Pods of simulated containers that run since now, without a server: what clients execute in them, and time that a test lets pass."""

from mockube.apimachinery.timestamps import format_time, parse_time
from mockube.component_base.clock import SteppedClock
from mockube.container_runtime.runs import ContainerRun
from mockube.container_runtime.runtime import ExecRequest
from mockube.container_runtime.simulated.runtime import SimulatedRuntime
from tests.support.container_runtimes import ClientStreams, Pods, simulated_runtime
from tests.support.event_loop import yield_to_loop


class Cluster:
    """A pod whose containers run since now, and their run-time."""

    def __init__(self, *containers, **spec):
        self.clock, pods = SteppedClock(), Pods()
        self.runtime: SimulatedRuntime = simulated_runtime(self.clock, pods=pods)
        self.started = format_time(self.clock.now())
        state = {"running": {"startedAt": self.started}}
        self.pod = {
            "metadata": {"name": "p", "namespace": "ns", "uid": "u"},
            "spec": {"containers": list(containers), "nodeName": "n", **spec},
            "status": {
                "containerStatuses": [
                    {"name": one["name"], "restartCount": 0, "state": state} for one in containers
                ]
            },
        }
        pods.set(self.pod)

    async def exec(self, *command, container="c"):
        streams = ClientStreams()
        run = await self.runtime.exec(self.pod, container, ExecRequest(command=list(command)))
        code = await run(streams)
        return code, b"".join(streams.received.values()).decode()

    async def advance(self, seconds):
        """Let time pass in steps of a second, as the commands' timers expect."""
        for _ in range(seconds):
            self.clock.advance(1)
            for _ in range(50):
                await yield_to_loop()

    async def log(self, container="c"):
        source = await self.log_source(container)
        return read(source, self.clock.now())

    async def log_source(self, container="c"):
        run = ContainerRun(restarts=0, started=parse_time(self.started), finished=None)
        return await self.runtime.logs(self.pod, container, run)

    def end(self, container="c"):
        return self.runtime.states(self.pod)[container].exit


def read(source, until):
    lines = []
    while source.is_behind(until):
        lines += [line.text.decode() for line in source.advance(until)]
    return lines


def shell(script, name="c", **fields):
    return {"name": name, "image": "busybox", "command": ["sh", "-c", script], **fields}
