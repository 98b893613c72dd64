"""One run: a fork, the operator in it, the steps of the scenario, the disturbances of a plan, and what the run then looks like."""

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from math import inf
from typing import Final

from msgspec.structs import replace

from mockube.apimachinery import meta
from mockube.apimachinery.status import ApiError, NotFound
from mockube.component_base.supervision import run_until, start, timeout
from mockube.objects.conditions import read_condition
from mockube.objects.errors import InvalidValue, KindNotServed, WaitFailed
from mockube.operators.account import write_kubeconfig
from mockube.operators.end_state import kind_of

from . import plans
from .disturbances import apply, end_subject, start_again
from .moments import AT_MOMENT, arm
from .operator_run import END_POLL_SECONDS, POLL_SECONDS, NeverQuiet, OperatorRun, newest_revision
from .run_outcome import GoesOn, IsAtEnd, IsEnough, RunOutcome, is_never_enough
from .scenario import GONE, Expectation, StepOperation
from .steps import StepFailed, do_operation, wait_for

_HELD_SHARE: Final = 4
"""How long something is held back at most while a condition of a step is waited for, as a multiple of that time."""
_STEP_ERRORS: Final = (ApiError, KindNotServed, WaitFailed)


class PlanRun(OperatorRun):
    async def run(
        self, is_at_end: IsAtEnd, goes_on: GoesOn, is_enough: IsEnough = is_never_enough
    ) -> RunOutcome:
        """Run the scenario with the disturbances, and wait until the end is as expected, for a limited time; longer if it goes on then."""
        write_kubeconfig(
            self.kubeconfig, self.access, self.setting.identity.token, self.setting.identity.namespace
        )
        write_kubeconfig(self.admin, self.access, self.access.token, self.setting.identity.namespace)
        supervision = start("supervision of a run", self._supervise())
        try:
            await arm(self)
            async with self.replacing:
                self.outcome.problem = await self.start_operator()
            if not self.outcome.problem:
                await run_until(self._shows_enough(is_enough), self._act_to_the_end(is_at_end, goes_on))
        except NeverQuiet:
            self.outcome.is_quiet = False
        finally:
            for task in (supervision, *self.pending):  # a wait for a deletion may take minutes
                task.cancel()
            await asyncio.gather(supervision, *self.pending, return_exceptions=True)
            await asyncio.to_thread(self.kill_all)
        if not supervision.cancelled() and (error := supervision.exception()):
            raise error
        if self.trace.problem and not self.outcome.problem:
            self.outcome.problem = self.trace.problem
        self.outcome.is_applied &= not self.armed
        return self.outcome

    async def _shows_enough(self, is_enough: IsEnough) -> None:
        """Wait until the operator has deleted what is looked for, and a little longer for what follows."""
        seen = 0
        while True:
            if self.trace.deletions > seen:
                seen = self.trace.deletions
                if is_enough(self.outcome):
                    break
            await self.pause(END_POLL_SECONDS)
        await self.pause(self.limits.settle)
        self.outcome.is_cut_short = True

    async def _act_to_the_end(self, is_at_end: IsAtEnd, goes_on: GoesOn) -> None:
        await self._act()
        await self._end(is_at_end, goes_on)

    async def _act(self) -> None:
        await self._disturb_after(plans.NO_STEP)
        for number, step in enumerate(self.setting.scenario.act if self.plan.has_steps else ()):
            await self.end_pending()
            await self._begin_step(f"step {number + 1}: {step.name}")
            problem = await self._do(step.operation)
            if problem and self.later_releases:  # the step needs what the operator has not seen yet
                await self.release_all()
                await self.quiet()
                problem = await self._do(step.operation)
            if self.is_down:
                await start_again(self)
                # A webhook of the operator may have refused it.
                problem = problem and await self._do(step.operation)
            if problem:
                self.outcome.failed_steps.append(f"step {number + 1}: {problem}")
                return
            for expectation in step.until:
                if not await self._wait(expectation, self.setting.scenario.timeout):
                    self.outcome.failed_steps.append(f"step {number + 1}: waited in vain for {expectation}")
                    return
            await self._disturb_after(number)
        if not self.plan.disturbances:
            self.deadline = self.clock.monotonic() + self.limits.max_seconds
        if self.plan.ending and not any(each.action in plans.ENDINGS for each in self.plan.disturbances):
            await self.quiet()
            await end_subject(self, self.plan.ending)

    async def _begin_step(self, text: str) -> None:
        self.trace.step_revisions.append(await newest_revision(self.client))
        self.trace.note(text)
        self.count_step()

    async def _do(self, operation: StepOperation) -> str:
        """Do what a step does, and return why that is not possible any more after a disturbance; "" if it is done."""
        for part in self._without_subject(operation) if self.is_subject_deleted else (operation,):
            try:
                await do_operation(self.requests, self.admin, part)
            except (*_STEP_ERRORS, StepFailed) as error:
                if self.is_subject_deleted:
                    self.trace.note(f"it is not possible any more: {error}")
                    continue
                return str(error)
        return ""

    def _without_subject(self, operation: StepOperation) -> Iterator[StepOperation]:
        """Yield the parts of a step that may still be possible: not the resource that was deleted for good."""
        ref = self.setting.scenario.subject
        if not operation.objects:
            yield operation
        for tree in operation.objects:
            identity = (kind_of(tree), meta.namespace(tree) or operation.namespace, meta.name(tree))
            if ref is None or not ref.is_of(identity):
                yield replace(operation, objects=[tree])

    async def _wait(self, expectation: Expectation, seconds: float) -> bool:
        """Wait for an expectation; longer if the operator tries again later, and the run is one that waits for that."""
        began = self.clock.monotonic()
        is_met = await self._wait_as_undisturbed(expectation, seconds)
        if is_met or not self.limits.is_late:
            return is_met
        remaining = self.until_next_try(0.0) - (self.clock.monotonic() - began)
        with self.not_counted():
            return remaining > 0 and await self._is_met(expectation, remaining)

    async def _wait_as_undisturbed(self, expectation: Expectation, seconds: float) -> bool:
        """Wait for an expectation; not after the subject was deleted for good, because it may never hold then."""
        if self.plan.ending and self.plan.disturbances:
            await self._is_met(expectation, self.limits.settle)
            return True
        if self.plan.disturbances:  # how long such a run may take is learned from the undisturbed ones
            remaining = max(self.deadline - self.clock.monotonic(), 0.1)
            seconds = min(max(seconds, self.limits.patience), remaining)
        if self.later_releases:
            await run_until(self._nothing_happens(), self._is_met(expectation, seconds))
            return True
        releasing = start("release of what is held back", self._release_what_is_waited_for())
        waiting = self._is_met(expectation, seconds)
        try:
            if self.limits.pause == inf:
                return await waiting
            return bool(await run_until(self._stays_quiet(), waiting))
        finally:
            releasing.cancel()
            await asyncio.gather(releasing, return_exceptions=True)

    async def _stays_quiet(self) -> None:
        """Wait until nothing has been written for much longer than in undisturbed runs: what did not come then does not come."""
        while (
            self.trace.quiet_seconds() < self.limits.pause
            or self.has_moment()
            or self.releases
            or self.replacing.locked()
        ):
            await self.pause(POLL_SECONDS)

    async def _nothing_happens(self) -> None:
        """Wait until a condition cannot come before the operator sees what is held back: its user goes on."""
        while self.trace.quiet_seconds() < self.limits.settle or self.has_moment():
            await self.pause(POLL_SECONDS)

    async def _release_what_is_waited_for(self) -> None:
        """End what was held back once nothing else is written, or after a while, because a condition may wait for it."""
        held_since: float | None = None
        while True:
            await self.pause(POLL_SECONDS)
            if not self.releases:
                held_since = None
                continue
            now = self.clock.monotonic()
            held_since = now if held_since is None else held_since
            is_quiet = self.trace.quiet_seconds() >= self.limits.settle and not self.has_moment()
            if is_quiet or now - held_since >= _HELD_SHARE * self.limits.settle:
                await self.release()

    async def _is_met(self, expectation: Expectation, seconds: float) -> bool:
        try:
            await wait_for(self.requests, expectation, seconds)
        except (WaitFailed, KindNotServed, InvalidValue) as error:
            self.outcome.detail = str(error)
            return False
        return True

    async def _end(self, is_at_end: IsAtEnd, goes_on: GoesOn) -> None:
        await self.quiet()
        await self.release_all()
        is_end = await self._wait_for_end(is_at_end, self.limits.patience)
        seconds = 0.0
        if not is_end and not self.armed:
            seconds = self.limits.patience if self.limits.is_late else await goes_on(self.outcome)
        if not self.outcome.failed_steps:  # a step has waited for the next try
            seconds = seconds and self.until_next_try(seconds)
        if seconds and (remaining := seconds - self.outcome.waited) > 0:
            self.deadline += self.limits.max_seconds
            await self._wait_for_end(is_at_end, remaining)

    async def _wait_for_end(self, is_at_end: IsAtEnd, seconds: float) -> bool:
        """Wait for a quiet end, and return whether it is as expected."""
        await self.quiet()
        began = self.clock.monotonic()
        with self.not_counted():
            while not (is_end := await self._is_end(is_at_end)):
                if self.clock.monotonic() >= began + seconds or not self._can_go_on():
                    break
                await self.pause(self.limits.settle)
        self.outcome.waited += self.clock.monotonic() - began
        await self.quiet()
        await self._read_secrets()
        return is_end

    async def _is_end(self, is_at_end: IsAtEnd) -> bool:
        await self._read_secrets()
        await self._note_failed_expectations()
        return is_at_end(self.outcome)

    async def _read_secrets(self) -> None:
        if self.trace.has_secrets:
            self.trace.add_secrets(await self.requests.list("secrets", "", "", ""))

    def _can_go_on(self) -> bool:
        return any(operator.code is None for operator in self.operators)

    async def _note_failed_expectations(self) -> None:
        failed: list[str] = []
        is_comparable = self.plan.has_steps and not self.plan.ending
        for expectation in self.setting.scenario.expect if is_comparable else ():
            ref = expectation.object
            try:
                tree = await self.requests.get(ref.target, None, ref.namespace)
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

    async def _supervise(self) -> None:
        """Do what the plan says when one of its moments comes, and start an operator again that has ended."""
        while True:
            for name in [name for name in self.armed if self.trace.hits.get(name)]:
                self.is_disturbing = True  # so that the run is not taken for quiet meanwhile
                disturbance = self.armed.pop(name)
                try:
                    await AT_MOMENT[disturbance.action](self, disturbance, name)
                finally:
                    self.is_disturbing = False
            await self.restart_ended()
            with suppress(TimeoutError):
                async with timeout(self.clock, END_POLL_SECONDS):
                    await self.trace.arrived.wait()
            self.trace.arrived.clear()

    async def _disturb_after(self, number: int) -> None:
        for disturbance in self.plan.disturbances:
            if disturbance.write is None and disturbance.event is None and disturbance.step == number:
                self.trace.note(f"disturbance: {disturbance}")
                await apply(self, disturbance)
