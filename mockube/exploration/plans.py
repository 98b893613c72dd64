"""Plans: what is disturbed, and when. Which plans there are, in which order they are tried, and the smallest one that shows a finding."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from itertools import accumulate, chain, zip_longest
from math import isqrt
from typing import Any, Final

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from mockube.apimachinery.randomness import Random
from mockube.apimachinery.tree import Tree
from mockube.operators.end_state import Identity

PLANS: Final = 200
"""How many plans are tried without a limit of the user."""
ALL: Final = "*"
"""All resources."""
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


class OperatorEvent(Struct, frozen=True, kw_only=True):
    """An event that the operator gets: the nth one of a type for an object of a resource that it watches."""

    type: str
    """ADDED, MODIFIED or DELETED."""
    resource: str
    namespace: str
    name: str
    """The name of the object, with a star for a random part."""
    number: int

    def __str__(self) -> str:
        place = f" in {self.namespace}" if self.namespace else ""
        count = "" if self.number == 0 else f", number {self.number + 1}"
        return f"{self.type} of {self.resource} {self.name}{place}{count}"


class Disturbance(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One thing that a plan does, at a write of the operator, at an event that it gets, or after a step of the scenario."""

    action: str
    write: OperatorWrite | None = None
    event: OperatorEvent | None = None
    step: int = NO_STEP
    resource: str = ""
    """The resource of an action on its events, or that of the object that it is about; `*` for all."""
    object: str = ""
    """The object that the action is about, as `KIND/NAME`, with a star for a random part."""
    namespace: str = ""
    revisions: int = 1
    """By how many of the operator's own writes what it reads is old."""
    steps: int = 0
    """What it reads is from before so many steps, in place of its writes; or, over how many steps events are held back."""
    is_deleting: bool = False
    """Whether what it reads is from when its resource was being deleted."""

    def __str__(self) -> str:
        resource = "all resources" if self.resource == ALL else self.resource
        about = f" {self.object}" if self.object else f" of {resource}" if resource else ""
        text = TEXTS[self.action]
        return f"{text.format(about) if '{}' in text else text + about}{self._how_far()}, {self._when()}"

    def _how_far(self) -> str:
        """Return how old what it reads is, or how long events are held back; "" if its text says that."""
        if self.action == HOLD:
            return f" over {self.steps} steps" if self.steps > 1 else ""
        if self.action != STALE_START:
            return ""
        if self.is_deleting:
            return " from when its resource was being deleted"
        if self.steps:
            return f" from before the last {'step' if self.steps == 1 else f'{self.steps} steps'}"
        return " old" if self.revisions == 1 else f" old by {self.revisions} of its writes"

    def _when(self) -> str:
        moment = self.write or self.event
        if moment is not None:
            return f"at {moment}"
        return f"after step {self.step + 1}" if self.step >= 0 else "from the start"

    def is_about(self, name: str) -> bool:
        """Return whether its object may have a name in a run."""
        prefix, star, suffix = self.object.partition("/")[2].partition("*")
        return name.startswith(prefix) and name.endswith(suffix) if star else name == prefix

    @property
    def touched(self) -> str:
        """The resource that it is about, by which pairs are chosen."""
        moment = self.write or self.event
        return moment.resource.partition("/")[0] if moment is not None else self.resource

    @property
    def moment(self) -> OperatorWrite | OperatorEvent | int:
        """When it takes place: two plans with another one cover more than two with the same."""
        return self.write or self.event or self.step

    @property
    def held_resource(self) -> str:
        """The resource whose watches it harms from the start; "" for none, `*` for all."""
        if self.event is not None:
            return self.event.resource
        return self.resource if self.action == LAG else ""


