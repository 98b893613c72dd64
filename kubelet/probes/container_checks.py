"""The hooks and probes of one run of a container, from its start to its end."""

import asyncio
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final, Protocol

from mockube.apimachinery import meta
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.component_base.clock import Clock
from mockube.component_base.supervision import cancel_and_wait, start
from mockube.container_runtime.process_port import ProcessPort
from mockube.container_runtime.state import ContainerState
from mockube.kubelet.pod_lifecycle import probing
from mockube.kubelet.pod_lifecycle.containers import grace_seconds
from mockube.kubelet.pod_lifecycle.probing import Probe, ProbeCount

from .prober import ProbeTarget, run_handler
from .totals import TotalsByPod

HOOK_SECONDS: Final = 600.0
"""The maximum duration of a postStart hook in seconds; a real kubelet has no limit."""
MIN_GRACE_SECONDS: Final = 2.0
"""The minimum seconds that a process has after its preStop hook, as upstream."""


class CheckedRun(Protocol):
    """The run whose hooks and probes are executed."""

    container: ReadOnlyTree
    state: ContainerState

    @property
    def pod(self) -> ReadOnlyTree: ...

    def stop(self, grace: float) -> None: ...

    def update_state(self, **fields: Any) -> None: ...

    def record_event(self, kind: str, reason: str, message: str) -> None: ...

    async def execute(self, command: Sequence[str]) -> tuple[int, str]: ...

    def port_of(self, port: int, host: str = "") -> ProcessPort:
        """Return where a port of the container is reached, or of a host that is not its pod."""


class CheckedProcess(Protocol):
    def kill(self) -> None: ...


class ContainerChecks:
    def __init__(
        self, run: CheckedRun, clock: Clock, ready: ReadOnlyTree | None, totals: TotalsByPod
    ) -> None:
        """`ready` is the readiness probe of a container whose specification has none."""
        self._run = run
        self._clock = clock
        self._totals = totals
        self._probes = {probe: run.container.get(probe.value) for probe in Probe}
        if self._probes[Probe.READINESS] is None:
            self._probes[Probe.READINESS] = ready
        self._hooks = run.container.get("lifecycle") or {}
        self._startup_passed = asyncio.Event()

    async def run(self, process: CheckedProcess) -> None:
        """Run the postStart hook, and then the probes until the process ends."""
        hook = self._hooks.get("postStart")
        if hook is not None and not await self._pass_post_start_hook(hook):
            process.kill()
            return
        now = self._clock.now()
        has_startup_probe = self._probes[Probe.STARTUP] is not None
        ready = not has_startup_probe and self._probes[Probe.READINESS] is None
        self._run.update_state(
            started=now,
            passed_startup=not has_startup_probe,
            is_ready=ready,
            waiting_reason="",
            waiting_message="",
        )
        if not has_startup_probe:
            self._startup_passed.set()
        probe_tasks = [
            start(f"a {probe.title} probe", self._run_probe(probe, handler, now))
            for probe, handler in self._probes.items()
            if handler is not None
        ]
        try:
            await _wait_for_all(probe_tasks)
        finally:
            await cancel_and_wait(probe_tasks)

    async def run_pre_stop_hook(self, seconds: float) -> float:
        """Run the preStop hook for at most `seconds`; return the minimum seconds that the process has after it."""
        hook = self._hooks.get("preStop")
        if hook is None or seconds <= 0 or self._run.state.started is None:
            return 0.0
        result = await run_handler(hook, self._target(), self._clock, seconds)
        if not result.success:
            self._run.record_event("Warning", "FailedPreStopHook", "PreStopHook failed")
        return MIN_GRACE_SECONDS

    def _target(self) -> ProbeTarget:
        run = self._run
        return ProbeTarget(spec=run.container, port_of=run.port_of, execute=run.execute)

    async def _pass_post_start_hook(self, hook: ReadOnlyTree) -> bool:
        result = await run_handler(hook, self._target(), self._clock, HOOK_SECONDS)
        if not result.success:
            self._run.record_event("Warning", "FailedPostStartHook", "PostStartHook failed")
            self._run.record_event("Normal", "Killing", "FailedPostStartHook")
        return result.success

    async def _run_probe(self, probe: Probe, handler: ReadOnlyTree, started: datetime) -> None:
        times = probing.probe_times(handler)
        count = ProbeCount(times)
        if probe is not Probe.STARTUP:
            await self._startup_passed.wait()
        elapsed = (self._clock.now() - started).total_seconds()
        begin = elapsed if probe is not Probe.STARTUP and self._probes[Probe.STARTUP] else 0.0
        await self._clock.sleep(max(probing.first_attempt(probe, times, begin) - elapsed, 0.0))
        while True:
            attempt_start = self._clock.monotonic()
            result = await run_handler(handler, self._target(), self._clock, times.timeout)
            outcome = None
            if result.is_unknown:
                self._run.record_event("Warning", "Unhealthy", probing.errored_message(probe, result.output))
            else:
                duration = self._clock.monotonic() - attempt_start
                self._totals.count(
                    meta.uid(self._run.pod),
                    self._run.container["name"],
                    probe,
                    success=result.success,
                    seconds=duration,
                )
                if not result.success:
                    self._run.record_event(
                        "Warning", "Unhealthy", probing.unhealthy_message(probe, result.output)
                    )
                outcome = count.add(success=result.success)
            if outcome is not None and self._handle_result(probe, handler, success=outcome):
                return
            await self._clock.sleep(times.period)

    def _handle_result(self, probe: Probe, handler: ReadOnlyTree, *, success: bool) -> bool:
        """Act on a result; return whether the probe is finished."""
        run = self._run
        if probe is Probe.READINESS:
            if success != run.state.is_ready:
                run.update_state(is_ready=success)
            return False
        if not success:
            run.record_event("Normal", "Killing", probing.restart_message(probe, run.container["name"]))
            grace = handler.get("terminationGracePeriodSeconds")
            run.stop(grace_seconds(run.pod) if grace is None else float(grace))
            return True
        if probe is Probe.LIVENESS:
            return False
        run.update_state(passed_startup=True, is_ready=self._probes[Probe.READINESS] is None)
        self._startup_passed.set()
        return True


async def _wait_for_all(tasks: "Sequence[asyncio.Task[None]]") -> None:
    if tasks:
        await asyncio.gather(*tasks)
