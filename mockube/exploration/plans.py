"""Plans: what is disturbed, and when. Which plans there are, in which order they are tried, and the smallest one that shows a finding."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from itertools import accumulate, chain, zip_longest
from math import isqrt
from typing import Any, Final

from msgspec import Struct, field

from mockube.apimachinery.randomness import Random

PLANS: Final = 200
"""How many plans are tried without a limit of the user."""
NO_STEP: Final = -1
"""The number of a step before the first one is done."""


class OperatorWrite(Struct, frozen=True, kw_only=True):
    """A write of the operator: the nth one with a verb for a resource in a namespace."""

    verb: str
    resource: str
    """As in a rule of RBAC: `configmaps`, `deployments.apps/scale`."""
    namespace: str
    number: int

    @property
    def group(self) -> tuple[str, str, str]:
        return self.verb, self.resource, self.namespace

    def __str__(self) -> str:
        place = f" in {self.namespace}" if self.namespace else ""
        count = "" if self.number == 0 else f", number {self.number + 1}"
        return f"{self.verb} of {self.resource}{place}{count}"


class Disturbance(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One thing that a plan does, before a write of the operator or after a step of the scenario."""

    action: str
    write: OperatorWrite | None = None
    step: int = NO_STEP
    resource: str = ""
    """The resource of an action on its events, or the kind of the object that it is about; `*` for all."""
    object: str = ""
    """The object that the action is about, as `KIND/NAME`, with a star for a random part."""
    namespace: str = ""

    def __str__(self) -> str:
        about = f" {self.object}" if self.object else f" of {self.resource}" if self.resource else ""
        when = (
            f"at {self.write}"
            if self.write is not None
            else f"after step {self.step + 1}"
            if self.step >= 0
            else "from the start"
        )
        return f"{TEXTS[self.action]}{about}, {when}"

    def is_about(self, name: str) -> bool:
        """Return whether its object may have a name in a run."""
        prefix, star, suffix = self.object.partition("/")[2].partition("*")
        return name.startswith(prefix) and name.endswith(suffix) if star else name == prefix

    @property
    def touched(self) -> str:
        """The resource that it is about, by which pairs are chosen."""
        return self.write.resource.partition("/")[0] if self.write is not None else self.resource


class Plan(Struct, frozen=True, kw_only=True):
    """The disturbances of one run; none for the undisturbed one."""

    disturbances: Sequence[Disturbance] = ()
    ending: str = ""
    """What happens at the end of each run with which its end is compared: `delete` or `terminate`; "" for nothing."""
    has_steps: bool = True
    """Whether the steps of the scenario are done; without them, a run shows what the operator makes for itself."""

    def __str__(self) -> str:
        return "; ".join(map(str, self.disturbances)) or UNDISTURBED_TEXTS[self.ending]


UNDISTURBED: Final = Plan()
WITHOUT_STEPS: Final = Plan(has_steps=False)
DELETE: Final = "delete"
TERMINATE: Final = "terminate"
UNDISTURBED_TEXTS: Final[Mapping[str, str]] = {
    "": "nothing is disturbed",
    DELETE: "nothing is disturbed, and the resource is deleted at the end",
    TERMINATE: "nothing is disturbed, and the namespace is deleted at the end",
}

CRASH_BEFORE: Final = "crash before"
CRASH_AFTER: Final = "crash after"
LOSE_ANSWER: Final = "lose the answer"
REFUSALS: Final[Mapping[str, int]] = {
    "conflict": 409,
    "too many requests": 429,
    "server error": 500,
    "timeout": 504,
}
RESTART: Final = "restart"
SECOND: Final = "second operator"
LOSE_LEASE: Final = "lose the lease"
HOLD: Final = "hold events"
DROP: Final = "drop events"
STALE_START: Final = "crash and stale lists"
NODE: Final = "delete a node"
DELETE_OWNED: Final = "delete an owned object"
EDIT_OWNED: Final = "edit an owned object"
DELETE_SUBJECT: Final = "delete the resource"
RECREATE: Final = "delete and create the resource"
CHANGE_SUBJECT: Final = "change the resource and back"
TERMINATE_NAMESPACE: Final = "delete the namespace"

