"""The moments of disturbances: the Faults at writes and events of the operator, and what is done when one takes place."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from mockube.control_objects import FAULTS, object_of

from . import plans
from .disturbances import ACTIONS, apply, expire, refuse_token
from .operator_run import OperatorRun
from .plans import Disturbance, OperatorEvent

FOREVER: Final = 1e6
_TOKEN_SECONDS: Final = 1.0
"""How long the operator has an expired token."""
_FREEZE: Final[Mapping[str, Any]] = {"delay": {"seconds": FOREVER}}
_FAULTS: Final[Mapping[str, Mapping[str, Any]]] = {
    plans.CRASH_BEFORE: {"delay": {"seconds": FOREVER}, "cut": {"when": "before"}},
    plans.CRASH_AFTER: {"cut": {"when": "after"}},
    plans.LOSE_ANSWER: {"cut": {"when": "after"}},
    plans.TWICE: {"repeat": {}},
    plans.STALE_START: {"cut": {"when": "after"}},
    plans.EXPIRE: {"refuse": {"status": 401}},
    **{name: {"refuse": {"status": code}} for name, code in plans.REFUSALS.items()},
}
"""The effects of the Fault at a write; the write waits for other actions."""


async def arm(run: OperatorRun) -> None:
    """Create the Faults of the disturbances at writes and at events."""
    earlier: dict[tuple[str, str, str], int] = {}
    ordered = sorted(
        (each for each in run.plan.disturbances if each.write is not None),
        key=lambda each: each.write.number if each.write else 0,
    )
    for index, disturbance in enumerate(ordered):
        assert disturbance.write is not None
        group, name = disturbance.write.group, f"explore-{index}"
        spec = {
            "match": run.match(verbs=[group[0]], resource=group[1], namespace=group[2]),
            "skip": max(disturbance.write.number - earlier.get(group, 0), 0),
            "times": 1,
            **_FAULTS.get(disturbance.action, _FREEZE),
        }
        earlier[group] = earlier.get(group, 0) + 1
        run.armed[name] = disturbance
        await run.client.create(FAULTS, object_of("Fault", name, spec))
    for index, disturbance in enumerate(run.plan.disturbances):
        if disturbance.event is not None:
            name = f"explore-event-{index}"
            run.armed[name] = disturbance
            await run.client.create(
                FAULTS, object_of("Fault", name, _fault_at(run, disturbance.event, disturbance.action))
            )


def _fault_at(run: OperatorRun, event: OperatorEvent, action: str) -> Mapping[str, Any]:
    selected = {
        "types": [event.type],
        "namespace": event.namespace,
        "name": event.name,
        "skip": event.number,
    }
    effect = "drop" if action == plans.LOSE_EVENT else "hold"
    return {"match": run.watches_of(event.resource), effect: {"fromEvent": selected}}


async def at_refusal(run: OperatorRun, disturbance: Disturbance, _name: str) -> None:
    run.trace.note(f"disturbance: {disturbance}")


async def at_crash(run: OperatorRun, disturbance: Disturbance, _name: str) -> None:
    async with run.replacing:
        await run.replace_operator(grace=0, text=f"disturbance: {disturbance}")
        await run.restart_now()  # the Fault stays: without it, a write that waits would be executed


async def at_event(run: OperatorRun, disturbance: Disturbance, name: str) -> None:
    """Let the events that are held back arrive when everything else is quiet, or after one of another resource; or let them be lost."""
    assert disturbance.event is not None
    run.trace.note(f"disturbance: {disturbance}")
    resource = disturbance.event.resource
    run.trace.hide(name, resource, run.trace.event_revisions[name] - 1)
    if disturbance.action == plans.LOSE_EVENT:
        run.hold_back(lambda: expire(run, name, resource))
        return

    async def release() -> None:
        await run.end_span(name, f"the events of {resource} arrive now")

    run.hold_back(release)
    if disturbance.action == plans.REORDER:
        run.later(_release_after(run, disturbance.resource, run.trace.event_revisions[name], release))


async def _release_after(
    run: OperatorRun, resource: str, revision: int, release: Callable[[], Awaitable[None]]
) -> None:
    """Release what is held back when there is a later change of a resource."""

    def is_over() -> bool:
        changes = run.trace.changes
        return release not in run.releases or any(
            each.resource == resource and each.revision > revision for each in changes
        )

    await run.wait_until(is_over, run.deadline - run.clock.monotonic())
    if release in run.releases:
        run.releases.remove(release)
        await release()


async def at_crash_with_stale_start(run: OperatorRun, disturbance: Disturbance, _name: str) -> None:
    run.trace.note(f"disturbance: {disturbance}")
    await apply(run, disturbance)


async def at_freeze(run: OperatorRun, disturbance: Disturbance, name: str) -> None:
    """Do something while a write of the operator waits, which is then executed."""
    run.trace.note(f"disturbance: {disturbance}")
    await apply(run, disturbance)
    await run.delete_fault(name)


async def at_expired_token(run: OperatorRun, disturbance: Disturbance, name: str) -> None:
    """Let the operator have another token a while after the first refusal: at a write, which alone was refused, or later."""
    if disturbance.write is not None:
        run.trace.note(f"disturbance: {disturbance}")
        name = await refuse_token(run)

    async def end() -> None:
        await run.pause(_TOKEN_SECONDS)
        await run.end_span(name, "the operator has another token")

    run.later(end())


AT_MOMENT: Final[Mapping[str, Callable[[OperatorRun, Disturbance, str], Awaitable[None]]]] = {
    **dict.fromkeys(ACTIONS, at_freeze),
    **dict.fromkeys((plans.LOSE_ANSWER, plans.TWICE, *plans.REFUSALS), at_refusal),
    **dict.fromkeys(plans.AT_EVENTS, at_event),
    plans.EXPIRE: at_expired_token,
    plans.CRASH_BEFORE: at_crash,
    plans.CRASH_AFTER: at_crash,
    plans.STALE_START: at_crash_with_stale_start,
}
