"""One run: a fork, the operator in it, the steps of the scenario, the disturbances of a plan, and what the run then looks like."""

import asyncio
import shlex
import subprocess
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from msgspec import Struct, field
from msgspec.structs import replace

from mockube.apimachinery import meta
from mockube.apimachinery.status import ApiError, NotFound
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.kubeconfig import Access
from mockube.client.resources import Key
from mockube.client.verbs import Client
from mockube.component_base.clock import Clock
from mockube.component_base.supervision import start, timeout
from mockube.control_objects import CLOCK, CLOCKS, FAULTS, list_changes, object_of
from mockube.failure import Failure
from mockube.kubectl import find_kubectl
from mockube.objects.conditions import read_condition
from mockube.objects.errors import KindNotServed, WaitFailed
from mockube.objects.requests import ObjectRequests
from mockube.objects.resource_names import ResourceNames
from mockube.operators.account import write_kubeconfig
from mockube.operators.end_state import NOISE, Identity, kind_of
from mockube.operators.field_edits import MAX_TRIES, NotEditable, edit_field
from mockube.operators.process import RunningOperator
from mockube.operators.writes import LEASES

from . import plans
from .edits import Edit, edits_of
from .plans import Disturbance, Plan
from .scenario import GONE, Expectation, ObjectRef, Scenario, StepOperation
from .starters import Starter
from .trace import Trace

POLL_SECONDS: Final = 0.02
HEARD_SECONDS: Final = 60.0
"""How long an operator may take until its first request."""
FOREVER: Final = 1e6
MAX_EXITS: Final = 5
"""After so many exits by itself in a run, an operator is not started again."""
_EXIT_DELAY: Final = 0.05
_GRACE_SECONDS: Final = 30.0
"""How long an operator may take to end after SIGTERM, as with a kubelet."""
_MOMENT_SECONDS: Final = 15.0
"""How long a disturbance may take until it takes place."""
_STEP_ERRORS: Final = (ApiError, KindNotServed, WaitFailed)
_KUBECTL_SECONDS: Final = 60.0


class RunLimits(Struct, frozen=True, kw_only=True):
    """How long a run waits."""

    settle: float
    """After so long without a write, a run is quiet."""
    patience: float
    """How long a run that has ended otherwise than expected may still go on."""
    max_seconds: float
    """A run that is not quiet after so long never is."""


class RunSetting(Struct, frozen=True, kw_only=True):
    """What all runs share."""

    scenario: Scenario
    starter: Starter
    clock: Clock
    access: Access
    """The administrator's, whose server is that of a fork in each run."""
    token: str
    user: str
    namespace: str
    folder: Path


class RunOutcome(Struct, kw_only=True):
    """What a run was."""

    plan: Plan
    trace: Trace
    is_quiet: bool = True
    failed_steps: list[str] = field(default_factory=list)
    detail: str = ""
    """What was found instead, when a condition of a step did not come."""
    failed_expectations: list[str] = field(default_factory=list)
    exits: list[str] = field(default_factory=list)
    """The messages of the exits that nothing caused."""
    log: str = ""
    is_applied: bool = True
    """Whether all disturbances took place."""
    problem: str = ""
    """Why the run says nothing: the operator did not start."""
    ignored_term: bool = False


class NeverQuiet(Exception):
    """The run is not quiet in time."""


