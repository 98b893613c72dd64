"""The probes and hooks of simulated containers whose results cannot be computed in advance: their commands run in real time.

What is observed of them is recorded, so that the pod's status is computed as for other simulated containers. The pod workers (`pods`)
start them by the pod's status; after a restart of the manager the observation begins again with the results in the status.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager
from datetime import datetime
from functools import partial
from math import floor, inf
from typing import Final

from mockube.apimachinery import meta
from mockube.apimachinery.pods import every_container
from mockube.apimachinery.timestamps import parse_time
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.resources import Key
from mockube.component_base.clock import Clock
from mockube.component_base.supervision import cancel_and_wait, start
from mockube.container_runtime.behavior import CommandResult
from mockube.container_runtime.objects import ObjectsUnavailable, retry_until_available
from mockube.container_runtime.pod_script import script_of
from mockube.container_runtime.port_probe import PortAnswer, PortProbe
from mockube.container_runtime.records import Ending, Records
from mockube.container_runtime.runs import container_status
from mockube.container_runtime.runtime import ContainerRuntime
from mockube.kubelet.pod_lifecycle.observations import (
    HOOK_SUCCESS,
    PENDING_HOOK,
    SUCCESS,
    Hook,
    HookResult,
    ObservedRun,
    ProbeHistory,
    ProbeResult,
)
from mockube.kubelet.pod_lifecycle.port_probes import port_result, request_fails
from mockube.kubelet.pod_lifecycle.probe_results import exec_result, scripted_results
from mockube.kubelet.pod_lifecycle.probed_runs import attempt_time
from mockube.kubelet.pod_lifecycle.probing import Probe, UnresolvedPort, probe_times
from mockube.kubelet.step_effects import ContainerAction, RunHook

from .totals import TotalsByPod

LOG: Final = logging.getLogger(__name__)

_RETRY_SECONDS: Final = 1.0
"""The delay after which a hook runs again for which the server did not respond."""
_MAX_UNKNOWN_PROGRAMS: Final = 20
"""The number of programs of one run that are reported as not simulated."""
_Commands = Mapping[str, tuple[str, ...]]
"""The commands of a container's probes and hooks that run in real time, by the field of each."""
_HOOKS: Final[tuple[Hook, ...]] = ("postStart", "preStop")


class _LiveRun:
    """The probes and hooks of one run of a container."""

    def __init__(
        self,
        pod: ReadOnlyTree,
        container: ReadOnlyTree,
        restarts: int,
        commands: _Commands,
    ) -> None:
        self.pod = pod
        """The latest version of the pod."""
        self.container = container
        self.restarts = restarts
        self.commands = commands
        script = script_of(meta.annotations(pod))
        self.probes = {
            probe: ProbeHistory(probe_times(spec))
            for probe in Probe
            if probe.value in self.commands
            and not scripted_results(probe, spec := container[probe.value], script)
        }
        self.hooks: dict[Hook, HookResult] = {}
        self.tasks: dict[str, asyncio.Task[None]] = {}
        self.reported: set[tuple[str, str]] = set()
        """The probes and hooks with their programs that are not simulated."""

    @property
    def name(self) -> str:
        return f"container {self.container['name']} of pod {Key.of(self.pod)}"

    def seed(self, status: ReadOnlyTree, elapsed: float) -> None:
        """Seed the history from the status of a run that began before the observation."""
        self.hooks["postStart"] = HOOK_SUCCESS
        for probe, history in self.probes.items():
            if status.get("ready") or (probe is Probe.STARTUP and status.get("started")):
                history.seed(elapsed)

    def observation(self) -> ObservedRun:
        hooks = [hook for hook in _HOOKS if hook in self.commands]
        return ObservedRun(
            restarts=self.restarts,
            probes={probe: history.results() for probe, history in self.probes.items()},
            hooks={hook: self.hooks.get(hook, PENDING_HOOK) for hook in hooks},
        )

    def cancel(self, *names: str) -> None:
        """Cancel tasks; without names, all of them."""
        for name in names or tuple(self.tasks):
            if (task := self.tasks.pop(name, None)) is not None:
                task.cancel()


class _LiveRuns(dict[str, _LiveRun], Ending):
    """The latest runs of a pod by the container's name."""

    def end(self) -> None:
        for run in self.values():
            run.cancel()


_NO_RUNS: Final[Mapping[str, _LiveRun]] = {}