TEXTS: Final[Mapping[str, str]] = {
    CRASH_BEFORE: "the operator crashes before the write is executed",
    CRASH_AFTER: "the operator crashes after the write is executed, before it has the answer",
    LOSE_ANSWER: "the write is executed, and its answer is lost",
    **{name: f"the write is refused with {code} ({name})" for name, code in REFUSALS.items()},
    RESTART: "the operator restarts",
    SECOND: "a second operator runs",
    LOSE_LEASE: "the operator loses its lease",
    HOLD: "the events are held back",
    DROP: "the events are lost, and then the watch ends with 410:",
    STALE_START: "the operator crashes, and then its lists and watches are old:",
    NODE: "a node is deleted",
    DELETE_OWNED: "somebody deletes",
    EDIT_OWNED: "somebody edits",
    DELETE_SUBJECT: "somebody deletes",
    RECREATE: "somebody deletes and creates anew",
    CHANGE_SUBJECT: "somebody changes, and changes back",
    TERMINATE_NAMESPACE: "somebody deletes the namespace",
}
"""What each action does, in a report. Their names are those of `without` in a scenario."""
ENDINGS: Final[Mapping[str, str]] = {DELETE_SUBJECT: DELETE, TERMINATE_NAMESPACE: TERMINATE}
"""The actions after which the end is that of another undisturbed run."""

_WRITE_ACTIONS: Final = (CRASH_BEFORE, CRASH_AFTER, LOSE_ANSWER, *REFUSALS)
AT_WRITES: Final = (*_WRITE_ACTIONS, STALE_START)
"""The actions that take place at a write only."""
_CONFLICTING: Final = ("update", "patch")
"""The verbs that a conflict can meet: a create that is refused with 409 would say that the object exists."""


class Learned(Struct, frozen=True, kw_only=True):
    """What the undisturbed runs have shown, of which plans are made."""

    writes: Sequence[OperatorWrite]
    watched: Sequence[str]
    """The resources that the operator watches."""
    owned: Sequence[tuple[str, str]]
    """The objects that the operator has made, as `KIND/NAME` with their namespaces."""
    subject: str = ""
    subject_namespace: str = ""
    steps: int = 1
    has_lease: bool = False
    has_nodes: bool = True
    lists_from_cache: bool = False
    """Whether a list may be old: the operator lists with resourceVersion=0."""
    without: frozenset[str] = field(default_factory=frozenset)


def count_writes(groups: Sequence[tuple[str, str, str]]) -> Sequence[OperatorWrite]:
    """Return writes with their numbers, in their order."""
    seen: Counter[tuple[str, str, str]] = Counter()
    writes: list[OperatorWrite] = []
    for verb, resource, namespace in groups:
        writes.append(
            OperatorWrite(
                verb=verb, resource=resource, namespace=namespace, number=seen[verb, resource, namespace]
            )
        )
        seen[verb, resource, namespace] += 1
    return writes


def single_plans(learned: Learned, random: Random) -> Sequence[Plan]:
    """Return the plans with one disturbance: of each action one in turn, so that a small budget tries all actions."""
    groups: dict[str, list[Disturbance]] = {}
    for each in _disturbances(learned):
        if each.action not in learned.without:
            groups.setdefault(each.action, []).append(each)
    turns = zip_longest(*(shuffled(group, random) for group in groups.values()))
    return [plan_of([each]) for turn in turns for each in turn if each is not None]


def plan_of(disturbances: Sequence[Disturbance]) -> Plan:
    endings = [ENDINGS[each.action] for each in disturbances if each.action in ENDINGS]
    return Plan(
        disturbances=disturbances, ending=max(endings, default="")
    )  # that of the namespace, if there are both


def pair_plans(singles: Sequence[Plan], random: Random) -> Iterator[Plan]:
    """Yield the plans with two disturbances, those that touch the same resource first.

    Each pair is drawn when it is asked for: there may be millions, of which few are tried.
    """
    each = [plan.disturbances[0] for plan in singles]
    groups: dict[str, list[Disturbance]] = {}
    for disturbance in each:
        groups.setdefault(disturbance.touched, []).append(disturbance)
    far = (pair for pair in _drawn_pairs([each], random) if pair[0].touched != pair[1].touched)
    for pair in chain(_drawn_pairs([*groups.values()], random), far):
        if not _is_same_moment(*pair):
            yield plan_of(pair)


