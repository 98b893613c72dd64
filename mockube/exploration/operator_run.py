"""An operator in a fork: its processes, the Faults that disturb it, and when a run is quiet."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager, suppress
from math import inf
from pathlib import Path
from typing import Any, Final

from mockube.apimachinery import meta
from mockube.apimachinery.status import ApiError, NotFound
from mockube.client.kinds import CONFIG_MAPS
from mockube.client.resources import Key
from mockube.client.verbs import Client
from mockube.component_base.supervision import start
from mockube.control_objects import CLOCK, CLOCKS, FAULTS, object_of
from mockube.failure import Failure
from mockube.objects.errors import KindNotServed
from mockube.objects.requests import ObjectRequests
from mockube.operators.announced_retries import announced_seconds
from mockube.operators.crashes import crash_of
from mockube.operators.process import RunningOperator, is_working
from mockube.operators.writes import LEASES

from .idle_reads import LONGER, idle_reads
from .plans import Disturbance, Plan
from .run_outcome import RunLimits, RunOutcome, RunSetting
from .starters import bytecode_variables
from .trace import Trace

POLL_SECONDS: Final = 0.02
END_POLL_SECONDS: Final = 0.1
"""How often it is checked whether an operator has ended by itself."""
HEARD_SECONDS: Final = 60.0
"""How long an operator may take until its first request."""
Release = Callable[[], Awaitable[None]]
MAX_EXITS: Final = 5
"""After so many exits by itself in a run, an operator is not started again."""
_HIDDEN_SHARE: Final = 10
_HIDDEN_SECONDS: Final = 2.0
"""How long something is held back at most while a run does not become quiet: in seconds, and as a multiple of the time after which it is."""
_MOST_ANNOUNCED: Final = 120.0
_TRY_SECONDS: Final = 10.0
"""How long the next try of an operator may take."""
_EXIT_DELAY: Final = 0.05
_WORK_FACTOR: Final = 5
"""How much longer an operator that works may write nothing until a run is quiet."""


async def newest_revision(client: Client) -> int:
    return int((await client.list(CONFIG_MAPS, "default")).resource_version)


class NeverQuiet(Exception):
    """The run is not quiet in time."""


class ObjectMissing(Exception):
    """A disturbance has no object in this run."""


class OperatorRun:
    """An operator in a fork, with what is held back from it and what it still has to get: what disturbances act on."""

    def __init__(
        self, setting: RunSetting, limits: RunLimits, plan: Plan, client: Client, trace: Trace, folder: Path
    ) -> None:
        self.setting, self.limits, self.plan = setting, limits, plan
        self.client, self.trace = client, trace
        access = setting.access
        self.requests = ObjectRequests(client, access, names=setting.names)
        self.access = access
        self.clock = setting.clock
        self.kubeconfig, self.admin = folder / "operator.kubeconfig", folder / "admin.kubeconfig"
        self.operators: list[RunningOperator] = []
        self.replacing = asyncio.Lock()
        """Held while an operator is started or replaced: a step and the moment of a write may both do that."""
        self.is_disturbing = False
        self.is_down = False
        """Whether the operator is stopped until the next step is done."""
        self.is_subject_deleted = False
        """For good, by a disturbance."""
        self.creating = asyncio.Lock()
        """Held while the resource is created anew or deleted for good: it must not be created after that."""
        self.armed: dict[str, Disturbance] = {}
        self.releases: list[Release] = []
        """What ends what is held back, when nothing else happens."""
        self.later_releases: list[tuple[int, Release]] = []
        """What ends what is held back over steps, each with the number of steps that still have to begin."""
        self.pending: set[asyncio.Task[None]] = set()
        self.deadline = self.clock.monotonic() + limits.max_seconds
        self.outcome = RunOutcome(plan=plan, trace=trace)
        self._idle_since: float | None = None
        """The last activity since which cluster and operator have become idle: they are until there is another one."""

    async def wait_until(self, is_so: Callable[[], bool], seconds: float) -> bool:
        deadline = self.clock.monotonic() + seconds
        while not is_so():
            if self.clock.monotonic() >= deadline or self.trace.problem:
                return False
            await self.pause(POLL_SECONDS)
        return True

    @contextmanager
    def not_counted(self) -> Iterator[None]:
        """Do not count the time of a disturbance as one in which the run is not quiet."""
        began = self.clock.monotonic()
        try:
            yield
        finally:
            self.deadline += self.clock.monotonic() - began

    def hold_back(self, release: Release, steps: int = 0) -> None:
        """Note how something that is held back ends: when nothing else happens, after so many steps have begun."""
        if steps:
            self.later_releases.append((steps, release))
        else:
            self.releases.append(release)

    def count_step(self) -> None:
        """Note that a step begins."""
        counted = [(steps - 1, release) for steps, release in self.later_releases]
        self.releases += [release for steps, release in counted if not steps]
        self.later_releases = [each for each in counted if each[0]]

    async def release_all(self) -> None:
        """End also what was held back over steps."""
        self.releases += [release for _, release in self.later_releases]
        self.later_releases = []
        await self.release()

    async def release(self) -> None:
        """End what was held back from the operator."""
        while self.releases:
            await self.releases.pop(0)()
            self.trace.touch()

    def until_next_try(self, seconds: float) -> float:
        """Return a longer time than these seconds if the operator has printed that it tries again only then."""
        logs = (self.outcome.log, *(operator.log.text() for operator in self.operators))
        announced = max(map(announced_seconds, logs))
        return max(seconds, announced + _TRY_SECONDS) if 0 < announced <= _MOST_ANNOUNCED else seconds

    async def quiet(self) -> None:
        """Wait until nothing has been written for a while, and nothing is to come."""
        release_at = self.clock.monotonic() + max(_HIDDEN_SHARE * self.limits.settle, _HIDDEN_SECONDS)
        while True:
            is_pending = any(not task.done() for task in self.pending)
            is_busy = is_pending or self.replacing.locked() or self.has_moment()
            remaining = self.limits.settle - self.trace.quiet_seconds()
            # What is held back may be the deletion that a finalizer waits for, or why the operator tries the same again and again.
            if (is_pending and remaining <= 0) or self.clock.monotonic() >= release_at:
                await self.release()
            if not is_busy and remaining <= 0 and await self._is_idle() and not self._goes_on_reading():
                return
            if self.clock.monotonic() >= self.deadline or self.trace.problem:
                raise NeverQuiet
            await self.pause(POLL_SECONDS if is_busy else min(max(remaining, 0.001), POLL_SECONDS * 5))

    async def _is_idle(self) -> bool:
        """Return whether cluster and operator wait for something: on a busy machine, they may only be late.

        An operator that never waits, as one that polls, is idle some time after its last write.
        """
        last_activity = self.trace.last_activity
        if last_activity == self._idle_since:
            return True
        await self.client.get(CLOCKS, CLOCK)  # the answer comes after what the server had to do
        quiet, settle = self.trace.quiet_seconds(), self.limits.settle
        is_late = any(is_working(operator.pid) for operator in self.operators if operator.code is None)
        is_idle = quiet >= settle and (not is_late or quiet >= _WORK_FACTOR * settle)
        if is_idle:
            self._idle_since = last_activity
        return is_idle

    def _goes_on_reading(self) -> bool:
        """Return whether an operator that reads without a pause may still pause; if it does not, that is a hot loop."""
        reads = idle_reads(self.trace)
        self.outcome.idle_reads = None
        self.outcome.idle_reads_per_second = reads.per_second()
        if not reads.have_no_pause(self.limits.idle_reads):
            return False
        if reads.seconds < self.limits.settle + LONGER:
            return True
        self.outcome.idle_reads = reads
        return False

    def has_moment(self) -> bool:
        """Return whether the moment of a write has come, whose disturbance has not ended."""
        return self.is_disturbing or any(self.trace.hits.get(name) for name in self.armed)

    async def pause(self, seconds: float) -> None:
        await self.clock.sleep(seconds)

    async def start_operator(self) -> str:
        """Start the operator, and wait for its first request; return why there is none, "" if there is one."""
        began = (await self.client.get(CLOCKS, CLOCK))["status"]["time"]
        known, hits = self.trace.request_count(), sum(self.trace.hits.values())
        operator = self._start_process()
        self.operators.append(operator)
        deadline = self.clock.monotonic() + HEARD_SECONDS
        while not self._is_heard(began, known, hits):
            is_late = self.clock.monotonic() >= deadline
            if is_late or operator.code is not None:
                line = operator.log.last_line()
                text = (
                    f"it exited with code {operator.code}"
                    if operator.code is not None
                    else f"it sent no request within {HEARD_SECONDS:g} s"
                )
                return f"{text}{f': {line}' if line else ''}"
            await self.pause(POLL_SECONDS / 4)
        self.trace.touch()
        return ""

    def _start_process(self) -> RunningOperator:
        """Start the operator, with the variables and the files of its pod if it stands for one; a second one has another pod."""
        setting, pods = self.setting, self.setting.identity.pods
        variables = {**bytecode_variables(setting.folder), **setting.scenario.environment}
        server = self.access.server if setting.scenario.own_network else ""
        if not pods:
            return setting.starter.start(self.kubeconfig, variables, server=server)
        pod = pods[len(self.operators) % len(pods)]
        mounts = pod.mounts([self.kubeconfig, *setting.starter.paths])
        return setting.starter.start(
            self.kubeconfig, {**pod.environment(self.access.server), **variables}, mounts, server
        )

    def _is_heard(self, began: str, known: int, hits: int) -> bool:
        """Return whether a request has arrived since then; one that a disturbance holds back is only seen by its hit.

        The watches of an operator that was killed end after that, but had begun before.
        """
        return sum(self.trace.hits.values()) > hits or any(
            each.began >= began for each in self.trace.requests[known:]
        )

    async def replace_operator(self, *, grace: float, text: str) -> None:
        """End the operator, as a crash without a grace period, so that it can be started again. The caller has the lock."""
        if not self.operators:  # it is down
            return
        # It stays in the list until it has ended, so that it is killed if the run is cancelled meanwhile.
        operator = self.operators[-1]
        with self.not_counted():
            end = await asyncio.to_thread(operator.stop, grace)
        self.operators.remove(operator)
        self.outcome.ignored_term |= end.ignored_term and not self.has_moment()  # a write that waits holds it
        self._keep_log(operator)
        self.trace.note(text)
        await self._release_leases()

    async def restart_now(self) -> bool:
        """Start an operator, and return whether it runs. The caller has the lock."""
        if problem := await self.start_operator():
            self.outcome.exits.append(problem)
        return not problem

    async def _release_leases(self) -> None:
        """Delete the Leases and other locks of the operator: it would wait until they expire."""
        names = {
            (each.namespace, each.name)
            for each in self.trace.requests
            if each.resource == LEASES and each.name and each.verb in ("get", "update", "patch")
        }
        for namespace, name in names:
            with suppress(ApiError, KindNotServed):
                await self.requests.delete("lease", name, namespace, ignore_not_found=True)
        for kind, namespace, name in sorted(self.trace.locks):
            with suppress(ApiError):
                await self.requests.delete(kind, name, namespace, ignore_not_found=True)

    async def restart_ended(self) -> None:
        if self.replacing.locked() or not self.operators:
            return
        operator = self.operators[-1]
        if operator.code is None or len(self.outcome.exits) >= MAX_EXITS:
            return
        line = operator.log.last_line()
        text = f"the operator exits with code {operator.code}{f': {line}' if line else ''}"
        self.outcome.exits.append(text)
        if crash := crash_of(operator.code, operator.log.text()):
            self.outcome.crashes.append(crash)
        async with self.replacing:
            await self.replace_operator(grace=0, text=text)
            await self.pause(_EXIT_DELAY * 2 ** len(self.outcome.exits))
            await self.restart_now()

    def kill_all(self) -> None:
        for operator in self.operators:
            try:
                operator.kill()
            except Failure as failure:
                self.outcome.problem = str(failure)
            self._keep_log(operator)

    def _keep_log(self, operator: RunningOperator) -> None:
        self.outcome.log += operator.log.text()
        self.outcome.log_bytes += operator.log.size

    def later(self, work: Coroutine[Any, Any, None]) -> None:
        self.pending.add(start("disturbance", work))

    async def add_fault(self, spec: Mapping[str, Any]) -> str:
        return meta.name(await self.client.create(FAULTS, object_of("Fault", "", spec)))

    async def delete_fault(self, name: str) -> None:
        self.trace.end_hiding(name)
        with suppress(NotFound):
            await self.client.delete(FAULTS, Key("", name))

    async def end_span(self, fault: str, text: str) -> None:
        self.trace.note(text)
        await self.delete_fault(fault)

    def match(self, **criteria: Any) -> Mapping[str, Any]:
        return {"user": self.setting.identity.user, **criteria}

    def watches_of(self, resource: str) -> Mapping[str, Any]:
        return self.match(verbs=["watch"], resource=resource)

    async def hide(self, fault: str, resource: str, lag: float = inf) -> None:
        """Note that the operator does not see what comes after now."""
        self.trace.hide(fault, resource, await newest_revision(self.client), lag)

    async def end_pending(self) -> None:
        """Wait for a resource that is created anew, of which the next step is."""

        def is_done() -> bool:
            return all(task.done() for task in self.pending)

        if not await self.wait_until(is_done, self.limits.settle):
            await self.release()  # what is held back may be what its end waits for
            await self.wait_until(is_done, self.deadline - self.clock.monotonic())