class LiveHandlers:
    def __init__(  # noqa: PLR0913 - each argument is a dependency
        self,
        records: Records,
        clock: Clock,
        runtime: ContainerRuntime,
        totals: TotalsByPod,
        *,
        on_change: Callable[[Key], None] = lambda _: None,
        on_failure: Callable[[ReadOnlyTree, str, ProbeResult], None] = lambda *_: None,
        on_unknown_program: Callable[[ReadOnlyTree, str, str, str], None] = lambda *_: None,
    ) -> None:
        """`on_change` is called with a pod's key when something was observed that may change its status.

        `on_failure` is called with a pod, its container and the result when an attempt of a probe fails or warns, `on_unknown_program` with a
        pod, its container, a program that is not simulated, and the field of the probe or hook.
        """
        self._records = records
        self._clock = clock
        self._runtime = runtime
        self._totals = totals
        self._on_change = on_change
        self._on_failure = on_failure
        self._on_unknown_program = on_unknown_program
        self._tasks: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        try:
            yield
        finally:
            await cancel_and_wait([*self._tasks])

    # --- the interface to the pod lifecycle

    def observations(self, pod: ReadOnlyTree) -> Mapping[str, ObservedRun]:
        """Return what was observed of the pod's containers that have such probes or hooks, by name."""
        observed = {}
        for container, commands in self._observed_containers(pod):
            run = self._run_of(pod, container["name"])
            if run is None or run.commands != commands:
                run = self._adopt(pod, container, commands)
            run.pod, run.container = pod, container
            observed[container["name"]] = run.observation()
        return observed

    def apply(self, pod: ReadOnlyTree, actions: Iterable[ContainerAction]) -> None:
        """Run the hooks that are due."""
        for action in actions:
            if isinstance(action, RunHook):
                container, commands = next(
                    (container, commands)
                    for container, commands in self._observed_containers(pod)
                    if container["name"] == action.container
                )
                run = self._run_for(pod, container, commands, action.restarts)
                if action.hook not in run.hooks:
                    self._start(run, action.hook, self._run_hook(run, action.hook))

    def follow(self, pod: ReadOnlyTree) -> None:
        """Start and end the probes of a pod's containers by its status."""
        for container, commands in self._observed_containers(pod):
            status = container_status(pod, container["name"]) or {}
            running = (status.get("state") or {}).get("running")
            if running:
                run = self._run_for(pod, container, commands, status["restartCount"])
                started = parse_time(running["startedAt"])
                for probe in run.probes:
                    if (probe is Probe.STARTUP) is not bool(status.get("started")):
                        self._start(run, probe.value, self._run_probe(run, probe, started))
            elif (ended := self._run_of(pod, container["name"])) is not None:
                ended.cancel(*(probe.value for probe in Probe))

    def _observed_containers(self, pod: ReadOnlyTree) -> Iterator[tuple[ReadOnlyTree, _Commands]]:
        """Yield the containers that have such probes or hooks, with their commands."""
        for container in every_container(pod["spec"]):
            commands = self._runtime.live_handlers(pod, container)
            if commands:
                yield container, commands

    def _run_of(self, pod: ReadOnlyTree, name: str) -> _LiveRun | None:
        return (self._records.find(meta.uid(pod), _LiveRuns) or _NO_RUNS).get(name)

    def _run_for(
        self, pod: ReadOnlyTree, container: ReadOnlyTree, commands: _Commands, restarts: int
    ) -> _LiveRun:
        """Return the run after `restarts` restarts; a later one replaces an earlier one."""
        run = self._run_of(pod, container["name"])
        if run is None or run.restarts != restarts:
            if run is not None:
                run.cancel()
            run = _LiveRun(pod, container, restarts, commands)
            self._records.ensure(meta.uid(pod), _LiveRuns)[container["name"]] = run
        run.pod, run.container = pod, container
        return run

    def _adopt(self, pod: ReadOnlyTree, container: ReadOnlyTree, commands: _Commands) -> _LiveRun:
        """Return the run of a container that is observed for the first time, or with other probes than before."""
        if (earlier := self._run_of(pod, container["name"])) is not None:
            earlier.cancel()
            del self._records.ensure(meta.uid(pod), _LiveRuns)[container["name"]]
        status = container_status(pod, container["name"]) or {}
        running = (status.get("state") or {}).get("running")
        if not running:
            return self._run_for(pod, container, commands, -1)
        run = self._run_for(pod, container, commands, status["restartCount"])
        run.seed(status, (self._clock.now() - parse_time(running["startedAt"])).total_seconds())
        return run

    # --- running the commands

    def _start(self, run: _LiveRun, name: str, work: Coroutine[None, None, None]) -> None:
        if name in run.tasks:
            work.close()
            return
        task = start(f"{name} of {run.name}", work)
        run.tasks[name] = task
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _run_hook(self, run: _LiveRun, hook: Hook) -> None:
        began = self._clock.now()
        is_success = False
        execute = (
            partial(self._execute, run, hook, inf)
            if run.commands[hook]
            else partial(self._send_request, run, hook)
        )
        try:
            result = await retry_until_available(
                execute,
                self._clock,
                _RETRY_SECONDS,
                f"the {hook} hook of {run.name}",
            )
            is_success = result is None or not result.exit_code
        except Exception:
            LOG.exception("the %s hook of %s failed", hook, run.name)
        seconds = (self._clock.now() - began).total_seconds()
        run.hooks[hook] = HookResult(is_success=is_success, seconds=seconds, began=began)
        self._on_change(Key.of(run.pod))

    async def _run_probe(self, run: _LiveRun, probe: Probe, started: datetime) -> None:
        """Run a probe until it is cancelled; a startup probe until it succeeds. Attempts have the times of the model."""

        def elapsed_seconds() -> float:
            return (self._clock.now() - started).total_seconds()

        times = probe_times(run.container[probe.value])
        has_startup = bool(run.container.get(Probe.STARTUP.value))
        begin = 0.0 if probe is Probe.STARTUP or not has_startup else elapsed_seconds()
        at = attempt_time(probe, times, begin)
        while True:
            at += max(floor((elapsed_seconds() - at) / times.period), 0) * times.period
            try:
                await self._clock.sleep(max(at - elapsed_seconds(), 0.0))
                result = await self._attempt(run, probe, float(times.timeout))
            except ObjectsUnavailable as error:
                LOG.warning("a probe of %s waits for the server: %s", run.name, error)
            except Exception:
                LOG.exception("a probe of %s failed; it will be run again", run.name)
            else:
                if run.probes[probe].add(at, result):
                    self._on_change(Key.of(run.pod))
                if probe is Probe.STARTUP and result.is_success:
                    return
                if probe is not Probe.READINESS and run.probes[probe].has_failed:
                    return  # The container is restarted.
            at += times.period

    async def _attempt(self, run: _LiveRun, probe: Probe, limit: float) -> ProbeResult:
        name = run.container["name"]
        begin = self._clock.monotonic()
        if run.commands[probe.value]:
            command = await self._execute(run, probe.value, limit)
            result = exec_result(command, probe, " ".join(run.commands[probe.value]), limit)
        else:
            result = await self._probe_port(run, probe, limit)
        seconds = self._clock.monotonic() - begin
        self._totals.count(meta.uid(run.pod), name, probe, success=bool(result.is_success), seconds=seconds)
        if result.message:
            self._on_failure(run.pod, name, result)
        return ProbeResult(is_success=result.is_success, message=result.message)

    async def _probe_port(self, run: _LiveRun, probe: Probe, limit: float) -> ProbeResult:
        """Make an attempt at a port. Redirects need several requests: those that are not answered yet are sent, and it is made again."""
        answers: dict[PortProbe, PortAnswer] = {}
        pod_ip = (run.pod.get("status") or {}).get("podIP") or ""
        while True:
            try:
                result = port_result(run.pod, run.container, probe, pod_ip, partial(_answer, answers))
            except _NotAnswered as error:
                name = run.container["name"]
                answer = await self._runtime.probe_port(run.pod, name, error.request, restarts=run.restarts)
                await self._clock.sleep(min(answer.seconds, limit))
                answers[error.request] = answer
                continue
            if isinstance(result, ProbeResult):
                return result
            self._note_unknown(run, probe.value, result)
            return SUCCESS

    async def _send_request(self, run: _LiveRun, hook: Hook) -> CommandResult:
        """Send the request of a hook; the result is that of a command."""
        action = run.container["lifecycle"][hook]["httpGet"]
        answers: dict[PortProbe, PortAnswer] = {}
        pod_ip = (run.pod.get("status") or {}).get("podIP") or ""
        while True:
            try:
                fails = request_fails(run.pod, run.container, action, pod_ip, partial(_answer, answers))
            except _NotAnswered as error:
                answers[error.request] = await self._runtime.probe_port(
                    run.pod, run.container["name"], error.request, restarts=run.restarts
                )
            except UnresolvedPort:
                return CommandResult(exit_code=1)
            else:
                return CommandResult(exit_code=int(fails))

    async def _execute(self, run: _LiveRun, field: str, limit: float) -> CommandResult | None:
        return await self._runtime.exec_sync(
            run.pod,
            run.container["name"],
            run.commands[field],
            limit,
            restarts=run.restarts,
            on_unknown=partial(self._note_unknown, run, field),
        )

    def _note_unknown(self, run: _LiveRun, field: str, program: str) -> None:
        if (field, program) not in run.reported and len(run.reported) < _MAX_UNKNOWN_PROGRAMS:
            run.reported.add((field, program))
            self._on_unknown_program(run.pod, run.container["name"], program, field)


class _NotAnswered(Exception):
    """A request of an attempt has not been sent."""

    def __init__(self, request: PortProbe) -> None:
        self.request = request


def _answer(answers: Mapping[PortProbe, PortAnswer], request: PortProbe) -> PortAnswer:
    if request not in answers:
        raise _NotAnswered(request)
    return answers[request]
