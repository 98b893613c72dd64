"""Validation of affinity, topology spread constraints and tolerations."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from typing import Any, Final

from mockube.apimachinery import errors, gotext, names
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.patch.gofmt import json_kind
from mockube.apimachinery.paths import ROOT, Path
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apiserver.kinds.common import checks
from mockube.apiserver.kinds.common.checks import Check
from mockube.apiserver.kinds.common.objectmeta import check_label_name
from mockube.apiserver.kinds.common.selectors import (
    check_node_selector,
    check_node_selector_leniently,
    check_selector,
    check_selector_leniently,
    check_term_leniently,
)
from mockube.apiserver.wire.negotiation import MediaType
from mockube.apiserver.wire.parse import UnreadableBody, parse

from .context import PodValidationOptions

REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"

_WEIGHT: Final = checks.field(
    "weight", checks.require_that(lambda weight: 1 <= weight <= 100, "must be in the range 1-100"), absent=0
)


# --- nodes


def _node_affinity(selector: Check) -> Check:
    """Return the check of a node affinity. Label values of preferences are not checked."""
    return checks.all_of(
        checks.pointer(REQUIRED, selector),
        checks.field(
            PREFERRED, checks.each_item(_WEIGHT, checks.field("preference", check_term_leniently, absent={}))
        ),
    )


# --- pods


def check_label_keys(keys: Sequence[str], selector: ReadOnlyTree | None, path: Path) -> Iterable[FieldError]:
    """Check label keys whose values are those of the pod itself; they need a selector."""
    if keys and selector is None:
        return (errors.forbidden(path, "must not be specified when labelSelector is not set"),)
    return checks.each_item(check_label_name)(keys, path)


def check_match_label_keys(
    term: ReadOnlyTree, path: Path, *, mismatched: Sequence[str] = ()
) -> Iterator[FieldError]:
    """Check matchLabelKeys and mismatchLabelKeys.

    The server has added the keys to the selector before: a key that is there twice was in the selector that was sent.
    """
    keys, selector = term.get("matchLabelKeys", ()), term.get("labelSelector")
    yield from check_label_keys(keys, selector, path.child("matchLabelKeys"))
    yield from check_label_keys(mismatched, selector, path.child("mismatchLabelKeys"))
    positions = {key: position for position, key in enumerate(keys)}
    seen = {*((selector or {}).get("matchLabels") or ())}
    for expression in (selector or {}).get("matchExpressions", ()):
        key = expression.get("key", "")
        if key in positions and key in seen:
            problem = "exists in both matchLabelKeys and labelSelector"
            yield errors.invalid(path.index(positions[key]), key, problem)
        seen.add(key)
    mismatched_keys = {*mismatched}
    for position, key in enumerate(keys):
        if key in mismatched_keys:
            problem = "exists in both matchLabelKeys and mismatchLabelKeys"
            yield errors.invalid(path.child("matchLabelKeys").index(position), key, problem)


def _check_namespaces(namespaces: Iterable[str] | None, path: Path) -> Iterator[FieldError]:
    """Check the namespaces of a term. As upstream, errors have no index of the namespace."""
    for namespace in namespaces or ():
        yield from checks.report(names.check_dns1123_label)(namespace, path.child("namespace"))


def _check_topology_key(term: ReadOnlyTree, path: Path) -> Iterator[FieldError]:
    key, path = term.get("topologyKey", ""), path.child("topologyKey")
    if not key:
        yield errors.required(path, "can not be empty")
    yield from check_label_name(key, path)


def _term(selector: Check) -> Check:
    selectors = checks.all_of(
        checks.pointer("labelSelector", selector), checks.pointer("namespaceSelector", selector)
    )

    def check(term: ReadOnlyTree, path: Path) -> Iterator[FieldError]:
        yield from selectors(term, path)
        yield from _check_namespaces(term.get("namespaces"), path)
        yield from check_match_label_keys(term, path, mismatched=term.get("mismatchLabelKeys", ()))
        yield from _check_topology_key(term, path)

    return check


def _pod_affinity(selector: Check) -> Check:
    term = _term(selector)
    return checks.all_of(
        checks.field(REQUIRED, checks.each_item(term)),
        checks.field(PREFERRED, checks.each_item(_WEIGHT, checks.field("podAffinityTerm", term, absent={}))),
    )


@cache
def _check_affinity(*, any_node_values: bool, any_selector_values: bool) -> Check:
    nodes = check_node_selector_leniently if any_node_values else check_node_selector
    pods = _pod_affinity(check_selector_leniently if any_selector_values else check_selector)
    return checks.all_of(
        checks.pointer("nodeAffinity", _node_affinity(nodes)),
        checks.pointer("podAffinity", pods),
        checks.pointer("podAntiAffinity", pods),
    )


def check_affinity(affinity: ReadOnlyTree, path: Path, options: PodValidationOptions) -> Iterable[FieldError]:
    check = _check_affinity(
        any_node_values=options.node_affinity_values, any_selector_values=options.selector_values
    )
    return check(affinity, path)


_SELECTORS: Final = checks.all_of(
    checks.pointer("labelSelector", check_selector), checks.pointer("namespaceSelector", check_selector)
)


def has_wrong_selectors(affinity: ReadOnlyTree) -> bool:
    """Return whether a pod selector has invalid label values."""
    terms = [
        term
        for of_pods in (affinity.get("podAffinity") or {}, affinity.get("podAntiAffinity") or {})
        for term in (
            *of_pods.get(REQUIRED, ()),
            *(weighted.get("podAffinityTerm") or {} for weighted in of_pods.get(PREFERRED, ())),
        )
    ]
    return any(any(_SELECTORS(term, ROOT)) for term in terms)


_DO_NOT_SCHEDULE: Final = "DoNotSchedule"

_SKEW_AND_KEY: Final = checks.all_of(
    checks.field("maxSkew", checks.positive, absent=0),
    checks.require("topologyKey", detail="can not be empty"),
    checks.field("whenUnsatisfiable", checks.one_of(_DO_NOT_SCHEDULE, "ScheduleAnyway"), absent=""),
)
_INCLUSION: Final = checks.one_of("Honor", "Ignore")
_INCLUSIONS: Final = checks.all_of(
    checks.pointer("nodeAffinityPolicy", _INCLUSION), checks.pointer("nodeTaintsPolicy", _INCLUSION)
)


def _kind(constraint: ReadOnlyTree) -> tuple[str, str]:
    return constraint.get("topologyKey", ""), constraint.get("whenUnsatisfiable", "")


def _check_not_repeated(
    constraint: ReadOnlyTree, index: int, last: Mapping[tuple[str, str], int], path: Path
) -> Iterable[FieldError]:
    """Refuse a constraint that a later one repeats; `last` has the index of the last constraint of each kind."""
    key, action = kind = _kind(constraint)
    if last[kind] == index:
        return ()
    return (errors.duplicate(path.child("{topologyKey, whenUnsatisfiable}"), f"{{{key}, {action}}}"),)


def _check_min_domains(constraint: ReadOnlyTree, path: Path) -> Iterator[FieldError]:
    domains, path = constraint.get("minDomains"), path.child("minDomains")
    action = constraint.get("whenUnsatisfiable", "")
    if domains is None:
        return
    yield from checks.positive(domains, path)
    if action != _DO_NOT_SCHEDULE:
        problem = f"can only use minDomains if whenUnsatisfiable={_DO_NOT_SCHEDULE}, not {action}"
        yield errors.invalid(path, domains, problem)


def check_spread_constraints(
    constraints: Sequence[ReadOnlyTree], path: Path, options: PodValidationOptions
) -> Iterator[FieldError]:
    last = {_kind(constraint): index for index, constraint in enumerate(constraints)}
    for index, constraint in enumerate(constraints):
        constraint_path = path.index(index)
        yield from _SKEW_AND_KEY(constraint, constraint_path)
        yield from _check_not_repeated(constraint, index, last, constraint_path)
        yield from _check_min_domains(constraint, constraint_path)
        yield from _INCLUSIONS(constraint, constraint_path)
        if options.spread_label_keys:
            yield from _check_keys_as_before(constraint, constraint_path.child("matchLabelKeys"))
        else:
            yield from check_match_label_keys(constraint, constraint_path)
        if not options.spread_selectors:
            yield from checks.pointer("labelSelector", check_selector)(constraint, constraint_path)


def _check_keys_as_before(constraint: ReadOnlyTree, path: Path) -> Iterator[FieldError]:
    """Check matchLabelKeys by the older rule, for pods to whose selector the keys were not added."""
    keys, selector = constraint.get("matchLabelKeys", ()), constraint.get("labelSelector")
    if keys and selector is None:
        yield errors.forbidden(path, "must not be specified when labelSelector is not set")
    selected = {*((selector or {}).get("matchLabels") or ())}
    selected |= {expression.get("key") for expression in (selector or {}).get("matchExpressions", ())}
    for index, key in enumerate(keys):
        yield from check_label_name(key, path.index(index))
        if key in selected:
            problem = "exists in both matchLabelKeys and labelSelector"
            yield errors.invalid(path.index(index), key, problem)


EQUAL, EXISTS = "Equal", "Exists"
COMPARISONS: Final = ("Lt", "Gt")

_NO_EXECUTE: Final = "NoExecute"

check_effect: Final = checks.one_of("NoSchedule", "PreferNoSchedule", _NO_EXECUTE)


def _check_needs(toleration: ReadOnlyTree, path: Path) -> Iterator[FieldError]:
    """Check fields of a toleration that depend on each other."""
    operator, effect = toleration.get("operator", ""), toleration.get("effect", "")
    if not toleration.get("key") and operator != EXISTS:
        problem = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
        yield errors.invalid(path.child("operator"), operator, problem)
    if toleration.get("tolerationSeconds") is not None and effect != _NO_EXECUTE:
        problem = f"effect must be '{_NO_EXECUTE}' when `tolerationSeconds` is set"
        yield errors.invalid(path.child("effect"), effect, problem)


def _check_equal(value: str, path: Path) -> Iterator[FieldError]:
    problems = names.check_label_value(value)
    if problems:
        yield errors.invalid(path.child("operator"), value, ";".join(problems))


def _check_exists(value: str, path: Path) -> Iterator[FieldError]:
    if value:
        problem = f"value must be empty when `operator` is '{EXISTS}'"
        yield errors.invalid(path.child("operator"), value, problem)


def _check_compared(value: str, path: Path) -> Iterator[FieldError]:
    """Check a value that is compared: a decimal integer in canonical form."""
    path = path.child("value")
    if not value:
        yield errors.invalid(path, value, names.EMPTY)
    elif not re.fullmatch("0|-?[1-9][0-9]*", value):
        problem = "must be a valid decimal integer in canonical form"
        yield errors.invalid(path, value, problem)
    try:
        gotext.parse_int(value)
    except gotext.NumberError as problem:
        yield errors.invalid(path, value, str(problem))


_OPERATORS: Final[Mapping[str, Callable[[str, Path], Iterator[FieldError]]]] = {
    "": _check_equal,
    EQUAL: _check_equal,
    EXISTS: _check_exists,
    **dict.fromkeys(COMPARISONS, _check_compared),
}


def _check_operator(toleration: ReadOnlyTree, path: Path, *, compared: bool) -> Iterable[FieldError]:
    operator = toleration.get("operator", "")
    if operator in COMPARISONS and not compared:
        supported = (EQUAL, EXISTS, *COMPARISONS)
        return (errors.not_supported(path.child("operator"), operator, supported),)
    if operator not in _OPERATORS:
        return (errors.not_supported(path.child("operator"), operator, (EQUAL, EXISTS)),)
    return _OPERATORS[operator](toleration.get("value", ""), path)


_CHECKS: Final = {
    compared: checks.each_item(
        checks.optional("key", check_label_name),
        _check_needs,
        partial(_check_operator, compared=compared),
        checks.optional("effect", check_effect),
    )
    for compared in (False, True)
}


def check_tolerations(
    tolerations: Sequence[ReadOnlyTree], path: Path, *, compared: bool
) -> Iterable[FieldError]:
    """Check tolerations; if `compared`, values may be compared as numbers, which new pods may not do."""
    return _CHECKS[compared](tolerations, path)


# --- tolerations in an annotation

TOLERATIONS_ANNOTATION: Final = "scheduler.alpha.kubernetes.io/tolerations"

_GO_TEXTS: Final[Mapping[str, tuple[str, str]]] = {
    "key": ("Key", "string"),
    "operator": ("Operator", "core.TolerationOperator"),
    "value": ("Value", "string"),
    "effect": ("Effect", "core.TaintEffect"),
}
"""The fields of a toleration that are texts, with their names and types in upstream's internal type."""

