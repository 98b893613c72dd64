"""Validation of a Job's pod failure policy, pod replacement policy and success policy."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Final

from mockube.apimachinery import errors, gotext
from mockube.apimachinery.errors import OMITTED, FieldError
from mockube.apimachinery.paths import Path
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apiserver.kinds.common import checks
from mockube.apiserver.kinds.common.checks import Check
from mockube.apiserver.kinds.common.objectmeta import check_label_name

from . import indexes
from .indexes import IndexesError

_MAX_RULES, _MAX_VALUES, _MAX_PATTERNS = 20, 255, 20
_MAX_INDEXES_LENGTH: Final = 64 * 1024

_ACTIONS: Final = ("Count", "FailIndex", "FailJob", "Ignore")
_FAIL_INDEX: Final = "FailIndex"
_FAILED: Final = "Failed"


def _choice(*values: str) -> Check:
    """Return the check that a value is one of these. The message of a missing value lists them."""

    def check(value: str, path: Path) -> Iterable[FieldError]:
        if not value:
            valid_values = " ".join(map(gotext.quote, values))
            return (errors.required(path, f"valid values: [{valid_values}]"),)
        return () if value in values else (errors.not_supported(path, value, values),)

    return check


# --- pod failure and pod replacement policy

_PATTERN: Final = checks.all_of(
    checks.field("type", check_label_name, absent=""),
    checks.field("status", _choice("False", "True", "Unknown"), absent=""),
)
_PATTERNS: Final = checks.field(
    "onPodConditions", checks.max_items(_MAX_PATTERNS), checks.each_item(_PATTERN), absent=()
)
_OPERATOR: Final = checks.field("operator", _choice("In", "NotIn"), absent="")


def _check_action(spec: ReadOnlyTree, rule: ReadOnlyTree, path: Path) -> Iterable[FieldError]:
    action, path = rule.get("action", ""), path.child("action")
    if action == _FAIL_INDEX and spec.get("backoffLimitPerIndex") is None:
        return (errors.invalid(path, action, "requires the backoffLimitPerIndex to be set"),)
    return _choice(*_ACTIONS)(action, path)


def _check_values(codes: ReadOnlyTree, path: Path) -> Iterator[FieldError]:
    values, path = codes.get("values") or (), path.child("values")
    if not values:
        yield errors.invalid(path, codes.get("values"), "at least one value is required")
    yield from checks.max_items(_MAX_VALUES)(values, path)
    seen: set[int] = set()
    for index, value in enumerate(values):
        if codes.get("operator") == "In" and value == 0:
            yield errors.invalid(path.index(index), value, "must not be 0 for the In operator")
        if value in seen:
            yield errors.duplicate(path.index(index), value)
        seen.add(value)
    if any(previous > current for previous, current in pairwise(values)):
        yield errors.invalid(path, values, "must be ordered")


def _check_exit_codes(codes: ReadOnlyTree, path: Path, containers: frozenset[str]) -> Iterator[FieldError]:
    name = codes.get("containerName")
    yield from _OPERATOR(codes, path)
    if name is not None and name not in containers:
        problem = "must be one of the container or initContainer names in the pod template"
        yield errors.invalid(path.child("containerName"), name, problem)
    yield from _check_values(codes, path)


def _check_failure_rule(
    spec: ReadOnlyTree, rule: ReadOnlyTree, path: Path, containers: frozenset[str]
) -> Iterator[FieldError]:
    codes, conditions = rule.get("onExitCodes"), rule.get("onPodConditions")
    yield from _check_action(spec, rule, path)
    if codes is not None:
        yield from _check_exit_codes(codes, path.child("onExitCodes"), containers)
    yield from _PATTERNS(rule, path)
    if codes is not None and conditions:
        problem = "specifying both OnExitCodes and OnPodConditions is not supported"
        yield errors.invalid(path, OMITTED, problem)
    if codes is None and not conditions:
        problem = "specifying one of OnExitCodes and OnPodConditions is required"
        yield errors.invalid(path, OMITTED, problem)


def check_pod_failure_policy(spec: ReadOnlyTree, path: Path) -> Iterator[FieldError]:
    policy = spec.get("podFailurePolicy")
    if policy is None:
        return
    rules, path = policy.get("rules") or (), path.child("podFailurePolicy", "rules")
    pod_spec = (spec.get("template") or {}).get("spec") or {}
    containers = frozenset(
        container.get("name", "")
        for kind in ("containers", "initContainers")
        for container in pod_spec.get(kind) or ()
    )
    yield from checks.max_items(_MAX_RULES)(rules, path)
    for index, rule in enumerate(rules):
        yield from _check_failure_rule(spec, rule, path.index(index), containers)


def check_pod_replacement_policy(spec: ReadOnlyTree, path: Path) -> Iterable[FieldError]:
    """Check the policy. With a pod failure policy, pods can be replaced only after they have failed."""
    policy = spec.get("podReplacementPolicy")
    supported = (_FAILED,) if spec.get("podFailurePolicy") is not None else (_FAILED, "TerminatingOrFailed")
    if policy is None or policy in supported:
        return ()
    return (errors.not_supported(path.child("podReplacementPolicy"), policy, supported),)


# --- success policy


def check_success_policy(spec: ReadOnlyTree, path: Path) -> Iterator[FieldError]:
    """Check the success policy of an indexed Job."""
    rules: Sequence[ReadOnlyTree] = spec["successPolicy"].get("rules") or ()
    path = path.child("successPolicy", "rules")
    if not rules:
        detail = "at least one rules must be specified when the successPolicy is specified"
        yield errors.required(path, detail)
    yield from checks.max_items(_MAX_RULES)(rules, path)
    for index, rule in enumerate(rules):
        yield from _check_success_rule(rule, spec.get("completions") or 0, path.index(index))


def _check_success_rule(rule: ReadOnlyTree, completions: int, path: Path) -> Iterator[FieldError]:
    text, succeeded_count = rule.get("succeededIndexes"), rule.get("succeededCount")
    index_count = 0
    if text is None and succeeded_count is None:
        detail = "at least one of succeededCount or succeededIndexes must be specified"
        yield errors.required(path, detail)
    if text is not None:
        field_path = path.child("succeededIndexes")
        yield from checks.max_bytes(_MAX_INDEXES_LENGTH)(text, field_path)
        try:
            index_count = indexes.count(indexes.parse(text, completions))
        except IndexesError as problem:
            yield errors.invalid(field_path, text, f"error parsing succeededIndexes: {problem}")
    if succeeded_count is not None:
        yield from _check_count(
            succeeded_count, completions, None if text is None else index_count, path.child("succeededCount")
        )


def _check_count(
    succeeded_count: int, completions: int, index_count: int | None, path: Path
) -> Iterator[FieldError]:
    yield from checks.non_negative(succeeded_count, path)
    if succeeded_count > completions:
        problem = f"must be less than or equal to {completions} (the number of specified completions)"
        yield errors.invalid(path, succeeded_count, problem)
    if index_count is not None and succeeded_count > index_count:
        limit_name = "the number of indexes in the specified succeededIndexes field"
        yield errors.invalid(
            path, succeeded_count, f"must be less than or equal to {index_count} ({limit_name})"
        )
