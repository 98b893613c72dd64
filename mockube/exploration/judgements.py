"""What is wrong with a run: its end, compared with that of an undisturbed one, and the way to it."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Final

import orjson
from msgspec import Struct

from mockube.apimachinery import json_pointer, meta
from mockube.apimachinery.quantity import QuantityError, parse
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apimachinery.wellknown import NAMESPACE_SYSTEM
from mockube.apimachinery.wildcards import matches_wildcards
from mockube.operators.end_state import (
    Counted,
    Difference,
    EndState,
    Identity,
    Role,
    Varying,
    differences,
    end_state,
    label_of,
)
from mockube.report.recording import RecordedRun

from .change import Change
from .invariants import Invariant
from .operator_run import MAX_EXITS
from .plans import DELETE, DOWN, RECREATE_STALE, RESTART, Plan
from .repeated_deletions import repeated_deletions
from .run_outcome import RunOutcome
from .trace import OperatorRequest, Trace
from .trace_replay import TraceReplay

HOT_FACTOR: Final = 5
HOT_LEAST: Final = 25
"""More writes than this many, and than five times those of an undisturbed run, are a hot loop."""
FIGHT_TURNS: Final = 4
"""So often a field goes back to what the other writer has set before, in a fight."""
STAYS: Final = "stays"
"""The type of a problem that the undisturbed deletion of the resource shows."""
REPAIRABLE: Final = frozenset({"end", "step", "expectation", STAYS})
"""The types of problems that are gone when an operator tries again later."""
_FORBIDDEN: Final = 403
_NUMBERS: Final = re.compile("[0-9]+")
_ZERO_VALUES: Final[Sequence[Any]] = ({}, [], "", 0, False)


Key = tuple[str, ...]
"""What is the same for the same problem of another run."""
Keys = frozenset[Key]


class OperatorProblem(Struct, frozen=True, kw_only=True):
    """One thing that is wrong with a run."""

    type: str
    text: str
    key: Key
    shown_by: Sequence[Change | OperatorRequest] = ()
    """The writes that show it, in their order."""


class UndisturbedRuns(Struct, frozen=True, kw_only=True):
    """The undisturbed runs, with which others are compared."""

    trace: Trace
    varying: Varying
    user: str
    writes: int
    ending: str = ""
    """How the runs end, as that of a plan."""
    own: frozenset[Role] = frozenset()
    """What the operator makes without the steps of the scenario: for itself, and not for the resource."""
    problems: Keys = frozenset()
    """The keys of what is wrong without a disturbance: it is reported once."""
    recording: RecordedRun | None = None
    """What a report of the run contains, if reports are written."""


def find_problems(
    outcome: RunOutcome, reference: UndisturbedRuns, invariants: Sequence[Invariant]
) -> Sequence[OperatorProblem]:
    """Return what is wrong with a run, but not what is wrong with the undisturbed one as well."""
    trace = outcome.trace
    if outcome.is_cut_short:
        return deletion_problems(outcome, reference)
    found = [
        *_at_end(outcome, reference),
        *_what_stays(outcome, reference),
        *_of_operator(outcome),
        *_violations(trace, invariants),
        *_foreign_deletes(trace, reference.user, outcome.plan),
        *_repeated_deletes(outcome, reference),
        *_owned_writes(trace, reference.user),
        *_fights(trace),
        *_forbidden(trace),
        *_hot_loops(outcome, reference),
    ]
    return _new_ones(found, reference)


def deletion_problems(outcome: RunOutcome, reference: UndisturbedRuns) -> Sequence[OperatorProblem]:
    """Return what is wrong with the deletions until now: whatever comes later in the run, it stays wrong."""
    found = [
        *_foreign_deletes(outcome.trace, reference.user, outcome.plan),
        *_repeated_deletes(outcome, reference),
    ]
    return _new_ones(found, reference)


def _new_ones(found: Iterable[OperatorProblem], reference: UndisturbedRuns) -> Sequence[OperatorProblem]:
    unique = {problem.key: problem for problem in found if problem.key not in reference.problems}
    return [*unique.values()]


def end_differences(trace: Trace, reference: UndisturbedRuns) -> Sequence[Difference]:
    """Compare the objects that either run has touched."""
    touched = trace.touched | reference.trace.touched
    fields = fields_written_in_both(trace, reference.trace)
    actual, expected = (
        _end_of(each, touched, reference.varying, fields) for each in (trace, reference.trace)
    )
    found = differences(expected, actual, reference.varying)
    return [each for each in found if not (reference.ending and _was_never_made(each, trace))]


def _was_never_made(difference: Difference, trace: Trace) -> bool:
    """Return whether an object is missing because the resource was deleted before it would have been made: all others are there."""
    identities = {each.identity for each in _changes_of(trace, difference.role)}
    return difference.type == "missing" and identities <= trace.objects.keys()


def fields_written_in_both(first: Trace, second: Trace) -> Counted:
    """Return what operators changed, in either run, of objects that controllers have made and that both runs have."""
    written = (first.fields_written_by_operator(), second.fields_written_by_operator())
    same = {*first.objects} & {*second.objects}
    return {
        identity: frozenset(chain.from_iterable(each.get(identity, ()) for each in written))
        for identity in same & {*written[0], *written[1]}
    }


def _end_of(trace: Trace, touched: frozenset[Identity], varying: Varying, fields: Counted) -> EndState:
    objects = [trace.objects[identity] for identity in touched if identity in trace.objects]
    counted = {identity: fields.get(identity, frozenset()) for identity in trace.counted}
    return end_state(objects, varying, counted)


def _at_end(outcome: RunOutcome, reference: UndisturbedRuns) -> Iterator[OperatorProblem]:
    for text in outcome.failed_steps:
        yield OperatorProblem(type="step", text=text, key=("step", text))
    for text in outcome.failed_expectations:
        yield OperatorProblem(
            type="expectation", text=f"at the end: {text}", key=("expectation", text.partition(":")[0])
        )
    if outcome.failed_steps:
        return  # it did not come to the end
    if not outcome.is_quiet:
        verb, resource, count = most_frequent_write(outcome.trace)
        most = f": {count} times {verb} of {resource}" if count else ""
        yield OperatorProblem(
            type="never quiet", text=f"it never becomes quiet{most}", key=("never quiet", verb, resource)
        )
        return
    roles = _roles_made(outcome.trace, reference) | _roles_made(reference.trace, reference)
    found = end_differences(outcome.trace, reference)
    # What the operator has made is the cause of what controllers make for it.
    for difference in sorted(found, key=lambda each: each.role not in roles):
        yield OperatorProblem(
            type="end",
            text=str(difference),
            key=("end", *difference.key),
            shown_by=_changes_of(outcome.trace, difference.role),
        )


def most_frequent_write(trace: Trace) -> tuple[str, str, int]:
    """Return the verb and the resource of the operator's most frequent write, and how often it was sent; 0 times if there is none."""
    writes = Counter((each.verb, each.resource) for each in trace.requests if each.is_write)
    (verb, resource), count = writes.most_common(1)[0] if writes else (("", ""), 0)
    return verb, resource, count


