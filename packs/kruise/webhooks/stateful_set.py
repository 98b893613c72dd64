"""Advanced StatefulSet of v1beta1: the defaults and the validation of OpenKruise's webhooks."""

import re
from collections.abc import Iterable, Iterator
from typing import Final

from msgspec.structs import replace

from mockube.apimachinery import errors, gotext
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.intstr import IntOrString
from mockube.apimachinery.paths import ROOT, Path
from mockube.apimachinery.tree import ReadOnlyTree, Tree
from mockube.apiserver.kinds.common import checks
from mockube.apiserver.kinds.core.pod.pod_template import check_template_metadata
from mockube.apiserver.kinds.core.pod.workloads import check_amount
from mockube.apiserver.registry.registry import Registry
from mockube.packs.kruise.definitions.beta import RECREATE

from . import workloads
from .clone_set import IN_PLACE_IF_POSSIBLE, IN_PLACE_ONLY
from .go_form import go_int_or_string

_ON_DELETE, _ROLLING_UPDATE = "OnDelete", "RollingUpdate"
_ORDERED, _PARALLEL = "OrderedReady", "Parallel"
_READY: Final = "InPlaceUpdateReady"
_NAMES: Final = ("statefulset", "StatefulSet")
"""The kind's names in messages about its selector and about its pods."""
_MAX_MIN_READY_SECONDS: Final = 300
_SPEC: Final = ROOT.child("spec")
_ROLLING: Final = {"partition": 0, "maxUnavailable": 1, "podUpdatePolicy": RECREATE, "minReadySeconds": 0}


def set_defaults(tree: Tree, old: ReadOnlyTree | None) -> None:
    spec = tree["spec"]
    spec["podManagementPolicy"] = spec.get("podManagementPolicy") or _ORDERED
    strategy = spec["updateStrategy"]
    strategy["type"] = strategy.get("type") or _ROLLING_UPDATE
    if strategy["type"] == _ROLLING_UPDATE:
        strategy["rollingUpdate"] = _ROLLING | strategy.get("rollingUpdate", {})
    retention = spec.setdefault("persistentVolumeClaimRetentionPolicy", {})
    retention.setdefault("whenDeleted", "Retain")
    retention.setdefault("whenScaled", "Retain")
    spec.setdefault("replicas", 1)
    spec.setdefault("revisionHistoryLimit", 10)
    workloads.set_template_defaults(spec, old and old["spec"])


def validate(_registry: Registry, new: ReadOnlyTree, old: ReadOnlyTree | None) -> Iterator[FieldError]:
    spec = new["spec"]
    yield from _check_management(spec)
    yield from _check_reserved(spec)
    if "maxUnavailable" in spec.get("scaleStrategy", {}):
        path = _SPEC.child("scaleStrategy", "maxUnavailable")
        yield from _check_unavailable(spec["scaleStrategy"]["maxUnavailable"], spec, path)
    yield from _check_strategy(spec, _SPEC.child("updateStrategy"))
    if (retention := spec.get(_RETENTION_POLICY)) is not None:  # v1alpha1 does not have it
        yield from _RETENTION(retention, _SPEC.child(_RETENTION_POLICY))
    if spec["replicas"] < 0:
        yield errors.invalid(_SPEC.child("replicas"), spec["replicas"], checks.NOT_NEGATIVE)
    yield from workloads.check_own_template(
        spec, old and old["spec"], workloads.pod_template(spec["template"]), _NAMES, check_template_metadata
    )
    if old is not None and workloads.has_other_changes(spec, old["spec"], _CHANGEABLE):
        yield errors.forbidden(_SPEC, _UNCHANGEABLE)


def _check_management(spec: ReadOnlyTree) -> Iterable[FieldError]:
    policy = spec["podManagementPolicy"]
    if policy in (_ORDERED, _PARALLEL):
        return ()
    return (
        errors.invalid(_SPEC.child("podManagementPolicy"), policy, f"must be '{_ORDERED}' or '{_PARALLEL}'"),
    )


# --- reserved ordinals

_RANGE: Final = re.compile(r"[0-9]+-[0-9]+")


def _check_reserved(spec: ReadOnlyTree) -> Iterator[FieldError]:
    """Check the reserved ordinals. In upstream's errors the field is the whole spec."""
    ordinals = spec.get("reserveOrdinals") or ()
    for index, ordinal in enumerate(ordinals):
        for problem in _reserved_problems(ordinal):
            yield errors.invalid(_SPEC, ordinals, f"{index} th reserve ordinal is {problem}")


def _reserved_problems(ordinal: IntOrString) -> Iterator[str]:
    if isinstance(ordinal, int):
        if ordinal < 0:
            yield f"negative: {ordinal}"
        return
    if not _RANGE.fullmatch(ordinal):
        yield f"not a valid range: {ordinal}"
    if problem := _range_problem(ordinal):
        yield f"invalid: {ordinal}, err = {problem}"


