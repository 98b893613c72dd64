"""The hooks and probes of one run of a container, from its start to its end."""

import asyncio
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final, Protocol

from mockube.apimachinery.clock import Clock
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.controller_manager.kubelet.pod_lifecycle.order import grace_seconds
from mockube.controller_manager.kubelet.pod_lifecycle.probing import (
    Probe,
    ProbeCount,
    probe_times,
    restart_message,
    unhealthy_message,
)
from mockube.controller_manager.kubelet.pod_lifecycle.process_state import ProcessState
from mockube.controller_manager.kubelet.processes.local_process import LocalProcess
from mockube.controller_manager.kubelet.processes.prober import Target, attempt
from mockube.controller_manager.supervision import cancel_and_wait, start

HOOK_SECONDS: Final = 600.0
"""That a postStart hook may take; a kubelet waits for ever."""
MIN_GRACE_SECONDS: Final = 2.0
"""Seconds that a process has after its preStop hook, as upstream."""


class CheckedRun(Protocol):
    """What is checked."""

    container: ReadOnlyTree
    state: ProcessState

    @property
    def pod(self) -> ReadOnlyTree: ...

    def stop(self, grace: float) -> None: ...

    def change(self, **fields: Any) -> None: ...

    def record_event(self, kind: str, reason: str, message: str) -> None: ...

    def count_probe(self, probe: Probe, *, success: bool, seconds: float) -> None: ...

    def target(self) -> Target: ...


class ContainerChecks:
    def __init__(self, run: CheckedRun, clock: Clock, ready: ReadOnlyTree | None) -> None:
        """`ready` is the readiness probe of a container that has none."""
        self._run = run
        self._clock = clock
        self._probes = {probe: run.container.get(probe.value) for probe in Probe}
        if self._probes[Probe.READINESS] is None:
            self._probes[Probe.READINESS] = ready
        self._hooks = run.container.get("lifecycle") or {}
        self._startup_passed = asyncio.Event()

    async def run(self, process: LocalProcess) -> None:
        """The hook that follows the start, then probes for as long as the process runs."""
        hook = self._hooks.get("postStart")
        if hook is not None and not await self._pass_post_start_hook(hook):
            process.kill()
            return
        now = self._clock.now()
        waits = self._probes[Probe.STARTUP] is not None
        ready = not waits and self._probes[Probe.READINESS] is None
        self._run.change(
            started=now, passed_startup=not waits, is_ready=ready, waiting_reason="", waiting_message=""
        )
        if not waits:
            self._startup_passed.set()
        probing = [
            start(f"a {probe.title} probe", self._keep_probing(probe, handler, now))
            for probe, handler in self._probes.items()
            if handler is not None
        ]
        try:
            await _all_done(probing)
        finally:
            await cancel_and_wait(probing)

    async def run_pre_stop_hook(self, seconds: float) -> float:
        """Run the hook for at most so many seconds; return how many the process has after it at least."""
        hook = self._hooks.get("preStop")
        if hook is None or seconds <= 0 or self._run.state.started is None:
            return 0.0
        result = await attempt(hook, self._run.target(), self._clock, seconds)
        if not result.success:
            self._run.record_event("Warning", "FailedPreStopHook", "PreStopHook failed")
        return MIN_GRACE_SECONDS

    async def _pass_post_start_hook(self, hook: ReadOnlyTree) -> bool:
        result = await attempt(hook, self._run.target(), self._clock, HOOK_SECONDS)
        if not result.success:
            self._run.record_event("Warning", "FailedPostStartHook", "PostStartHook failed")
            self._run.record_event("Normal", "Killing", "FailedPostStartHook")
        return result.success

    async def _keep_probing(self, probe: Probe, handler: ReadOnlyTree, started: datetime) -> None:
        times = probe_times(handler)
        count = ProbeCount(times)
        if probe is not Probe.STARTUP:
            await self._startup_passed.wait()
        passed = (self._clock.now() - started).total_seconds()
        await self._clock.sleep(max(times.initial_delay - passed, 0.0))
        while True:
            began = self._clock.monotonic()
            result = await attempt(handler, self._run.target(), self._clock, times.timeout)
            took = self._clock.monotonic() - began
            self._run.count_probe(probe, success=result.success, seconds=took)
            if not result.success:
                self._run.record_event("Warning", "Unhealthy", unhealthy_message(probe, result.output))
            decided = count.add(success=result.success)
            if decided is not None and self._is_settled(probe, handler, success=decided):
                return
            await self._clock.sleep(times.period)

    def _is_settled(self, probe: Probe, handler: ReadOnlyTree, *, success: bool) -> bool:
        """Act on a result; answer whether the probe has nothing more to find out."""
        run = self._run
        if probe is Probe.READINESS:
            if success != run.state.is_ready:
                run.change(is_ready=success)
            return False
        if not success:
            run.record_event("Normal", "Killing", restart_message(probe, run.container["name"]))
            grace = handler.get("terminationGracePeriodSeconds")
            run.stop(grace_seconds(run.pod) if grace is None else float(grace))
            return True
        if probe is Probe.LIVENESS:
            return False
        run.change(passed_startup=True, is_ready=self._probes[Probe.READINESS] is None)
        self._startup_passed.set()
        return True


async def _all_done(tasks: "Sequence[asyncio.Task[None]]") -> None:
    if tasks:
        await asyncio.gather(*tasks)