def _roles_made(trace: Trace, reference: UndisturbedRuns) -> frozenset[Role]:
    """Return the roles of what the operator has made in a run."""
    objects = trace.objects_made_by(reference.user)
    return frozenset(end_state(objects, reference.varying).labels.values())


def _what_stays(outcome: RunOutcome, reference: UndisturbedRuns) -> Iterator[OperatorProblem]:
    """Yield what the operator has made for its resource and what still exists after that was deleted."""
    if outcome.plan.ending != DELETE or not outcome.is_quiet:
        return
    trace = outcome.trace
    staying = [each for each in trace.objects_made_by(reference.user) if not _ends_by_itself(each)]
    objects_of_operator = end_state(staying, reference.varying)
    for role in sorted({*objects_of_operator.labels.values()} - reference.own):
        text = f"{label_of(role)} stays when its resource is deleted"
        yield OperatorProblem(type=STAYS, text=text, key=(STAYS, *role), shown_by=_changes_of(trace, role))


def _changes_of(trace: Trace, role: Role) -> Sequence[Change]:
    """Return the Changes of the objects with a role."""
    kind, namespace, pattern = role
    return [
        each
        for each in trace.changes
        if each.identity[:2] == (kind, namespace) and matches_wildcards(each.identity[2], pattern)
    ]


def _ends_by_itself(tree: ReadOnlyTree) -> bool:
    """Return whether an object is gone soon, as a pod in its grace period is; a finalizer waits for somebody."""
    return meta.is_deleting(tree) and not meta.finalizers(tree)


def _of_operator(outcome: RunOutcome) -> Iterator[OperatorProblem]:
    for crash in outcome.crashes:
        key = ("crash", _NUMBERS.sub("*", crash))
        yield OperatorProblem(type="exits", text=f"it crashes: {crash}", key=key)
    if len(outcome.exits) >= MAX_EXITS:
        yield OperatorProblem(
            type="exits", text=f"it exits again and again: {outcome.exits[-1]}", key=("exits",)
        )
    if outcome.ignored_term:
        yield OperatorProblem(type="SIGTERM", text="it does not end by SIGTERM", key=("SIGTERM",))