def _range_problem(ordinal: str) -> str:
    ends = ordinal.split("-")
    try:
        if len(ends) != 2:
            return f"invalid range {ordinal}"
        start, end = (gotext.parse_int(each, function="Atoi") for each in ends)
    except gotext.NumberError as error:
        return str(error)
    return f"invalid range {ordinal}" if start > end else ""


# --- update strategy


def _check_strategy(spec: ReadOnlyTree, path: Path) -> Iterator[FieldError]:
    strategy = spec["updateStrategy"]
    update = strategy.get("rollingUpdate")
    if strategy["type"] == _ROLLING_UPDATE:
        yield from _check_rolling(spec, update, path.child("rollingUpdate"))
    elif strategy["type"] != _ON_DELETE:
        yield errors.invalid(path, strategy, f"must be '{_ROLLING_UPDATE}' or '{_ON_DELETE}'")
    elif update is not None:
        problem = f"only allowed for updateStrategy '{_ROLLING_UPDATE}'"
        yield errors.invalid(path.child("rollingUpdate"), update, problem)


_NUMBERS: Final = checks.all_of(
    checks.field("partition", checks.non_negative), checks.field("minReadySeconds", checks.non_negative)
)


def _check_rolling(spec: ReadOnlyTree, update: ReadOnlyTree, path: Path) -> Iterator[FieldError]:
    yield from _NUMBERS(update, path)
    if update["minReadySeconds"] > _MAX_MIN_READY_SECONDS:
        problem = f"must be no more than {_MAX_MIN_READY_SECONDS} seconds"
        yield errors.invalid(path.child("minReadySeconds"), update["minReadySeconds"], problem)
    yield from _check_unavailable(update["maxUnavailable"], spec, path.child("maxUnavailable"))
    yield from _check_policy(spec, update["podUpdatePolicy"], path.child("podUpdatePolicy"))
    unordered = update.get("unorderedUpdate")
    if unordered is not None:
        field_path = path.child("unorderedUpdate")
        if spec["podManagementPolicy"] != _PARALLEL:
            yield errors.required(
                field_path, "unorderedUpdate can only work with Parallel PodManagementPolicyType"
            )
        yield from workloads.check_priorities(
            unordered.get("priorityStrategy"), field_path.child("priorityStrategy")
        )


def _check_unavailable(value: IntOrString, spec: ReadOnlyTree, path: Path) -> Iterator[FieldError]:
    go_value = go_int_or_string(value)
    for error in check_amount(value, path):
        yield error if isinstance(value, int) else replace(error, value=go_value)
    try:
        number = _percent_of_one(value) if isinstance(value, str) else value
        if number < 1:
            yield errors.invalid(path, number, "should not be less than 1")
    except gotext.NumberError as error:
        problem = f"invalid value for IntOrString: invalid value {gotext.quote(str(value))}: {error}"
        yield errors.invalid(path, 0, f"getValueFromIntOrPercent error: {problem}")
    if spec["podManagementPolicy"] != _PARALLEL and value != 1:
        yield errors.invalid(path, go_value, "can only work with Parallel PodManagementPolicyType")


def _percent_of_one(text: str) -> int:
    """Return a percentage of 1, rounded up, as the old function of Go's intstr, to which percent signs do not matter."""
    return -(-gotext.parse_int(text.replace("%", ""), function="Atoi") // 100)


def _check_policy(spec: ReadOnlyTree, policy: str, path: Path) -> Iterable[FieldError]:
    if policy == RECREATE:
        return ()
    if policy not in (IN_PLACE_IF_POSSIBLE, IN_PLACE_ONLY):
        problem = f"must be '{RECREATE}', {IN_PLACE_IF_POSSIBLE} or '{IN_PLACE_ONLY}'"
        return (errors.invalid(path, policy, problem),)
    gates = spec["template"]["spec"].get("readinessGates") or []
    if any(gate.get("conditionType") == _READY for gate in gates):
        return ()
    problem = f"must contains {_READY} when podUpdatePolicy is {policy}"
    return (errors.invalid(_SPEC.child("template", "spec", "readinessGates"), gates, problem),)


_RETENTION_POLICY: Final = "persistentVolumeClaimRetentionPolicy"
_RETENTION: Final = checks.all_of(
    checks.field("whenDeleted", checks.one_of("Retain", "Delete"), absent=""),
    checks.field("whenScaled", checks.one_of("Retain", "Delete"), absent=""),
)


# --- changes

_CHANGEABLE: Final = frozenset(
    {
        "replicas", "ordinals", "template", "reserveOrdinals", "lifecycle", "revisionHistoryLimit",
        "persistentVolumeClaimRetentionPolicy", "volumeClaimTemplates", "volumeClaimUpdateStrategy",
        "updateStrategy", "scaleStrategy",
    }
)  # fmt: skip
_UNCHANGEABLE: Final = (
    "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'reserveOrdinals', "
    "'lifecycle', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy', `volumeClaimTemplates`, "
    "`VolumeClaimUpdateStrategy` and 'updateStrategy' are forbidden"
)