def _drawn_pairs(
    groups: Sequence[Sequence[Disturbance]], random: Random
) -> Iterator[tuple[Disturbance, Disturbance]]:
    """Yield the pairs within each group, in a random order of all."""
    ends = [*accumulate(_count_pairs(len(group)) for group in groups)]
    for number in drawn_numbers(ends[-1] if ends else 0, random):
        group = bisect_right(ends, number)
        rest = number - (ends[group - 1] if group else 0)
        second = (1 + isqrt(1 + 8 * rest)) // 2  # before it there are the pairs of its predecessors
        yield groups[group][rest - _count_pairs(second)], groups[group][second]


def _count_pairs(members: int) -> int:
    return members * (members - 1) // 2


def drawn_numbers(count: int, random: Random) -> Iterator[int]:
    """Yield the numbers below a count in a random order, without a list of all: a shuffle that stores what it has moved."""
    moved: dict[int, int] = {}
    for last in range(count - 1, -1, -1):
        at = int.from_bytes(random.bytes(8)) % (last + 1)
        yield moved.get(at, at)
        moved[at] = moved.pop(last, last)


def _is_same_moment(first: Disturbance, second: Disturbance) -> bool:
    """Return whether two disturbances harm the same write: the server applies one Fault to a request."""
    return first.write is not None and first.write == second.write


def shuffled(values: Sequence[Any], random: Random) -> list[Any]:
    drawn = [(random.bytes(8), index) for index in range(len(values))]
    return [values[index] for _, index in sorted(drawn)]


def _disturbances(learned: Learned) -> Iterator[Disturbance]:
    for write in learned.writes:
        for action in _WRITE_ACTIONS:
            if REFUSALS.get(action) != 409 or write.verb in _CONFLICTING:
                yield Disturbance(action=action, write=write)
        if learned.lists_from_cache:
            yield Disturbance(action=STALE_START, write=write, resource="*")
        for resource in learned.watched:
            yield Disturbance(action=HOLD, write=write, resource=resource)
        yield from _of_subject(learned, write, NO_STEP)
    for step in range(NO_STEP, learned.steps):
        for resource in learned.watched:
            yield Disturbance(action=HOLD, step=step, resource=resource)
            yield Disturbance(action=DROP, step=step, resource=resource)
    for step in range(learned.steps):
        yield from _of_step(learned, step)
        yield from _of_subject(learned, None, step)


def _of_step(learned: Learned, step: int) -> Iterator[Disturbance]:
    yield Disturbance(action=RESTART, step=step)
    yield Disturbance(action=SECOND, step=step)
    if learned.has_lease:
        yield Disturbance(action=LOSE_LEASE, step=step)
    if learned.has_nodes:
        yield Disturbance(action=NODE, step=step)
    for target, namespace in learned.owned:
        for action in (DELETE_OWNED, EDIT_OWNED):
            yield Disturbance(action=action, step=step, object=target, namespace=namespace)


def _of_subject(learned: Learned, write: OperatorWrite | None, step: int) -> Iterator[Disturbance]:
    if not learned.subject:
        return
    for action in (RECREATE, DELETE_SUBJECT, *(() if write else (CHANGE_SUBJECT, TERMINATE_NAMESPACE))):
        if action == TERMINATE_NAMESPACE and learned.subject_namespace in ("", "default"):
            continue  # it cannot be deleted
        yield Disturbance(
            action=action, write=write, step=step, object=learned.subject, namespace=learned.subject_namespace
        )


async def smallest(plan: Plan, shows: Callable[[Plan], Awaitable[bool]]) -> Plan:
    """Return the smallest plan that still shows a finding: delta debugging over its disturbances."""
    disturbances, parts = [*plan.disturbances], 2
    while len(disturbances) > 1:
        size = -(-len(disturbances) // parts)
        chunks = [disturbances[at : at + size] for at in range(0, len(disturbances), size)]
        others = [[each for each in disturbances if each not in chunk] for chunk in chunks]
        candidates = [*chunks, *(others if len(chunks) > 2 else [])]
        for candidate in candidates:
            if await shows(plan_of(candidate)):
                disturbances, parts = candidate, max(2, min(parts - 1, len(candidate)))
                break
        else:
            if parts >= len(disturbances):
                break
            parts = min(len(disturbances), 2 * parts)
    return plan_of(disturbances)