def _violations(trace: Trace, invariants: Sequence[Invariant]) -> Iterator[OperatorProblem]:
    if not invariants:
        return
    replayed = TraceReplay(trace)
    for change in trace.changes:
        state, kind = replayed.apply(change), change.identity[0]
        for rule in invariants:
            if rule.applies_to(kind) and (text := rule.problem(state)):
                place = f"at revision {change.revision}, of {label_of(change.identity)}"
                yield OperatorProblem(
                    type="invariant",
                    text=f"{text} ({place})",
                    key=("invariant", rule.name, kind),
                    shown_by=[change],
                )


def _foreign_deletes(trace: Trace, user: str, plan: Plan) -> Iterator[OperatorProblem]:
    """Yield the deletions by the operator of objects that others have made."""
    makers = {change.identity: change.user for change in trace.changes if change.type == "ADDED"}
    owners = {
        meta.uid(change.after): (change.user, change.after)
        for change in trace.changes
        if change.type == "ADDED" and change.after is not None
    }
    counted = trace.counted
    for change in trace.changes:
        maker = makers.get(change.identity, "")
        is_own = (
            maker == user
            or change.identity in counted  # such as the claims of a StatefulSet, which have no owner
            or _descends(change.before, owners, user)
            or any(each.is_about(change.identity[2]) for each in plan.disturbances)
        )
        if change.begins_deletion and change.user == user and not is_own:
            kind = change.identity[0]
            text = f"it deletes what it did not make: {label_of(change.identity)}, made by {maker or 'somebody before the run'}"
            yield OperatorProblem(type="deletion", text=text, key=("deletion", kind), shown_by=[change])


def _repeated_deletes(outcome: RunOutcome, reference: UndisturbedRuns) -> Iterator[OperatorProblem]:
    """Yield the objects that the resource needs at the end, and that the operator deletes more often than undisturbed."""
    undisturbed = reference.trace
    needed = [identity for identity, tree in undisturbed.objects.items() if not meta.is_deleting(tree)]
    found = repeated_deletions(
        outcome.plan, outcome.trace.changes, undisturbed.changes, reference.user, needed
    )
    for identity, (deletions, expected) in found.items():
        label = label_of(identity)
        text = f"it deletes what its resource needs: {label}, {_times(len(deletions))}, and {_times(expected)} undisturbed"
        key = ("repeated deletion", *identity)  # it has the same name undisturbed
        yield OperatorProblem(type="deletion", text=text, key=key, shown_by=deletions)


def _times(count: int) -> str:
    return {0: "never", 1: "once", 2: "twice"}.get(count, f"{count} times")


def _descends(tree: ReadOnlyTree | None, makers: Mapping[str, tuple[str, ReadOnlyTree]], user: str) -> bool:
    """Return whether an object belongs to one that the operator has made, as the pods of its Deployment do."""
    for owner in () if tree is None else meta.owner_references(tree):
        maker, owning = makers.get(owner["uid"], ("", None))
        if maker == user or _descends(owning, makers, user):
            return True
    return False


def _owned_writes(trace: Trace, user: str) -> Iterator[OperatorProblem]:
    """Yield the changes by the operator of a spec that its user owns: of an object that somebody else has made."""
    makers = {change.identity: change.user for change in trace.changes if change.type == "ADDED"}
    for change in trace.changes:
        maker = makers.get(change.identity) or _maker_before(change) or user
        if change.type != "MODIFIED" or change.user != user or maker == user or not _is_person(maker):
            continue
        paths = [path for path in change.paths if _is_of_spec(path) and not _is_sent_back(change, path)]
        if paths:
            kind = change.identity[0]
            text = f"it writes to a spec that {maker} owns: {paths[0]} of {label_of(change.identity)}"
            yield OperatorProblem(type="spec", text=text, key=("spec", kind, paths[0]), shown_by=[change])


def _maker_before(change: Change) -> str:
    """Return who has made an object that was arranged; "" for what controllers have made.

    Those without a namespace, such as definitions and Nodes, have fields of their spec for the cluster and for operators.
    """
    is_of_cluster = change.identity[1] in ("", NAMESPACE_SYSTEM)
    is_of_controller = change.before is not None and meta.controller_of(change.before) is not None
    return "" if is_of_cluster or is_of_controller else "somebody before the run"


