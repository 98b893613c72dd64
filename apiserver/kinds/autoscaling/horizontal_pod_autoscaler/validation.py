"""Validation of HorizontalPodAutoscalers in v2. Errors of v1 objects have the fields of v2, too."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from msgspec import structs

from mockube.apimachinery import errors, names, quantity
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.paths import ROOT, Path
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apiserver.kinds.common import checks
from mockube.apiserver.kinds.common.checks import Check
from mockube.apiserver.kinds.common.declared import DeclaredRules, required, valid
from mockube.apiserver.kinds.common.resource_names import check_container_name, check_not_negative
from mockube.apiserver.kinds.common.validation import Validation, get_struct, part, repeat_create_checks

_SEGMENT: Final = checks.report(names.check_path_segment_name)


_SCALABLE_IN_CORE: Final = frozenset({"ReplicationController"})
"""The kinds that need no group because they are in the core group."""


def _version_problem(reference: ReadOnlyTree, *, core_allowed: bool) -> str:
    version = reference.get("apiVersion", "")
    if version.count("/") > 1:
        return f"unexpected GroupVersion string: {version}"
    has_group = bool(version.partition("/")[0]) if "/" in version else False
    if has_group or core_allowed or reference.get("kind") in _SCALABLE_IN_CORE:
        return ""
    return "apiVersion must specify API group"


def _reference(*, core_allowed: bool) -> Check:
    def check_version(reference: ReadOnlyTree, path: Path) -> Iterable[FieldError]:
        problem = _version_problem(reference, core_allowed=core_allowed)
        if not problem:
            return ()
        return (errors.invalid(path.child("apiVersion"), reference.get("apiVersion", ""), problem),)

    return checks.all_of(checks.require("kind", _SEGMENT), checks.require("name", _SEGMENT), check_version)


# --- metrics

_METRIC: Final = checks.field(
    "metric", checks.require("name", _SEGMENT, detail="must specify a metric name"), absent={}
)

_POSITIVE: Final = checks.require_that(
    lambda amount: quantity.parse(amount) > quantity.ZERO, "must be positive"
)


def _check_target_type(target: ReadOnlyTree, path: Path) -> Iterator[FieldError]:
    type_ = target.get("type", "")
    if not type_:
        yield errors.required(path.child("type"), "must specify a metric target type")
    if type_ not in ("Utilization", "Value", "AverageValue"):
        problem = "must be either Utilization, Value, or AverageValue"
        yield errors.invalid(path.child("type"), type_, problem)


_TARGET: Final = checks.field(
    "target",
    _check_target_type,
    checks.pointer("value", _POSITIVE),
    checks.pointer("averageValue", _POSITIVE),
    checks.pointer(
        "averageUtilization", checks.require_that(lambda percent: percent > 0, "must be greater than 0")
    ),
    absent={},
)


def _one_target(first: str, second: str, *, missing: str, both: str = "") -> Check:
    """Return the check that a target has one of two fields. Without both, the first is required; with both, the second may be forbidden."""

    def check(source: ReadOnlyTree, path: Path) -> Iterator[FieldError]:
        target, path = get_struct(source, "target"), path.child("target")
        present = [name for name in (first, second) if target.get(name) is not None]
        if not present:
            yield errors.required(path.child(first), missing)
        if both and len(present) > 1:
            yield errors.forbidden(path.child(second), both)

    return check


def _check_average(source: ReadOnlyTree, path: Path) -> Iterable[FieldError]:
    if get_struct(source, "target").get("averageValue") is not None:
        return ()
    return (
        errors.required(path.child("target", "averageValue"), "must specify a positive target averageValue"),
    )


_NAME: Final = checks.require("name", detail="must specify a resource name")
_RAW_OR_UTILIZATION: Final = _one_target(
    "averageUtilization",
    "averageValue",
    missing="must set either a target raw value or a target utilization",
    both="may not set both a target raw value and a target utilization",
)

_SOURCES: Final[Mapping[str, Check]] = {
    "object": checks.all_of(
        checks.field("describedObject", _reference(core_allowed=True), absent={}),
        _METRIC,
        _TARGET,
        _one_target("averageValue", "value", missing="must set either a target value or averageValue"),
    ),
    "external": checks.all_of(
        _METRIC,
        _TARGET,
        _one_target(
            "averageValue",
            "value",
            missing="must set either a target value for metric or a per-pod target",
            both="may not set both a target value for metric and a per-pod target",
        ),
    ),
    "pods": checks.all_of(_METRIC, _TARGET, _check_average),
    "resource": checks.all_of(_NAME, _TARGET, _RAW_OR_UTILIZATION),
    "containerResource": checks.all_of(
        checks.require("name", check_container_name, detail="must specify a resource name"),
        checks.require(
            "container", checks.report(names.check_dns1123_label), detail="must specify a container"
        ),
        _TARGET,
        _RAW_OR_UTILIZATION,
    ),
}

_TYPES: Final[Mapping[str, str]] = {
    "ContainerResource": "containerResource",
    "External": "external",
    "Object": "object",
    "Pods": "pods",
    "Resource": "resource",
}


def _check_metric(metric: ReadOnlyTree, path: Path) -> Iterator[FieldError]:
    """Check a metric source. Upstream returns the error of an unknown type twice."""
    kind, present = metric.get("type", ""), [name for name in _SOURCES if metric.get(name) is not None]
    check_type, expected = checks.one_of(*_TYPES), _TYPES.get(kind, "")
    if not kind:
        yield errors.required(path.child("type"), "must specify a metric source type")
    yield from check_type(kind, path.child("type"))
    if present:
        yield from _SOURCES[present[0]](metric[present[0]], path.child(present[0]))
    yield from check_type(kind, path.child("type"))
    if expected and expected not in present:
        detail = "must populate information for the given metric source"
        yield errors.required(path.child(expected), detail)
    if len(present) != 1:
        for name in present:
            if name != expected:
                yield errors.forbidden(path.child(name), "must populate the given metric source only")


def _metrics(spec: ReadOnlyTree) -> Any:
    utilization = spec.get("targetCPUUtilizationPercentage")
    if utilization is None:
        return spec.get("metrics")
    target = {"type": "Utilization", "averageUtilization": utilization}
    return [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]


def _check_metrics(spec: ReadOnlyTree, path: Path) -> Iterator[FieldError]:
    metrics, path = _metrics(spec), path.child("metrics")
    yield from checks.each_item(_check_metric)(metrics, path)
    if spec.get("minReplicas") == 0 and not any(
        metric.get("type") in ("Object", "External") for metric in metrics or ()
    ):
        detail = "must specify at least one Object or External metric to support scaling to zero replicas"
        yield errors.forbidden(path, detail)


# --- behavior


def _at_most(limit: int) -> Check:
    return checks.require_that(lambda value: value <= limit, f"must be less than or equal to {limit}")


_POLICY: Final = checks.all_of(
    checks.field("type", checks.one_of("Percent", "Pods"), absent=""),
    checks.field("value", checks.positive, absent=0),
    checks.field("periodSeconds", checks.positive, _at_most(1800), absent=0),
)

_RULES: Final = checks.all_of(
    checks.pointer(
        "stabilizationWindowSeconds",
        checks.require_that(lambda seconds: seconds >= 0, "must be greater than or equal to zero"),
        _at_most(3600),
    ),
    checks.pointer("selectPolicy", checks.one_of("Disabled", "Max", "Min")),
    checks.require("policies", checks.each_item(_POLICY), detail="must specify at least one Policy"),
    checks.pointer("tolerance", check_not_negative),
)

_BEHAVIOR: Final = checks.all_of(checks.pointer("scaleUp", _RULES), checks.pointer("scaleDown", _RULES))


# --- specs

_AT_LEAST_ONE: Final = "must be greater than or equal to 1"


def _check_max_replicas(spec: ReadOnlyTree, path: Path) -> Iterator[FieldError]:
    maximum, minimum, path = spec.get("maxReplicas", 0), spec.get("minReplicas"), path.child("maxReplicas")
    if maximum == 0:
        yield errors.required(path, "must be set and greater than 0")
    elif maximum < 1:
        yield errors.invalid(path, maximum, _AT_LEAST_ONE)
    if minimum is not None and maximum < minimum:
        yield errors.invalid(path, maximum, "must be greater than or equal to `minReplicas`")


def _spec(min_replicas: int) -> Callable[[ReadOnlyTree, Path], Iterable[FieldError]]:
    return checks.all_of(
        checks.pointer(
            "minReplicas",
            checks.require_that(
                lambda value: value >= min_replicas, f"must be greater than or equal to {min_replicas}"
            ),
        ),
        _check_max_replicas,
        checks.field("scaleTargetRef", _reference(core_allowed=False), absent={}),
        _check_metrics,
        checks.optional("behavior", _BEHAVIOR),
    )


_FROM_ONE, _FROM_ZERO = _spec(1), _spec(0)
_SPEC: Final = ROOT.child("spec")


def _create(tree: ReadOnlyTree) -> Iterable[FieldError]:
    return _FROM_ZERO(get_struct(tree, "spec"), _SPEC)


def _create_from_one(tree: ReadOnlyTree) -> Iterable[FieldError]:
    return _FROM_ONE(get_struct(tree, "spec"), _SPEC)


def _update_from_one(new: ReadOnlyTree, old: ReadOnlyTree) -> Iterable[FieldError]:
    """Allow `minReplicas` 0 only if the old object has it."""
    check = _FROM_ZERO if get_struct(old, "spec").get("minReplicas") == 0 else _FROM_ONE
    return check(get_struct(new, "spec"), _SPEC)


_STATUS: Final = checks.all_of(
    checks.field("conditions", checks.each_item(checks.pointer("observedGeneration", checks.non_negative))),
    checks.field("currentReplicas", checks.non_negative),
    checks.field("desiredReplicas", checks.non_negative),
)

VALIDATION: Final = Validation(
    create=_create,
    update=repeat_create_checks(_create),
    subresources={"status": part(_STATUS, "status")},
    declared=DeclaredRules(
        valid("spec.minReplicas"), required("spec.maxReplicas"), valid("spec.maxReplicas", _AT_LEAST_ONE)
    ),
)
OLDER_VALIDATION: Final = structs.replace(VALIDATION, create=_create_from_one, update=_update_from_one)
"""The validation without the gate HPAScaleToZero."""
