"""DaemonSet."""

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any, Final

from mockube.apimachinery import errors, meta
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.groups import GroupKind
from mockube.apimachinery.paths import ROOT, Path
from mockube.apimachinery.tree import ReadOnlyTree, Tree
from mockube.apimachinery.wellknown import ANNOTATION_TEMPLATE_GENERATION
from mockube.apiserver.kinds.api_resource import STATUS, Resource
from mockube.apiserver.kinds.common import ages
from mockube.apiserver.kinds.common.cells import (
    CONTAINERS,
    IMAGES,
    SELECTOR,
    labels_text,
    names_and_images,
    number,
    part,
    selector_text,
)
from mockube.apiserver.kinds.common.checks import Check, all_of, field, non_negative
from mockube.apiserver.kinds.common.defaults import defaults_table
from mockube.apiserver.kinds.common.internal import internal
from mockube.apiserver.kinds.common.selectors import (
    check_selector,
    check_selector_leniently,
    has_wrong_values,
)
from mockube.apiserver.kinds.common.validation import Validation, immutable_fields, in_order
from mockube.apiserver.kinds.common.warnings import Warnings
from mockube.apiserver.kinds.core.pod import workloads
from mockube.apiserver.kinds.core.pod.context import STRICT, PodValidationOptions
from mockube.apiserver.kinds.core.pod.defaults import INTERNAL_CHANGES_OF_TEMPLATE
from mockube.apiserver.kinds.core.pod.pod_template import (
    check_pod_template,
    options_from_old_template,
    pod_warnings_of,
)
from mockube.apiserver.kinds.core.pod.strategy import DISABLED_IN_TEMPLATE, EMPTIABLE_IN_TEMPLATE
from mockube.apiserver.kinds.kind import Kind
from mockube.apiserver.kinds.strategy import MAIN, SPEC, Strategy, StrategyContext
from mockube.apiserver.wire.table import AGE_COLUMN, NAME, Column, Printer

# --- validation

_ON_DELETE, _ROLLING_UPDATE = "OnDelete", "RollingUpdate"


def _check_rolling_update(update: ReadOnlyTree, path: Path) -> Iterator[FieldError]:
    """Check that exactly one of the two is not 0: a node's pod is deleted either before or after its successor is created."""
    max_unavailable, max_surge = update.get("maxUnavailable", 0), update.get("maxSurge", 0)
    unavailable_path, surge_path = path.child("maxUnavailable"), path.child("maxSurge")
    for check in (workloads.check_amount, workloads.check_not_more_than_100_percent):
        yield from check(max_unavailable, unavailable_path)
        yield from check(max_surge, surge_path)
    if workloads.value_of(max_unavailable) and workloads.value_of(max_surge):
        problem = "may not be set when maxUnavailable is non-zero"
        yield errors.invalid(surge_path, max_surge, problem)
    elif not workloads.value_of(max_unavailable) and not workloads.value_of(max_surge):
        yield errors.required(unavailable_path, "cannot be 0 when maxSurge is 0")


def _check_strategy(strategy: ReadOnlyTree, path: Path) -> Iterable[FieldError]:
    strategy_type = strategy.get("type", "")
    if strategy_type == _ON_DELETE:
        return ()
    if strategy_type != _ROLLING_UPDATE:
        value = internal("apps.DaemonSetUpdateStrategy", strategy)
        return (errors.not_supported(path, value, (_ROLLING_UPDATE, _ON_DELETE)),)
    path = path.child("rollingUpdate")
    if strategy.get("rollingUpdate") is None:
        return (errors.required(path),)
    return _check_rolling_update(strategy["rollingUpdate"], path)


_UPDATE_FIELDS: Final = all_of(
    field("updateStrategy", _check_strategy, absent={}), field("revisionHistoryLimit", non_negative)
)


def _check_selector(spec: ReadOnlyTree, path: Path, check: Check) -> Iterator[FieldError]:
    """Check the selector. As upstream, a missing selector selects nothing."""
    selector, parsed_selector = spec.get("selector"), workloads.selector_of(spec)
    if selector is not None:
        yield from check(selector, path.child("selector"))
    if parsed_selector is not None:
        yield from workloads.check_matches(
            spec.get("template") or {}, parsed_selector, path.child("template")
        )
    if selector is not None and workloads.is_empty(selector):
        problem = "empty selector is invalid for daemonset"
        yield errors.invalid(path.child("selector"), selector, problem)


def _check_spec(
    daemon_set: ReadOnlyTree, options: PodValidationOptions, selector: Check = check_selector
) -> Iterator[FieldError]:
    spec, path = daemon_set.get("spec") or {}, ROOT.child("spec")
    template, field_path = spec.get("template") or {}, path.child("template")
    yield from _check_selector(spec, path, selector)
    yield from check_pod_template(template, field_path, options)
    yield from workloads.check_restarts(template, field_path, "DaemonSet")
    yield from field("minReadySeconds", non_negative)(spec, path)
    yield from _UPDATE_FIELDS(spec, path)


def _create(daemon_set: ReadOnlyTree) -> Iterator[FieldError]:
    return _check_spec(daemon_set, STRICT)