class PlanRun:
    def __init__(
        self, setting: RunSetting, limits: RunLimits, plan: Plan, client: Client, trace: Trace, folder: Path
    ) -> None:
        self._setting, self._limits, self._plan = setting, limits, plan
        self._client, self._trace = client, trace
        access = setting.access
        self._requests = ObjectRequests(client, access)
        self._access = access
        self._clock = setting.clock
        self._kubeconfig, self._admin = folder / "operator.kubeconfig", folder / "admin.kubeconfig"
        self._operators: list[RunningOperator] = []
        self._replacing = asyncio.Lock()
        """Held while an operator is started or replaced: a step and the moment of a write may both do that."""
        self._is_disturbing = False
        self._is_subject_deleted = False
        """For good, by a disturbance."""
        self._creating = asyncio.Lock()
        """Held while the resource is created anew or deleted for good: it must not be created after that."""
        self._armed: dict[str, Disturbance] = {}
        self._releases: list[Callable[[], Awaitable[None]]] = []
        self._pending: set[asyncio.Task[None]] = set()
        self._deadline = self._clock.monotonic() + limits.max_seconds
        self.outcome = RunOutcome(plan=plan, trace=trace)

    # --- the run

    async def run(self, is_as_expected: Callable[[Trace], bool]) -> RunOutcome:
        """Run the scenario with the disturbances, and wait until the end is as expected, for a limited time."""
        write_kubeconfig(self._kubeconfig, self._access, self._setting.token, self._setting.namespace)
        write_kubeconfig(self._admin, self._access, self._access.token, self._setting.namespace)
        supervision = start("supervision of a run", self._supervise())
        try:
            await self._arm()
            async with self._replacing:
                self.outcome.problem = await self._start_operator()
            if not self.outcome.problem:
                await self._act()
                await self._end(is_as_expected)
        except NeverQuiet:
            self.outcome.is_quiet = False
        finally:
            for task in (supervision, *self._pending):  # a wait for a deletion may take minutes
                task.cancel()
            await asyncio.gather(supervision, *self._pending, return_exceptions=True)
            await asyncio.to_thread(self._kill_all)
        if not supervision.cancelled() and (error := supervision.exception()):
            raise error
        if self._trace.problem and not self.outcome.problem:
            self.outcome.problem = self._trace.problem
        self.outcome.is_applied &= not self._armed
        return self.outcome

    async def _act(self) -> None:
        await self._disturb_after(plans.NO_STEP)
        for number, step in enumerate(self._setting.scenario.act if self._plan.has_steps else ()):
            await self._end_pending()
            self._trace.note(f"step {number + 1}: {step.name}")
            if problem := await self._do(step.operation):
                self.outcome.failed_steps.append(f"step {number + 1}: {problem}")
                return
            for expectation in step.until:
                if not await self._wait(expectation, self._setting.scenario.timeout):
                    self.outcome.failed_steps.append(f"step {number + 1}: {expectation} was not so")
                    return
            await self._disturb_after(number)
        if not self._plan.disturbances:
            self._deadline = self._clock.monotonic() + self._limits.max_seconds
        if self._plan.ending and not any(each.action in plans.ENDINGS for each in self._plan.disturbances):
            await self._quiet()
            await self._end_subject(self._plan.ending)

    async def _do(self, operation: StepOperation) -> str:
        """Do what a step does, and return why that is not possible any more after a disturbance; "" if it is done."""
        for part in self._without_subject(operation) if self._is_subject_deleted else (operation,):
            try:
                await do_operation(self._requests, self._admin, part)
            except (*_STEP_ERRORS, StepFailed) as error:
                if self._is_subject_deleted:
                    self._trace.note(f"it is not possible any more: {error}")
                    continue
                if not self._plan.disturbances:
                    raise
                return str(error)
        return ""

    def _without_subject(self, operation: StepOperation) -> Iterator[StepOperation]:
        """Yield the parts of a step that may still be possible: not the resource that was deleted for good."""
        ref = self._setting.scenario.subject
        if not operation.objects:
            yield operation
        for tree in operation.objects:
            identity = (kind_of(tree), meta.namespace(tree) or operation.namespace, meta.name(tree))
            if ref is None or not ref.is_of(identity):
                yield replace(operation, objects=[tree])

    async def _end_pending(self) -> None:
        """Wait for a resource that is created anew, of which the next step is."""

        def is_done() -> bool:
            return all(task.done() for task in self._pending)

        if not await self._wait_until(is_done, self._limits.settle):
            await self._release()  # what is held back may be what its end waits for
            await self._wait_until(is_done, self._deadline - self._clock.monotonic())

    async def _wait_until(self, is_so: Callable[[], bool], seconds: float) -> bool:
        deadline = self._clock.monotonic() + seconds
        while not is_so():
            if self._clock.monotonic() >= deadline or self._trace.problem:
                return False
            await self._pause(POLL_SECONDS)
        return True

    @contextmanager
    def _not_counted(self) -> Iterator[None]:
        """Do not count the time of a disturbance as one in which the run is not quiet."""
        began = self._clock.monotonic()
        try:
            yield
        finally:
            self._deadline += self._clock.monotonic() - began

    async def _wait(self, expectation: Expectation, seconds: float) -> bool:
        """Wait for an expectation; not after the subject was deleted for good, because it may never hold then."""
        is_ended = bool(self._plan.ending and self._plan.disturbances)
        if is_ended or self._releases:
            if await self._is_met(expectation, self._limits.settle) or is_ended:
                return True
            await self._release()  # what is held back may be what it waits for
        if self._plan.disturbances:  # how long such a run may take is learned from the undisturbed ones
            seconds = min(seconds, max(self._deadline - self._clock.monotonic(), 0.1))
        return await self._is_met(expectation, seconds)

    async def _is_met(self, expectation: Expectation, seconds: float) -> bool:
        ref = expectation.object
        try:
            if expectation.condition == GONE:
                await self._requests.wait_gone(ref.target, None, seconds, ref.namespace)
            else:
                await self._requests.wait((ref.target, None, expectation.condition), seconds, ref.namespace)
        except (WaitFailed, KindNotServed) as error:
            self.outcome.detail = str(error)
            return False
        return True

    async def _release(self) -> None:
        """End what was held back from the operator."""
        while self._releases:
            await self._releases.pop(0)()
            self._trace.touch()

    async def _end(self, is_as_expected: Callable[[Trace], bool]) -> None:
        await self._quiet()
        await self._release()
        await self._quiet()
        deadline = self._clock.monotonic() + self._limits.patience
        while not (is_as_expected(self._trace) and await self._expectations_hold()):
            if self._clock.monotonic() >= deadline or not self._can_go_on():
                break
            await self._pause(self._limits.settle)
        await self._quiet()

    def _can_go_on(self) -> bool:
        return any(operator.code is None for operator in self._operators)

    async def _expectations_hold(self) -> bool:
        failed: list[str] = []
        is_comparable = self._plan.has_steps and not self._plan.ending
        for expectation in self._setting.scenario.expect if is_comparable else ():
            ref = expectation.object
            try:
                tree = await self._requests.get(ref.target, None, ref.namespace)
            except (NotFound, KindNotServed):
                tree = None
            if expectation.condition == GONE:
                problem = None if tree is None else "it exists"
            else:
                problem = (
                    "it does not exist"
                    if tree is None
                    else read_condition(expectation.condition).find_problem(tree)
                )
            if problem is not None:
                failed.append(f"{expectation}{f': {problem}' if problem else ''}")
        self.outcome.failed_expectations = failed
        return not failed

    async def _quiet(self) -> None:
        """Wait until nothing has been written for a while, and nothing is to come."""
        while True:
            is_pending = any(not task.done() for task in self._pending)
            is_busy = is_pending or self._replacing.locked() or self._has_moment()
            remaining = self._limits.settle - self._trace.quiet_seconds()
            if is_pending and remaining <= 0:
                await self._release()  # such as the deletion for which a finalizer waits
            if not is_busy and remaining <= 0:
                return
            if self._clock.monotonic() >= self._deadline or self._trace.problem:
                raise NeverQuiet
            await self._pause(POLL_SECONDS if is_busy else min(max(remaining, 0.001), POLL_SECONDS * 5))

    def _has_moment(self) -> bool:
        """Return whether the moment of a write has come, whose disturbance has not ended."""
        return self._is_disturbing or any(self._trace.hits.get(name) for name in self._armed)

    async def _pause(self, seconds: float) -> None:
        await self._clock.sleep(seconds)

    # --- the operator

    async def _start_operator(self) -> str:
        """Start the operator, and wait for its first request; return why there is none, "" if there is one."""
        began = (await self._client.get(CLOCKS, CLOCK))["status"]["time"]
        known, hits = self._trace.request_count(), sum(self._trace.hits.values())
        operator = self._setting.starter.start(self._kubeconfig, self._setting.scenario.environment)
        self._operators.append(operator)
        deadline = self._clock.monotonic() + HEARD_SECONDS
        while not self._is_heard(began, known, hits):
            is_late = self._clock.monotonic() >= deadline
            if is_late or operator.code is not None:
                line = operator.log.last_line()
                text = (
                    f"it exited with code {operator.code}"
                    if operator.code is not None
                    else f"it sent no request within {HEARD_SECONDS:g} s"
                )
                return f"{text}{f': {line}' if line else ''}"
            await self._pause(POLL_SECONDS / 4)
        self._trace.touch()
        return ""

    def _is_heard(self, began: str, known: int, hits: int) -> bool:
        """Return whether a request has arrived since then; one that a disturbance holds back is only seen by its hit.

        The watches of an operator that was killed end after that, but had begun before.
        """
        return sum(self._trace.hits.values()) > hits or any(
            each.began >= began for each in self._trace.requests[known:]
        )

    async def _replace_operator(self, *, grace: float, text: str) -> None:
        """End the operator, as a crash without a grace period, so that it can be started again. The caller has the lock."""
        operator = self._operators.pop()
        with self._not_counted():
            end = await asyncio.to_thread(operator.stop, grace)
        self.outcome.ignored_term |= (
            end.ignored_term and not self._has_moment()
        )  # a write that waits holds it
        self.outcome.log += operator.log.text()
        self._trace.note(text)
        await self._release_leases()

    async def _restart_now(self) -> bool:
        """Start an operator, and return whether it runs. The caller has the lock."""
        if problem := await self._start_operator():
            self.outcome.exits.append(problem)
        return not problem

    async def _release_leases(self) -> None:
        """Delete the Leases of the operator: it would wait until they expire."""
        names = {
            (each.namespace, each.name)
            for each in self._trace.requests
            if each.resource == LEASES and each.name and each.verb in ("get", "update", "patch")
        }
        for namespace, name in names:
            with suppress(ApiError, KindNotServed):
                await self._requests.delete("lease", name, namespace, ignore_not_found=True)

    async def _supervise(self) -> None:
        """Do what the plan says when one of its moments comes, and start an operator again that has ended."""
        while True:
            for name in [name for name in self._armed if self._trace.hits.get(name)]:
                self._is_disturbing = True  # so that the run is not taken for quiet meanwhile
                disturbance = self._armed.pop(name)
                try:
                    await _AT_WRITE[disturbance.action](self, disturbance, name)
                finally:
                    self._is_disturbing = False
            await self._restart_ended()
            with suppress(TimeoutError):
                async with timeout(self._clock, POLL_SECONDS):
                    await self._trace.arrived.wait()
            self._trace.arrived.clear()

    async def _restart_ended(self) -> None:
        if self._replacing.locked() or not self._operators:
            return
        operator = self._operators[-1]
        if operator.code is None or len(self.outcome.exits) >= MAX_EXITS:
            return
        line = operator.log.last_line()
        text = f"the operator exits with code {operator.code}{f': {line}' if line else ''}"
        self.outcome.exits.append(text)
        async with self._replacing:
            await self._replace_operator(grace=0, text=text)
            await self._pause(_EXIT_DELAY * 2 ** len(self.outcome.exits))
            await self._restart_now()

    def _kill_all(self) -> None:
        for operator in self._operators:
            try:
                operator.kill()
            except Failure as failure:
                self.outcome.problem = str(failure)
            self.outcome.log += operator.log.text()

    # --- disturbances

    async def _arm(self) -> None:
        """Create the Faults of the disturbances at writes."""
        earlier: dict[tuple[str, str, str], int] = {}
        ordered = sorted(
            (each for each in self._plan.disturbances if each.write is not None),
            key=lambda each: each.write.number if each.write else 0,
        )
        for index, disturbance in enumerate(ordered):
            assert disturbance.write is not None
            group, name = disturbance.write.group, f"explore-{index}"
            spec = {
                "match": self._match(verbs=[group[0]], resource=group[1], namespace=group[2]),
                "skip": max(disturbance.write.number - earlier.get(group, 0), 0),
                "times": 1,
                **_FAULTS.get(disturbance.action, _FREEZE),
            }
            earlier[group] = earlier.get(group, 0) + 1
            self._armed[name] = disturbance
            await self._client.create(FAULTS, object_of("Fault", name, spec))

    def _match(self, **criteria: Any) -> Mapping[str, Any]:
        return {"user": self._setting.user, **criteria}

    async def _disturb_after(self, number: int) -> None:
        for disturbance in self._plan.disturbances:
            if disturbance.write is None and disturbance.step == number:
                self._trace.note(f"disturbance: {disturbance}")
                await self._apply(disturbance)

    async def _apply(self, disturbance: Disturbance) -> None:
        try:
            await _ACTIONS[disturbance.action](self, disturbance)
        except ObjectMissing as error:
            self._trace.note(f"it does not take place: {error}")
            self.outcome.is_applied = False
        self._trace.touch()  # its Changes are still to come

    def _later(self, work: Coroutine[Any, Any, None]) -> None:
        self._pending.add(start("disturbance", work))

    async def _delete_fault(self, name: str) -> None:
        with suppress(NotFound):
            await self._client.delete(FAULTS, Key("", name))

    async def _add_fault(self, spec: Mapping[str, Any]) -> str:
        return meta.name(await self._client.create(FAULTS, object_of("Fault", "", spec)))

    async def at_refusal(self, disturbance: Disturbance, _name: str) -> None:
        self._trace.note(f"disturbance: {disturbance}")

    async def at_crash(self, disturbance: Disturbance, name: str) -> None:
        async with self._replacing:
            await self._replace_operator(grace=0, text=f"disturbance: {disturbance}")
            await self._delete_fault(name)
            await self._restart_now()

    async def at_crash_with_stale_start(self, disturbance: Disturbance, name: str) -> None:
        """Let the operator start with what was before its last write."""
        async with self._replacing:
            await self._replace_operator(grace=0, text=f"disturbance: {disturbance}")
            await self._delete_fault(name)
            newest = await self._newest_own_revision()
            if newest:
                fault = await self._add_fault(
                    {"match": self._match(verbs=["list", "watch"]), "stale": {"revision": newest - 1}}
                )
                self._trace.note(f"its lists and watches show revision {newest - 1}, the newest is {newest}")
                self._releases.append(lambda: self._end_span(fault, "its watches show everything again"))
            else:
                self._trace.note("it has written nothing that its lists and watches could miss")
                self.outcome.is_applied = False
            await self._restart_now()

    async def _newest_own_revision(self) -> int:
        """Return the revision of the operator's last write; 0 if there is none. The trace may not have it yet."""
        changes = await list_changes(self._client, {"user": self._setting.user})
        specs = [each["spec"] for each in changes]
        return max((spec["revision"] for spec in specs if kind_of(spec["object"]) not in NOISE), default=0)

    async def at_freeze(self, disturbance: Disturbance, name: str) -> None:
        """Do something while a write of the operator waits, which is then executed."""
        self._trace.note(f"disturbance: {disturbance}")
        await self._apply(disturbance)
        await self._delete_fault(name)

    async def _end_span(self, fault: str, text: str) -> None:
        self._trace.note(text)
        await self._delete_fault(fault)

    async def restart(self, _: Disturbance) -> None:
        async with self._replacing:
            await self._replace_operator(grace=_GRACE_SECONDS, text="the operator is stopped")
            await self._restart_now()

    async def start_second(self, _: Disturbance) -> None:
        async with self._replacing:
            is_running = await self._restart_now()
            self._operators.reverse()  # the first one stays the one that plans stop
        if not is_running:
            raise ObjectMissing(f"there is no second operator, {self.outcome.exits[-1]}")

    async def lose_lease(self, _: Disturbance) -> None:
        spec = {
            "match": self._match(verbs=["update", "patch"], resource=LEASES),
            "steal": {"holder": "another", "seconds": 1},
        }
        fault = await self._add_fault({**spec, "times": 1})
        with self._not_counted():
            is_lost = await self._wait_until(lambda: bool(self._trace.hits.get(fault)), _MOMENT_SECONDS)
        if not is_lost:
            await self._delete_fault(fault)
            raise ObjectMissing("the operator does not renew its Lease")

    async def hold(self, disturbance: Disturbance) -> None:
        fault = await self._add_fault(
            {"match": self._match(verbs=["watch"], resource=disturbance.resource), "hold": {}}
        )
        text = f"the events of {disturbance.resource} arrive now"
        self._releases.append(lambda: self._end_span(fault, text))

    async def drop(self, disturbance: Disturbance) -> None:
        match = self._match(verbs=["watch"], resource=disturbance.resource)
        fault = await self._add_fault({"match": match, "drop": {}})

        async def expire() -> None:
            self._trace.note(f"the watch of {disturbance.resource} ends with 410")
            await self._delete_fault(fault)
            await self._delete_fault(await self._add_fault({"match": match, "refuse": {"status": 410}}))

        self._releases.append(expire)

    async def delete_node(self, _: Disturbance) -> None:
        nodes = await self._requests.list("nodes", "", "", "")
        if len(nodes) < 2:
            raise ObjectMissing("there is no other node")
        pods = await self._requests.list("pods", "", "", "")
        names = [pod["spec"].get("nodeName") for pod in pods]
        node = max(nodes, key=lambda node: (names.count(meta.name(node)), meta.name(node)))
        await self._requests.delete("node", meta.name(node), "default", ignore_not_found=True)

    async def delete_owned(self, disturbance: Disturbance) -> None:
        kind, namespace, name = self._find(disturbance)
        await self._requests.delete(kind, name, namespace or "default", ignore_not_found=True)

    async def edit_owned(self, disturbance: Disturbance) -> None:
        """Change a field of an object that the operator has set; of a default it may say nothing."""
        kind, namespace, name = self._find(disturbance)
        try:
            found = await ResourceNames(self._client).find(kind)
            edit = await edit_field(self._client, found.resource, Key(namespace, name))
        except (NotFound, KindNotServed, NotEditable) as error:
            raise ObjectMissing(f"{kind} {name}: {error}") from error
        self._trace.note(f"{edit} of {kind} {name}")

    async def change_subject(self, disturbance: Disturbance) -> None:
        edit = await self._edit_subject(self._find(disturbance))
        await self._quiet()
        kind, namespace, name = self._find(disturbance)
        await self._requests.patch((kind, name, edit.back), namespace or "default", "merge", "")

    async def _edit_subject(self, identity: Identity) -> Edit:
        """Change a field of an object: the first one that may have another value."""
        kind, namespace, name = identity
        problem = "it has no field to change"
        for edit in edits_of(await self._current(identity))[:MAX_TRIES]:
            try:
                await self._requests.patch((kind, name, edit.forward), namespace or "default", "merge", "")
            except ApiError as error:
                problem = error.message
            else:
                self._trace.note(f"{edit.text} of {kind} {name}")
                return edit
        raise ObjectMissing(f"{kind} {name}: {problem}")

    async def _current(self, identity: Identity) -> ReadOnlyTree:
        """Return an object from the server: a trace has no values of Secrets."""
        kind, namespace, name = identity
        try:
            tree: ReadOnlyTree = await self._requests.get(kind, name, namespace or "default")
        except (NotFound, KindNotServed) as error:
            raise ObjectMissing(f"there is no {kind} {name}") from error
        return tree

    async def delete_subject(self, disturbance: Disturbance) -> None:
        await self._end_subject(plans.ENDINGS[disturbance.action])

    async def recreate_subject(self, disturbance: Disturbance) -> None:
        """Delete the resource, and create it with the same content when it is gone, but without what the operator has noted in it."""
        if self._is_subject_deleted:
            raise ObjectMissing(f"{disturbance.object} was deleted for good")
        identity = kind, namespace, name = self._find(disturbance)
        current = await self._current(identity)
        await self._wait_until(lambda: self._trace.has_seen(current), self._limits.settle)
        metadata = {"name": name, **self._trace.metadata_of_others(identity)}
        content = {field: value for field, value in current.items() if field not in ("metadata", "status")}
        await self._requests.delete(kind, name, namespace or "default", ignore_not_found=True)

        async def create() -> None:
            seconds = max(self._deadline - self._clock.monotonic(), 0.1)
            await self._requests.wait_gone(kind, name, seconds, namespace or "default")
            async with self._creating:
                if not self._is_subject_deleted:
                    self._trace.note(f"{kind} {name} is created anew")
                    await self._requests.apply({**content, "metadata": metadata}, namespace or "default")

        self._later(_unless_waiting_fails(create()))

    async def _end_subject(self, ending: str) -> None:
        ref = self._setting.scenario.subject
        assert ref is not None
        self._trace.note(f"{'the namespace of ' if ending == plans.TERMINATE else ''}{ref.target} is deleted")
        async with self._creating:
            self._is_subject_deleted = True
            await self._delete_subject(ref, ending)
        self._trace.touch()  # its Changes are still to come

    async def _delete_subject(self, ref: ObjectRef, ending: str) -> None:
        with suppress(KindNotServed):
            if ending == plans.TERMINATE:
                await self._requests.delete("namespace", ref.namespace, "default", ignore_not_found=True)
            else:
                await self._requests.delete(ref.target, None, ref.namespace, ignore_not_found=True)

    def _find(self, disturbance: Disturbance) -> Identity:
        """Return the object that a disturbance is about, which may have another name in each run."""
        kind = disturbance.object.partition("/")[0]
        for identity in sorted(self._trace.objects):
            of_kind, namespace, name = identity
            if of_kind == kind and namespace == disturbance.namespace and disturbance.is_about(name):
                return identity
        raise ObjectMissing(f"there is no {disturbance.object}")