def _is_of_spec(path: str) -> bool:
    return path == "/spec" or path.startswith("/spec/")


def _is_sent_back(change: Change, path: str) -> bool:
    """Return whether a Go client changes a field by sending back what it has read: it adds empty structs, and writes 2000m and the number 2 as "2"."""
    before, after = (_found_at(tree or {}, path) for tree in (change.before, change.after))
    if before is None:
        return after is None or after in _ZERO_VALUES
    try:
        return _is_quantity(before) and isinstance(after, str) and parse(str(before)) == parse(after)
    except QuantityError:
        return False


def _is_quantity(value: Any) -> bool:
    return isinstance(value, str | int | float) and not isinstance(value, bool)


def _is_person(user: str) -> bool:
    return not user.startswith("system:")


def _fights(trace: Trace) -> Iterator[OperatorProblem]:
    """Yield the fields that two writers set to their own values in turn."""
    turns: dict[tuple[Identity, str], list[tuple[str, bytes]]] = defaultdict(list)
    for change in trace.changes:
        if change.type != "MODIFIED" or change.after is None:
            continue
        for path in change.paths:
            if not path.startswith(("/status", "/metadata/resourceVersion")):
                turns[change.identity, path].append((change.user, _value_at(change.after, path)))
    for (identity, path), values in turns.items():
        backs = sum(
            earlier == later and earlier[0] != middle[0] and earlier[1] != middle[1]
            for earlier, middle, later in zip(values, values[1:], values[2:], strict=False)
        )
        if backs >= FIGHT_TURNS:
            users = " and ".join(sorted({user for user, _ in values}))
            text = f"{users} set {path} of {label_of(identity)} in turn: {len(values)} writes"
            yield OperatorProblem(
                type="fight",
                text=text,
                key=("fight", identity[0], path),
                shown_by=_changes_of(trace, identity),
            )


def _value_at(tree: ReadOnlyTree, path: str) -> bytes:
    return orjson.dumps(_found_at(tree, path), option=orjson.OPT_SORT_KEYS)


def _found_at(tree: ReadOnlyTree, path: str) -> Any:
    """Return the value that a JSON pointer leads to, or None."""
    value: Any = tree
    for part in path.split("/")[1:]:
        name = json_pointer.unescape(part)
        if isinstance(value, Mapping):
            value = value.get(name)
        elif isinstance(value, list) and name.isdigit() and int(name) < len(value):
            value = value[int(name)]
        else:
            return None
    return value


def _forbidden(trace: Trace) -> Iterator[OperatorProblem]:
    for request in trace.requests:
        if request.code == _FORBIDDEN and not request.is_answered_by_fault and _lacks_right(request.message):
            place = f" in {request.namespace}" if request.namespace else ""
            text = f"it may not do what it tries: {request.verb} {request.resource}{place}: {request.message}"
            yield OperatorProblem(
                type="rights",
                text=text,
                key=("rights", request.verb, request.resource),
                shown_by=[request],
            )


def _lacks_right(message: str) -> bool:
    """Return whether RBAC refuses a request, and not a quota, an admission plugin or a namespace that is deleted."""
    return (
        'User "' in message and '" cannot ' in message
    ) or "attempting to grant RBAC permissions" in message


def _hot_loops(outcome: RunOutcome, reference: UndisturbedRuns) -> Iterator[OperatorProblem]:
    trace = outcome.trace
    writes = [
        each
        for each in trace.requests
        if each.is_write and not each.is_answered_by_fault and not trace.is_while_hidden(each)
    ]
    restarts = 1 + sum(
        "crash" in each.action or each.action in (RESTART, DOWN, RECREATE_STALE)
        for each in outcome.plan.disturbances
    )
    if outcome.is_quiet and len(writes) > max(HOT_LEAST, HOT_FACTOR * restarts * reference.writes):
        (verb, resource), count = Counter(map(_group, writes)).most_common(1)[0]
        text = f"{len(writes)} writes, and {reference.writes} undisturbed; {count} of them are {verb} of {resource}"
        yield OperatorProblem(type="hot loop", text=text, key=("hot loop", verb, resource))
    if outcome.idle_reads is not None:
        reads = outcome.idle_reads
        verb, resource, count = reads.most_frequent()
        text = (
            f"{len(reads.ages)} reads in {reads.seconds:.1f} s while nothing changes; "
            f"{count} of them are {verb} of {resource}"
        )
        yield OperatorProblem(type="hot loop", text=text, key=("hot loop of reads", verb, resource))


def _group(request: OperatorRequest) -> tuple[str, str]:
    return request.verb, request.resource
