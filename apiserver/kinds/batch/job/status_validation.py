"""Validation of a Job's status, which may be written by other controllers than Kubernetes' own.

Most rules apply only if their fields or conditions have changed, so that an old error does not block later updates.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from msgspec import Struct

from mockube.apimachinery import conditions, errors
from mockube.apimachinery.errors import OMITTED, FieldError
from mockube.apimachinery.paths import ROOT, Path
from mockube.apimachinery.timestamps import format_time, parse_time
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apiserver.kinds.common import objectmeta
from mockube.apiserver.kinds.common.internal import internal
from mockube.apiserver.kinds.common.objectmeta import SUBDOMAIN
from mockube.apiserver.kinds.core.pod.workloads import counts

from . import indexes
from .indexes import IndexesError
from .validation import is_indexed

COMPLETE, FAILED = "Complete", "Failed"
FAILURE_TARGET, SUCCESS_CRITERIA_MET, SUSPENDED = "FailureTarget", "SuccessCriteriaMet", "Suspended"

_STATUS: Final = ROOT.child("status")
_ZERO: Final = "0001-01-01T00:00:00Z"
_CONDITIONS: Final = _STATUS.child("conditions")


class _Change(Struct, frozen=True):
    """The new and the old Job of an update."""

    new: ReadOnlyTree
    old: ReadOnlyTree

    def get(self, name: str, default: Any = None) -> Any:
        return (self.new.get("status") or {}).get(name, default)

    def old_value(self, name: str, default: Any = None) -> Any:
        return (self.old.get("status") or {}).get(name, default)

    def has_changed(self, *names: str) -> bool:
        return any(self.get(name) != self.old_value(name) for name in names)

    def has_changed_condition(self, *types: str) -> bool:
        """Return whether one of these conditions has changed."""
        return any(
            conditions.is_true(self.new, condition_type) != conditions.is_true(self.old, condition_type)
            for condition_type in types
        )

    def has_conditions(self, *types: str) -> bool:
        return all(conditions.is_true(self.new, condition_type) for condition_type in types)

    def had_conditions(self, *types: str) -> bool:
        return all(conditions.is_true(self.old, condition_type) for condition_type in types)

    @property
    def is_finished(self) -> bool:
        return self.has_conditions(COMPLETE) or self.has_conditions(FAILED)

    @property
    def changes_finished(self) -> bool:
        """Return whether only one of the new and the old Job is finished."""
        return self.is_finished != (self.had_conditions(COMPLETE) or self.had_conditions(FAILED))

    @property
    def spec(self) -> ReadOnlyTree:
        return self.new.get("spec") or {}


_Rule = Callable[[_Change], Iterable[FieldError]]


def check_status_change(new: ReadOnlyTree, old: ReadOnlyTree) -> Iterator[FieldError]:
    yield from objectmeta.check_change(new, old, SUBDOMAIN)
    change = _Change(new, old)
    for rule in _RULES:
        yield from rule(change)


# --- numbers


def _check_counts(change: _Change) -> Iterable[FieldError]:
    return counts("active", "succeeded", "failed", "ready", "terminating")(
        change.new.get("status") or {}, _STATUS
    )


def _check_uncounted(change: _Change) -> Iterator[FieldError]:
    """Check that no uncounted terminated pod is listed twice."""
    seen: set[str] = set()
    for field_name in ("succeeded", "failed"):
        path = _STATUS.child("uncountedTerminatedPods", field_name)
        for index, uid in enumerate((change.get("uncountedTerminatedPods") or {}).get(field_name, ())):
            if not uid:
                yield errors.invalid(path.index(index), uid, "must not be empty")
            elif uid in seen:
                yield errors.duplicate(path.index(index), uid)
            seen.add(uid)


# --- conditions that exclude or require each other


def _excluding(condition_type: str, other: str, problem: str, *changed: str) -> _Rule:
    """Return the rule that two conditions are not both true; with `changed`, only if one of these has changed."""

    def check(change: _Change) -> Iterator[FieldError]:
        if change.has_conditions(condition_type, other) and (
            not changed or change.has_changed_condition(*changed)
        ):
            yield errors.invalid(_CONDITIONS, OMITTED, problem)

    return check


def _check_failure_target(change: _Change) -> Iterator[FieldError]:
    applies = change.has_changed_condition(FAILED) or change.has_changed("failedIndexes")
    if applies and change.has_conditions(FAILED) and not change.has_conditions(FAILURE_TARGET):
        problem = "cannot set Failed=True condition without the FailureTarget=true condition"
        yield errors.invalid(_CONDITIONS, OMITTED, problem)


def _check_success_criteria(change: _Change) -> Iterator[FieldError]:
    applies = change.has_changed_condition(COMPLETE, SUCCESS_CRITERIA_MET)
    if applies and change.has_conditions(COMPLETE) and not change.has_conditions(SUCCESS_CRITERIA_MET):
        problem = "cannot set Complete=True condition without the SuccessCriteriaMet=true condition"
        yield errors.invalid(_CONDITIONS, OMITTED, problem)


def _check_success_policy(change: _Change) -> Iterator[FieldError]:
    has_policy = change.spec.get("successPolicy") is not None
    if has_policy and change.has_conditions(COMPLETE) and not change.has_conditions(SUCCESS_CRITERIA_MET):
        problem = "cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True"
        yield errors.invalid(_CONDITIONS, OMITTED, problem)


# --- times


def _check_completion_time(change: _Change) -> Iterator[FieldError]:
    time, path = change.get("completionTime"), _STATUS.child("completionTime")
    if change.has_changed_condition(COMPLETE) or change.has_changed("completionTime"):
        if time and not change.has_conditions(COMPLETE):
            problem = "cannot set completionTime when there is no Complete=True condition"
            yield errors.invalid(path, _stored_time(time), problem)
        if not time and change.has_conditions(COMPLETE):
            yield errors.required(path, "completionTime is required for Complete jobs")
    start = change.get("startTime")
    if (
        change.has_changed("startTime", "completionTime")
        and start
        and time
        and parse_time(time) < parse_time(start)
    ):
        yield errors.invalid(path, _stored_time(time), "must be equal to or after `startTime`")


def _stored_time(time: str) -> str | None:
    """Return a time as errors show it: without the fraction of a second with which it is compared, and null for a zero time."""
    text = format_time(parse_time(time))
    return None if text == _ZERO else text


def _check_start_time(change: _Change) -> Iterator[FieldError]:
    spec = change.spec
    is_empty = spec.get("suspend") is True and spec.get("completions") == 0
    applies = (change.changes_finished or change.has_changed("startTime")) and not is_empty
    if applies and change.is_finished and not change.get("startTime"):
        yield errors.required(_STATUS.child("startTime"), "startTime is required for finished job")


# --- fields of a finished Job


def _check_active(change: _Change) -> Iterator[FieldError]:
    active = change.get("active", 0)
    if (change.changes_finished or change.has_changed("active")) and active > 0 and change.is_finished:
        yield errors.invalid(_STATUS.child("active"), active, "active>0 is invalid for finished job")


def _check_nothing_uncounted(change: _Change) -> Iterator[FieldError]:
    uncounted = change.get("uncountedTerminatedPods") or {}
    applies = change.changes_finished or change.has_changed("uncountedTerminatedPods")
    if applies and change.is_finished and (uncounted.get("failed") or uncounted.get("succeeded")):
        path = _STATUS.child("uncountedTerminatedPods")
        value = internal("batch.UncountedTerminatedPods", uncounted)
        yield errors.invalid(path, value, "must be empty for finished job")


def _check_terminating(change: _Change) -> Iterator[FieldError]:
    terminating = change.get("terminating") or 0
    if (
        (change.changes_finished or change.has_changed("terminating"))
        and terminating > 0
        and change.is_finished
    ):
        problem = "terminating>0 is invalid for finished job"
        yield errors.invalid(_STATUS.child("terminating"), terminating, problem)


def _check_ready(change: _Change) -> Iterator[FieldError]:
    ready = change.get("ready")
    if ready is not None and change.has_changed("ready", "active") and ready > change.get("active", 0):
        yield errors.invalid(_STATUS.child("ready"), ready, "cannot set more ready pods than active")


# --- indexes


def _check_format(change: _Change, name: str) -> Iterator[FieldError]:
    text, completions = change.get(name), change.spec.get("completions")
    if text is None or completions is None or not change.has_changed(name):
        return
    try:
        indexes.parse(text, completions)
    except IndexesError as problem:
        yield errors.invalid(_STATUS.child(name), text, f"error parsing {name}: {problem}")


def _check_indexes(change: _Change) -> Iterator[FieldError]:
    completed, failed = change.get("completedIndexes", ""), change.get("failedIndexes")
    has_limit = change.spec.get("backoffLimitPerIndex") is not None
    yield from _check_format(change, "completedIndexes")
    if has_limit:
        yield from _check_format(change, "failedIndexes")
    if change.has_changed("completedIndexes") and completed and not is_indexed(change.spec):
        problem = "cannot set non-empty completedIndexes when non-indexed completion mode"
        yield errors.invalid(_STATUS.child("completedIndexes"), completed, problem)
    path = _STATUS.child("failedIndexes")
    if change.has_changed("failedIndexes") and failed is not None and not has_limit:
        problem = "cannot set non-null failedIndexes when backoffLimitPerIndex is null"
        yield errors.invalid(path, failed, problem)
    yield from _check_overlap(change, completed, failed, path)


def _check_overlap(change: _Change, completed: str, failed: str | None, path: Path) -> Iterator[FieldError]:
    completions = change.spec.get("completions")
    if failed is None or completions is None or not change.has_changed("completedIndexes", "failedIndexes"):
        return
    index = indexes.overlap(completed, failed, completions)
    if index is not None:
        yield errors.invalid(path, failed, f"failedIndexes and completedIndexes overlap at index: {index}")


# --- changes that cannot be undone


def _check_terminal(change: _Change) -> Iterator[FieldError]:
    for condition in (FAILED, COMPLETE, FAILURE_TARGET):
        if change.had_conditions(condition) and not change.has_conditions(condition):
            problem = f"cannot disable the terminal {condition}=True condition"
            yield errors.invalid(_CONDITIONS, OMITTED, problem)


def _check_counters(change: _Change) -> Iterator[FieldError]:
    """Check that the counters do not decrease, except for `succeeded` of an elastic indexed Job."""
    spec = change.spec
    is_elastic = is_indexed(spec) and spec.get("completions") == spec.get("parallelism")
    for name in ("failed",) if is_elastic else ("failed", "succeeded"):
        if change.get(name, 0) < change.old_value(name, 0):
            problem = f"cannot decrease the {name} counter"
            yield errors.invalid(_STATUS.child(name), change.get(name, 0), problem)


def _check_times_unchanged(change: _Change) -> Iterator[FieldError]:
    time, start = change.get("completionTime"), change.get("startTime")
    if time and change.old_value("completionTime") and change.has_changed("completionTime"):
        yield errors.invalid(_STATUS.child("completionTime"), _stored_time(time), "field is immutable")
    resumes = change.had_conditions(SUSPENDED) and conditions.is_false(change.new, SUSPENDED)
    applies = change.has_changed("startTime") and not resumes and not change.spec.get("suspend")
    if applies and change.old_value("startTime"):
        problem = "field is immutable for unsuspended job once set"
        yield errors.invalid(_STATUS.child("startTime"), start and _stored_time(start), problem)


def _check_success_change(change: _Change) -> Iterator[FieldError]:
    if change.had_conditions(SUCCESS_CRITERIA_MET) and not change.has_conditions(SUCCESS_CRITERIA_MET):
        problem = "cannot disable the SuccessCriteriaMet=True condition"
        yield errors.invalid(_CONDITIONS, OMITTED, problem)
    if (
        change.had_conditions(COMPLETE)
        and change.has_conditions(SUCCESS_CRITERIA_MET)
        and not change.had_conditions(SUCCESS_CRITERIA_MET)
    ):
        problem = "cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions"
        yield errors.invalid(_CONDITIONS, OMITTED, problem)


_RULES: Final[tuple[_Rule, ...]] = (
    _check_counts,
    _check_uncounted,
    _excluding(COMPLETE, FAILED, "cannot set Complete=True and Failed=true conditions", COMPLETE, FAILED),
    _excluding(
        COMPLETE,
        FAILURE_TARGET,
        "cannot set Complete=True and FailureTarget=true conditions",
        COMPLETE,
        FAILURE_TARGET,
    ),
    _check_completion_time,
    _check_failure_target,
    _check_success_criteria,
    _check_active,
    _check_start_time,
    _check_nothing_uncounted,
    _check_indexes,
    _check_terminating,
    _check_ready,
    _excluding(SUCCESS_CRITERIA_MET, FAILED, "cannot set SuccessCriteriaMet=True and Failed=true conditions"),
    _excluding(
        SUCCESS_CRITERIA_MET,
        FAILURE_TARGET,
        "cannot set SuccessCriteriaMet=True and FailureTarget=true conditions",
    ),
    _check_success_policy,
    _check_terminal,
    _check_counters,
    _check_times_unchanged,
    _check_success_change,
)
"""In upstream's order: the rules of the new status alone, then those of the change."""