def _update(new: ReadOnlyTree, old: ReadOnlyTree) -> Iterator[FieldError]:
    spec = old.get("spec") or {}
    options = options_from_old_template(spec.get("template") or {})
    is_lenient = options.selector_values or has_wrong_values(spec.get("selector") or {})
    return _check_spec(new, options, check_selector_leniently if is_lenient else check_selector)


_STATUS: Final = workloads.counts(
    "currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled", "numberReady", "observedGeneration",
    "updatedNumberScheduled", "numberAvailable", "numberUnavailable", "collisionCount",
)  # fmt: skip


# --- strategy


def _template_generation(daemon_set: Tree) -> int:
    text = meta.annotations(daemon_set).get(ANNOTATION_TEMPLATE_GENERATION, "")
    return int(text) if text.isascii() and text.isdigit() else 0


def _set_template_generation(daemon_set: Tree, generation: int) -> None:
    annotations = {**meta.annotations(daemon_set), ANNOTATION_TEMPLATE_GENERATION: str(generation)}
    daemon_set["metadata"]["annotations"] = annotations


def _begin_template_generation(daemon_set: Tree, _request: StrategyContext) -> None:
    _set_template_generation(daemon_set, max(_template_generation(daemon_set), 1))


def _count_template_generation(new: Tree, old: Tree, _request: StrategyContext) -> None:
    """Increment the generation if the template has changed. The client's annotation is ignored."""
    is_new = new["spec"].get("template") != old["spec"].get("template")
    _set_template_generation(new, _template_generation(old) + is_new)


def _keep_template_generation(new: Tree, old: Tree, _request: StrategyContext) -> None:
    _set_template_generation(new, _template_generation(old))


_STRATEGY = Strategy(
    generation=SPEC,
    first_generation=1,
    disabled=DISABLED_IN_TEMPLATE,
    emptiable=EMPTIABLE_IN_TEMPLATE,
    prepare_create=_begin_template_generation,
    prepare_update={MAIN: _count_template_generation, "status": _keep_template_generation},
)


# --- warnings and columns

_pod_warnings: Final = pod_warnings_of(GroupKind("apps", "DaemonSet"))


def _warn_update(new: ReadOnlyTree, old: ReadOnlyTree) -> Iterator[str]:
    if (new.get("spec") or {}).get("template") != (old.get("spec") or {}).get("template"):
        yield from _pod_warnings(new)


def _cells(tree: Tree, now: datetime) -> list[Any]:
    template = part(tree, "spec", "template")
    return [
        meta.name(tree),
        number(tree, "status", "desiredNumberScheduled"),
        number(tree, "status", "currentNumberScheduled"),
        number(tree, "status", "numberReady"),
        number(tree, "status", "updatedNumberScheduled"),
        number(tree, "status", "numberAvailable"),
        labels_text(part(template, "spec", "nodeSelector")),
        ages.age(tree, now),
        *names_and_images(template),
        selector_text(part(tree, "spec", "selector")),
    ]


def _normalize_template_generation(daemon_set: Tree) -> None:
    """Set the annotation of the template's generation, a field of the internal type that is always written: 0 if it is absent."""
    metadata = daemon_set.get("metadata") or {}
    annotations = metadata.get("annotations") or {}
    text = annotations.get(ANNOTATION_TEMPLATE_GENERATION, "0")
    if annotations.get(ANNOTATION_TEMPLATE_GENERATION) != (
        number := workloads.normalize_number("DaemonSet", text)
    ):
        annotations = annotations | {ANNOTATION_TEMPLATE_GENERATION: number}
        daemon_set["metadata"] = metadata | {"annotations": annotations}


KIND: Final = Kind(
    resource=Resource(
        group="apps",
        version="v1",
        name="daemonsets",
        kind="DaemonSet",
        categories=("all",),
        short_names=("ds",),
        subresources=(STATUS,),
    ),
    strategy=_STRATEGY,
    validation=Validation(
        create=_create,
        update=in_order(immutable_fields("spec", "selector"), _update),
        subresources={"status": in_order(workloads.status_update(_STATUS), workloads.check_collisions)},
    ),
    warnings=Warnings(create=_pod_warnings, update=_warn_update),
    printer=Printer(
        columns=(
            NAME,
            Column(name="Desired", type="integer"),
            Column(name="Current", type="integer"),
            Column(name="Ready", type="integer"),
            Column(name="Up-to-date", type="integer"),
            Column(name="Available", type="integer"),
            Column(name="Node Selector"),
            AGE_COLUMN,
            CONTAINERS,
            IMAGES,
            SELECTOR,
        ),
        cells=_cells,
    ),
    defaults=defaults_table(
        "io.k8s.api.apps.v1",
        {
            "DaemonSetSpec": {"revisionHistoryLimit": 10},
            "DaemonSetUpdateStrategy": (
                {"type": _ROLLING_UPDATE},
                workloads.default_rolling_update(maxUnavailable=1, maxSurge=0),
            ),
        },
    ),
    internal_changes=(*INTERNAL_CHANGES_OF_TEMPLATE, _normalize_template_generation),
)