class ObjectMissing(Exception):
    """A disturbance has no object in this run."""


async def _unless_waiting_fails(work: Coroutine[Any, Any, None]) -> None:
    with suppress(WaitFailed, ApiError, KindNotServed):
        await work


async def do_operation(requests: ObjectRequests, kubeconfig: Path, operation: StepOperation) -> None:
    """Do what a step does."""
    if operation.type == "apply":
        await requests.apply([*operation.objects], operation.namespace)
    elif operation.target is not None:
        target = operation.target
        if operation.type == "delete":
            await requests.delete(target.target, None, target.namespace, ignore_not_found=False)
        else:
            await requests.patch((target.target, None, operation.patch), target.namespace, None, "")
    else:
        await asyncio.to_thread(run_kubectl, kubeconfig, operation)


class StepFailed(Exception):
    """A command of a step failed; the message has its output."""


def run_kubectl(kubeconfig: Path, operation: StepOperation, seconds: float = _KUBECTL_SECONDS) -> None:
    """Run kubectl in the folder of the scenario, and in the namespace of the step unless its line has another."""
    flags = [f"--kubeconfig={kubeconfig}", f"--namespace={operation.namespace}"]
    line = shlex.join(["kubectl", *operation.arguments])
    try:
        done = subprocess.run(  # noqa: S603 - it is the user's line
            [find_kubectl(), *flags, *operation.arguments],
            cwd=operation.folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise StepFailed(f"{line}: it did not end within {seconds:g} s") from error
    except (OSError, ValueError) as error:  # such as a line that is too long
        raise StepFailed(f"{line}: {error}") from error
    if done.returncode:
        raise StepFailed(f"{line}: {done.stderr.strip() or f'it ended with code {done.returncode}'}")


_FREEZE: Final[Mapping[str, Any]] = {"delay": {"seconds": FOREVER}}
_FAULTS: Final[Mapping[str, Mapping[str, Any]]] = {
    plans.CRASH_BEFORE: {"delay": {"seconds": FOREVER}, "cut": {"when": "before"}},
    plans.CRASH_AFTER: {"cut": {"when": "after"}},
    plans.LOSE_ANSWER: {"cut": {"when": "after"}},
    plans.STALE_START: {"cut": {"when": "after"}},
    **{name: {"refuse": {"status": code}} for name, code in plans.REFUSALS.items()},
}
"""The effects of the Fault at a write; the write waits for other actions."""
_ACTIONS: Final[Mapping[str, Callable[[PlanRun, Disturbance], Awaitable[None]]]] = {
    plans.RESTART: PlanRun.restart,
    plans.SECOND: PlanRun.start_second,
    plans.LOSE_LEASE: PlanRun.lose_lease,
    plans.HOLD: PlanRun.hold,
    plans.DROP: PlanRun.drop,
    plans.NODE: PlanRun.delete_node,
    plans.DELETE_OWNED: PlanRun.delete_owned,
    plans.EDIT_OWNED: PlanRun.edit_owned,
    plans.DELETE_SUBJECT: PlanRun.delete_subject,
    plans.TERMINATE_NAMESPACE: PlanRun.delete_subject,
    plans.RECREATE: PlanRun.recreate_subject,
    plans.CHANGE_SUBJECT: PlanRun.change_subject,
}
_AT_WRITE: Final[Mapping[str, Callable[[PlanRun, Disturbance, str], Awaitable[None]]]] = {
    **dict.fromkeys(_ACTIONS, PlanRun.at_freeze),
    **dict.fromkeys((plans.LOSE_ANSWER, *plans.REFUSALS), PlanRun.at_refusal),
    plans.CRASH_BEFORE: PlanRun.at_crash,
    plans.CRASH_AFTER: PlanRun.at_crash,
    plans.STALE_START: PlanRun.at_crash_with_stale_start,
}
