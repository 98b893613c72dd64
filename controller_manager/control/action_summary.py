"""What a reconciliation did, in a few words for each kind of action: for people who read the newest reconciliations."""

from collections import Counter
from collections.abc import Iterator

from .actions import (
    Adopt,
    Create,
    Delete,
    Patch,
    Plan,
    PlanResult,
    RecordEvent,
    Release,
    RemoveFinalizer,
    Update,
)

_VERBS = {
    Create: "create",
    Delete: "delete",
    Update: "update",
    Patch: "patch",
    RemoveFinalizer: "remove the finalizer of",
}


def summarize(plan: Plan, outcome: PlanResult) -> tuple[str, ...]:
    """Return the writes that succeeded, and the planned adoptions, releases and Events, each with its number."""
    if not (outcome.writes or plan.actions):
        return ()  # most reconciliations
    counts = Counter([*_writes(outcome), *_others(plan)])
    return tuple(f"{text}: {count}" if count > 1 else text for text, count in counts.items())


def _writes(outcome: PlanResult) -> Iterator[str]:
    for write in outcome.writes:
        action = write.action
        if isinstance(action, Create | Delete | Update | Patch | RemoveFinalizer):
            subresource = (
                f"/{action.subresource}" if isinstance(action, Update | Patch) and action.subresource else ""
            )
            yield f"{_VERBS[type(action)]} {action.resource}{subresource}"


def _others(plan: Plan) -> Iterator[str]:
    for action in plan.actions:
        if isinstance(action, Adopt):
            yield from [f"adopt {action.resource}"] * len(action.orphans)
        elif isinstance(action, Release):
            yield from [f"release {action.resource}"] * len(action.objects)
        elif isinstance(action, RecordEvent):
            yield f"Event {action.reason}"