_FIELDS_IN_ANY_CASE: Final = {name.lower(): name for name in (*_GO_TEXTS, "tolerationSeconds")}


class _UndecodableToleration(ValueError):
    """An annotation has no list of tolerations; the message is that of Go's decoder."""


def _refuse_value(value: Any, target: str) -> _UndecodableToleration:
    return _UndecodableToleration(f"json: cannot unmarshal {json_kind(value)} into Go {target}")


def _decode_toleration(item: Any) -> ReadOnlyTree:
    """Decode a toleration as Go does: names of fields in any case, others are ignored, null is absent."""
    if item is None:
        return {}
    if not isinstance(item, dict):
        raise _refuse_value(item, "value of type core.Toleration")
    toleration = {}
    for given_name, value in item.items():
        name = _FIELDS_IN_ANY_CASE.get(given_name.lower())
        if name is not None and value is not None:
            toleration[name] = _decode_field(name, value)
    return toleration


def _decode_field(name: str, value: Any) -> Any:
    if name in _GO_TEXTS:
        if isinstance(value, str):
            return value
        raise _refuse_value(value, "struct field Toleration.{} of type {}".format(*_GO_TEXTS[name]))
    target = "struct field Toleration.TolerationSeconds of type int64"
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _refuse_value(value, target)
    if isinstance(value, float) or not -(2**63) <= value < 2**63:
        number = gotext.format_g(value) if isinstance(value, float) else str(value)
        raise _UndecodableToleration(f"json: cannot unmarshal number {number} into Go {target}")
    return value


def _decode_tolerations(text: str) -> Sequence[ReadOnlyTree]:
    try:
        items = parse(text.encode(), MediaType.JSON).tree
    except UnreadableBody as problem:
        raise _UndecodableToleration(str(problem)) from problem
    if items is None:
        return ()
    if not isinstance(items, list):
        raise _refuse_value(items, "value of type []core.Toleration")
    return [_decode_toleration(item) for item in items]


def check_annotated_tolerations(text: str, path: Path, *, compared: bool) -> Iterable[FieldError]:
    """Check the annotation with tolerations; `path` is that of all annotations."""
    try:
        tolerations = _decode_tolerations(text)
    except _UndecodableToleration as problem:
        return (errors.invalid(path, TOLERATIONS_ANNOTATION, str(problem)),)
    return check_tolerations(tolerations, path.child(TOLERATIONS_ANNOTATION), compared=compared)