class Plan(Struct, frozen=True, kw_only=True):
    """The disturbances of one run; none for the undisturbed one."""

    disturbances: Sequence[Disturbance] = ()
    ending: str = ""
    """What happens at the end of each run with which its end is compared: `delete` or `terminate`; "" for nothing."""
    has_steps: bool = True
    """Whether the steps of the scenario are done; without them, a run shows what the operator makes for itself."""

    @property
    def parts(self) -> Sequence[str]:
        """What happens, as texts."""
        return [*map(str, self.disturbances)] or [UNDISTURBED_TEXTS[self.ending]]

    def trees(self) -> list[Tree]:
        """Return the disturbances as files have them."""
        return [
            {name: value for name, value in msgspec.to_builtins(each).items() if value not in ("", None)}
            for each in self.disturbances
        ]

    def __str__(self) -> str:
        return "; ".join(self.parts)


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
TWICE: Final = "executed twice"
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
HOLD_EVENT: Final = "hold an event"
REORDER: Final = "reorder events"
LOSE_EVENT: Final = "lose an event"
LAG: Final = "late events"
STALE_START: Final = "crash and stale lists"
RECREATE_STALE: Final = "create anew and stale lists"
DOWN: Final = "down during a step"
WEBHOOKS: Final = "webhooks down during a step"
EXPIRE: Final = "token expires"
SKEW: Final = "clock behind"
EVICT: Final = "evict a pod"
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
    TWICE: "the write is executed twice, and only the second answer arrives",
    **{name: f"the write is refused with {code} ({name})" for name, code in REFUSALS.items()},
    RESTART: "the operator restarts",
    SECOND: "a second operator runs",
    LOSE_LEASE: "the operator loses its lease",
    HOLD: "the events{} are held back",
    DROP: "the events{} are lost, and then the watch ends with 410",
    HOLD_EVENT: "the event and those that follow are held back",
    REORDER: "the event and those that follow are held back until there is one",
    LOSE_EVENT: "the event and those that follow are lost, and then the watch ends with 410",
    LAG: "the events{} arrive late",
    STALE_START: "the operator crashes, and then its lists and watches{} are",
    RECREATE_STALE: "the operator crashes after somebody has deleted and created anew{}, and its lists are from when it was being deleted",
    DOWN: "the operator and its webhooks are down during the next step",
    WEBHOOKS: "the webhooks do not answer during the next step",
    EXPIRE: "the operator's token expires, and there is another one a second later",
    SKEW: "the operator's clock is an hour behind that of the cluster",
    EVICT: "a pod is evicted",
    NODE: "a node is deleted",
    DELETE_OWNED: "somebody deletes",
    EDIT_OWNED: "somebody edits",
    DELETE_SUBJECT: "somebody deletes",
    RECREATE: "somebody deletes and creates anew",
    CHANGE_SUBJECT: "somebody changes, and changes back",
    TERMINATE_NAMESPACE: "somebody deletes the namespace",
}
"""What each action does, in a report; {} is what it is about, if that does not follow. Their names are those of `without` in a scenario."""
ENDINGS: Final[Mapping[str, str]] = {DELETE_SUBJECT: DELETE, TERMINATE_NAMESPACE: TERMINATE}
"""The actions after which the end is that of another undisturbed run."""

_WRITE_ACTIONS: Final = (CRASH_BEFORE, CRASH_AFTER, LOSE_ANSWER, TWICE, *REFUSALS)
AT_WRITES: Final = _WRITE_ACTIONS
"""The actions that take place at a write only."""
AT_EVENTS: Final = (HOLD_EVENT, REORDER, LOSE_EVENT)
"""The actions that take place at an event only."""
_OLD_BY: Final = (1, 3)
"""By how many writes of the operator the lists after a crash at a write are old."""
_OLDER_BY: Final = (4, 7, 14)
"""By how many they are old after a crash at the end of a step."""
_MAX_OLD_STEPS: Final = 3
_HELD_STEPS: Final = 2
"""Over how many steps events are held back."""
_DELETIONS: Final = ("delete", "deletecollection")
_FIRST_CHANGE, _REPEATS, _CHANGES_NOTHING = 1, 2, 3
"""The ranks of writes that delete nothing."""
_PROMISING_AFTER_STEPS: Final = (STALE_START, RECREATE_STALE, DOWN, HOLD)


class Learned(Struct, frozen=True, kw_only=True):
    """What the undisturbed runs have shown, of which plans are made."""

    writes: Sequence[OperatorWrite]
    conditional: frozenset[OperatorWrite] = field(default_factory=frozenset)
    """Those that a conflict can meet, because they name the version that they change."""
    events: Mapping[OperatorEvent, Sequence[str]] = field(default_factory=dict)
    """The events that the operator gets, each with the other resources of which it gets events after it."""
    watched: Sequence[str]
    """The resources that the operator watches."""
    owned: Sequence[tuple[str, str]]
    """The objects that the operator has made, as `KIND/NAME` with their namespaces."""
    subject: str = ""
    subject_namespace: str = ""
    resources: Mapping[str, str] = field(default_factory=dict)
    """The resources of kinds, as `deployments.apps` of `Deployment.apps`."""
    steps: int = 1
    ranks: Mapping[OperatorWrite, int] = field(default_factory=dict)
    """For how many plans writes wait, as `rank_writes` returns it."""
    has_lease: bool = False
    has_nodes: bool = True
    has_webhooks: bool = False
    cached: Sequence[str] = ()
    """The resources whose lists may be old: the operator lists them with resourceVersion=0."""
    recreated: Sequence[int] = ()
    """The steps at whose end the resource exists again after a deletion."""
    without: frozenset[str] = field(default_factory=frozenset)

    @property
    def old_views(self) -> Sequence[str]:
        """The resources whose lists are old after a crash: all at once, and each alone."""
        return [*([ALL] if len(self.cached) > 1 else []), *self.cached]

    def rank(self, write: OperatorWrite | None) -> int:
        return 0 if write is None else self.ranks.get(write, 0)

    def resource_of(self, target: str) -> str:
        """Return the resource of an object as `KIND/NAME`; "" if nobody has written one."""
        return self.resources.get(target.partition("/")[0], "")


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


