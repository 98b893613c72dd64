"""DaemonSets."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from apimachinery import errors
from apimachinery.errors import FieldError
from apimachinery.groups import GroupKind
from apimachinery.paths import ROOT, Path
from apiserver.validation.internal import internal
from apiserver.validation.kind import Validation
from apiserver.validation.labels import check_selector, check_selector_leniently, has_wrong_values
from apiserver.validation.objects import together, unchanged
from apiserver.validation.pods.leniency import STRICT, Leniency
from apiserver.validation.pods.template import check_pod_template, leniency_towards_template
from apiserver.validation.rules import Check, Tree, every, field, non_negative
from apiserver.validation.workloads.counts import check_collisions, counts, status_update
from apiserver.validation.workloads.rolling import check_daemon_set
from apiserver.validation.workloads.selected import check_matches, check_restarts, is_empty, selector_of

_ON_DELETE, _ROLLING_UPDATE = "OnDelete", "RollingUpdate"


def _check_strategy(strategy: Tree, path: Path) -> Iterable[FieldError]:
    of_type = strategy.get("type", "")
    if of_type == _ON_DELETE:
        return ()
    if of_type != _ROLLING_UPDATE:
        shown = internal("apps.DaemonSetUpdateStrategy", strategy)
        return (errors.not_supported(path, shown, (_ROLLING_UPDATE, _ON_DELETE)),)
    path = path.child("rollingUpdate")
    if strategy.get("rollingUpdate") is None:
        return (errors.required(path),)
    return check_daemon_set(strategy["rollingUpdate"], path)


_REST: Final = every(
    field("updateStrategy", _check_strategy, absent={}), field("revisionHistoryLimit", non_negative)
)


def _check_selector(spec: Tree, path: Path, check: Check) -> Iterator[FieldError]:
    """Upstream takes one that is missing for one that selects nothing."""
    selector, readable = spec.get("selector"), selector_of(spec)
    if selector is not None:
        yield from check(selector, path.child("selector"))
    if readable is not None:
        yield from check_matches(spec.get("template") or {}, readable, path.child("template"))
    if selector is not None and is_empty(selector):
        problem = "empty selector is invalid for daemonset"
        yield errors.invalid(path.child("selector"), selector, problem)


def _check_spec(
    daemon_set: Tree, leniency: Leniency, selector: Check = check_selector
) -> Iterator[FieldError]:
    spec, path = daemon_set.get("spec") or {}, ROOT.child("spec")
    template, at = spec.get("template") or {}, path.child("template")
    yield from _check_selector(spec, path, selector)
    yield from check_pod_template(template, at, leniency)
    yield from check_restarts(template, at, "DaemonSet")
    yield from field("minReadySeconds", non_negative)(spec, path)
    yield from _REST(spec, path)


def _create(daemon_set: Tree) -> Iterator[FieldError]:
    return _check_spec(daemon_set, STRICT)


def _update(new: Tree, old: Tree) -> Iterator[FieldError]:
    spec = old.get("spec") or {}
    leniency = leniency_towards_template(spec.get("template") or {})
    is_lenient = leniency.selector_values or has_wrong_values(spec.get("selector") or {})
    return _check_spec(new, leniency, check_selector_leniently if is_lenient else check_selector)


_STATUS: Final = counts(
    "currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled", "numberReady", "observedGeneration",
    "updatedNumberScheduled", "numberAvailable", "numberUnavailable", "collisionCount",
)  # fmt: skip

VALIDATIONS: Final[Mapping[GroupKind, Validation]] = {
    GroupKind("apps", "DaemonSet"): Validation(
        create=_create,
        update=together(unchanged("spec", "selector"), _update),
        subresources={"status": together(status_update(_STATUS), check_collisions)},
    ),
}