def rank_writes(
    writes: Sequence[OperatorWrite], objects: Sequence[Identity | None]
) -> Mapping[OperatorWrite, int]:
    """Return for how many plans each write waits, by the objects that they change.

    Deletions come first, then a verb's first change of an object, then what mostly repeats it, and at last what changes nothing.
    """
    ranks: dict[OperatorWrite, int] = {}
    seen: set[tuple[str, Identity]] = set()
    for write, identity in zip(writes, objects, strict=True):
        if identity is None:
            ranks[write] = _CHANGES_NOTHING
        elif write.verb in _DELETIONS:
            ranks[write] = 0
        else:
            ranks[write] = _REPEATS if (write.verb, identity) in seen else _FIRST_CHANGE
            seen.add((write.verb, identity))
    return ranks


def single_plans(learned: Learned, random: Random) -> Sequence[Plan]:
    """Return the plans with one disturbance; every second one is a promising one, as long as there are any.

    Of each action there is one in turn, so that a small budget tries all actions. At writes and after steps, an action has a turn each. Of an
    action, that comes first which promises most; of these, that whose moment the fewest plans before it have, where writes that repeat
    others wait; and of these, one about what the operator writes.
    """
    every = [each for each in _disturbances(learned) if each.action not in learned.without]
    promising = {each for each in every if _is_promising(each, learned)}
    uses: Counter[OperatorWrite | OperatorEvent | int] = Counter()
    turns = [
        _in_turns([each for each in every if (each in promising) is is_first], learned, uses, random)
        for is_first in (True, False)
    ]
    pairs = zip_longest(*turns)
    return [plan_of([each]) for pair in pairs for each in pair if each is not None]


def _is_promising(disturbance: Disturbance, learned: Learned) -> bool:
    """Return whether a disturbance is one of those that have found most of the published bugs of operators."""
    write = disturbance.write
    if write is not None:
        return disturbance.action == CRASH_AFTER and learned.rank(write) <= _FIRST_CHANGE
    return disturbance.action in _PROMISING_AFTER_STEPS and not _lateness(
        disturbance, learned.resource_of(learned.subject)
    )


def _in_turns(
    disturbances: Sequence[Disturbance],
    learned: Learned,
    uses: Counter[OperatorWrite | OperatorEvent | int],
    random: Random,
) -> Iterator[Disturbance]:
    groups: dict[tuple[str, bool], list[Disturbance]] = {}
    for each in disturbances:
        groups.setdefault((each.action, each.write is None), []).append(each)
    remaining = [shuffled(group, random) for group in groups.values()]
    written = {write.resource.partition("/")[0] for write in learned.writes}
    subject = learned.resource_of(learned.subject)
    while remaining := [group for group in remaining if group]:
        for group in remaining:
            best = min(
                group,
                key=lambda each: (
                    _lateness(each, subject),
                    not each.is_deleting,
                    uses[each.moment] + learned.rank(each.write),
                    uses[each.moment],
                    each.touched not in written,
                    -each.step,  # the more there is already
                ),
            )
            group.remove(best)
            uses[best.moment] += 1
            yield best


def _lateness(disturbance: Disturbance, subject: str) -> int:
    """Return how late a disturbance is tried.

    Lists of the resource itself are old first, then those of all, then those of others, and at last those far from now; its own events are
    held back first, and over two steps, so that the operator sees nothing of what is between them.
    """
    if disturbance.action == HOLD and disturbance.write is None:
        return 2 * (disturbance.resource != subject) + (disturbance.steps < _HELD_STEPS)
    if disturbance.action != STALE_START:
        return 0
    is_far = disturbance.steps > 1 or disturbance.revisions > max(_OLD_BY)
    of_others = 0 if disturbance.resource == subject else 1 if disturbance.resource == ALL else 2
    return 3 * is_far + of_others


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
    """Return whether two disturbances harm the same write, or the same watches: the server applies one Fault to a request."""
    resources = {first.held_resource, second.held_resource}
    is_of_same_watches = "" not in resources and (len(resources) == 1 or ALL in resources)
    return is_of_same_watches or (first.write is not None and first.write == second.write)


def shuffled(values: Sequence[Any], random: Random) -> list[Any]:
    drawn = [(random.bytes(8), index) for index in range(len(values))]
    return [values[index] for _, index in sorted(drawn)]


def _disturbances(learned: Learned) -> Iterator[Disturbance]:
    for write in learned.writes:
        yield from _at_write(learned, write)
    for event, later in learned.events.items():
        yield Disturbance(action=HOLD_EVENT, event=event)
        yield Disturbance(action=LOSE_EVENT, event=event)
        for resource in later:
            yield Disturbance(action=REORDER, event=event, resource=resource)
    for resource in (*learned.watched, *([ALL] if len(learned.watched) > 1 else [])):
        yield Disturbance(action=LAG, resource=resource)
    yield Disturbance(action=SKEW)
    for step in range(NO_STEP, learned.steps):
        for resource in learned.watched:
            yield Disturbance(action=HOLD, step=step, resource=resource)
            yield Disturbance(action=DROP, step=step, resource=resource)
            if step + _HELD_STEPS < learned.steps:
                yield Disturbance(action=HOLD, step=step, resource=resource, steps=_HELD_STEPS)
    down = (DOWN, EXPIRE, *((WEBHOOKS,) if learned.has_webhooks else ()))
    for step in range(NO_STEP, learned.steps - 1):
        yield from (Disturbance(action=action, step=step) for action in down)
    for step in range(learned.steps):
        yield from _of_step(learned, step)
        yield from _old_lists_after(learned, step)
        yield from _of_subject(learned, None, step)


def _at_write(learned: Learned, write: OperatorWrite) -> Iterator[Disturbance]:
    for action in _WRITE_ACTIONS:
        if REFUSALS.get(action) != 409 or write in learned.conditional:
            yield Disturbance(action=action, write=write)
    yield Disturbance(action=EXPIRE, write=write)
    for resource in learned.old_views:
        for revisions in _OLD_BY if resource == learned.old_views[0] else _OLD_BY[:1]:
            yield Disturbance(action=STALE_START, write=write, resource=resource, revisions=revisions)
    for resource in learned.watched:
        yield Disturbance(action=HOLD, write=write, resource=resource)
    yield from _of_subject(learned, write, NO_STEP)


def _of_step(learned: Learned, step: int) -> Iterator[Disturbance]:
    yield Disturbance(action=RESTART, step=step)
    yield Disturbance(action=SECOND, step=step)
    if learned.has_lease:
        yield Disturbance(action=LOSE_LEASE, step=step)
    if learned.has_nodes:
        yield Disturbance(action=NODE, step=step)
        yield Disturbance(action=EVICT, step=step)
    for target, namespace in learned.owned:
        for action in (DELETE_OWNED, EDIT_OWNED):
            resource = learned.resource_of(target)
            yield Disturbance(action=action, step=step, resource=resource, object=target, namespace=namespace)


def _old_lists_after(learned: Learned, step: int) -> Iterator[Disturbance]:
    """Yield the crashes after a step with lists of the past: before this step or earlier ones, and at a deletion of the resource."""
    for resource in learned.old_views:
        stale = Disturbance(action=STALE_START, step=step, resource=resource)
        for steps in range(1, min(step + 1, _MAX_OLD_STEPS) + 1):
            yield replace(stale, steps=steps)
        for revisions in _OLDER_BY:
            if revisions <= len(learned.writes):
                yield replace(stale, revisions=revisions)
        if step in learned.recreated:
            yield replace(stale, is_deleting=True)
    if learned.cached and learned.subject:
        yield Disturbance(
            action=RECREATE_STALE,
            step=step,
            resource=learned.resource_of(learned.subject),
            object=learned.subject,
            namespace=learned.subject_namespace,
        )


def _of_subject(learned: Learned, write: OperatorWrite | None, step: int) -> Iterator[Disturbance]:
    if not learned.subject:
        return
    for action in (RECREATE, DELETE_SUBJECT, *(() if write else (CHANGE_SUBJECT, TERMINATE_NAMESPACE))):
        if action == TERMINATE_NAMESPACE and learned.subject_namespace in ("", "default"):
            continue  # it cannot be deleted
        yield Disturbance(
            action=action,
            write=write,
            step=step,
            resource=learned.resource_of(learned.subject),
            object=learned.subject,
            namespace=learned.subject_namespace,
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
