"""UnitedDeployment: the defaults and the validation of OpenKruise's webhooks."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from msgspec import Struct

from mockube.apimachinery import errors, meta, names
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.labels.selector import NOTHING, Selector
from mockube.apimachinery.paths import ROOT, Path
from mockube.apimachinery.subset_replicas import SubsetReplicasError, parse_subset_replicas
from mockube.apimachinery.tree import ReadOnlyTree, Tree
from mockube.apiserver.kinds.common.checks import NOT_NEGATIVE
from mockube.apiserver.kinds.common.selectors import check_term
from mockube.apiserver.kinds.core.pod.context import STRICT
from mockube.apiserver.kinds.core.pod.pod_template import check_template_metadata
from mockube.apiserver.kinds.core.pod.scheduling import check_tolerations
from mockube.apiserver.kinds.core.pod.workloads import (
    check_matches,
    check_required_selector,
    check_selected_template,
    selector_of,
)
from mockube.apiserver.packs.kruise.workloads import has_other_changes, pod_template, set_template_defaults
from mockube.apiserver.registry.registry import Registry

CheckPods: TypeAlias = Callable[[ReadOnlyTree, Selector, Path], Iterable[FieldError]]

_MANUAL: Final = "Manual"
_SPEC: Final = ROOT.child("spec")
_STATEFUL: Final = ("advancedStatefulSetTemplate", "statefulSetTemplate")


def set_defaults(registry: Registry, tree: Tree, old: ReadOnlyTree | None) -> None:
    spec = tree["spec"]
    spec.setdefault("revisionHistoryLimit", 10)
    strategy = spec.setdefault("updateStrategy", {})
    strategy["type"] = strategy.get("type") or _MANUAL
    if strategy["type"] == _MANUAL:
        strategy.setdefault("manualUpdate", {})
    template, old_template = spec.get("template") or {}, (old or {}).get("spec", {}).get("template")
    stateful_set = template.get("statefulSetTemplate")
    if stateful_set is not None and template != old_template:
        stateful_set["spec"].setdefault("template", {})
        set_template_defaults(registry, stateful_set["spec"], None)
    _default_min_replicas((spec.get("topology") or {}).get("subsets") or ())


def _default_min_replicas(subsets: Iterable[Tree]) -> None:
    """Set minReplicas to 0 if a subset has bounds and none has replicas."""
    subsets = list(subsets)
    has_bounds = any(subset.keys() & {"minReplicas", "maxReplicas"} for subset in subsets)
    if has_bounds and not any("replicas" in subset for subset in subsets):
        for subset in subsets:
            subset.setdefault("minReplicas", 0)


def validate(registry: Registry, new: ReadOnlyTree, old: ReadOnlyTree | None) -> Iterator[FieldError]:
    spec, topology = new["spec"], new["spec"].get("topology") or {}
    yield from _check_numbers(spec, topology)
    selector = selector_of(spec)
    if selector is None:
        yield errors.invalid(_SPEC.child("selector"), spec["selector"], "")
    template = spec.get("template") or {}
    yield from _check_template(registry, template, selector or NOTHING, _SPEC.child("template"))
    path = _SPEC.child("topology")
    subsets = topology.get("subsets") or ()
    yield from _check_replicas(spec.get("replicas"), subsets, path.child("subsets"))
    yield from _check_subsets(topology, path)
    subset_names = {subset["name"] for subset in subsets}
    yield from _check_partitions(
        spec["updateStrategy"], subset_names, _SPEC.child("updateStrategy", "partitions")
    )
    if old is not None:
        old_spec = old["spec"]
        yield from _check_template_change(template, old_spec.get("template") or {}, _SPEC.child("template"))
        yield from _check_subset_changes(topology, old_spec.get("topology") or {}, path)


def _check_numbers(spec: ReadOnlyTree, topology: ReadOnlyTree) -> Iterator[FieldError]:
    replicas, template = spec.get("replicas"), spec.get("template") or {}
    if replicas is not None and replicas < 0:
        yield errors.invalid(_SPEC.child("replicas"), replicas, NOT_NEGATIVE)
    yield from check_required_selector(spec, _SPEC, "statefulset")
    strategy = topology.get("scheduleStrategy") or {}
    reserves = bool((strategy.get("adaptive") or {}).get("reserveUnschedulablePods"))
    if strategy.get("type") == "Adaptive" and reserves and any(template.get(name) for name in _STATEFUL):
        problem = "only stateless workloads (Deployment and CloneSet) are supported by reserved rescheduling"
        yield errors.invalid(_SPEC.child("topology", "scheduleStrategy"), strategy, problem)


def _check_partitions(strategy: ReadOnlyTree, subset_names: set[str], path: Path) -> Iterable[FieldError]:
    partitions = (strategy.get("manualUpdate") or {}).get("partitions") or {}
    return [
        errors.invalid(path, partitions, f"subset {name} does not exist")
        for name in partitions
        if name not in subset_names
    ]


# --- the template of the workloads, which has exactly one kind

_NAMES: Final = "statefulSetTemplate, advancedStatefulSetTemplate, cloneSetTemplate, or deploymentTemplate"
_MISMATCH: Final = "`selector` does not match template `labels`"
_CHANGEABLE: Final = ("replicas", "template", "updateStrategy")


def _check_stateful_set_pods(template: ReadOnlyTree, selector: Selector, path: Path) -> Iterator[FieldError]:
    if not selector.empty:
        yield from check_matches(template, selector, path)
    yield from check_template_metadata(template, path, STRICT)


def _check_replica_set_pods(template: ReadOnlyTree, selector: Selector, path: Path) -> Iterator[FieldError]:
    return check_selected_template(template, selector, path, kind="ReplicaSet")


class _TemplateRules(Struct, frozen=True, kw_only=True):
    """The validation of the template of one kind."""

    check_pods: CheckPods
    labels_field: str
    """The field of upstream's error if the selector does not match the labels."""
    has_partition: bool = False
    unchangeable: str = ""
    """The error if a field other than pods and their update changes; "" if every field may change."""


_RULES: Final[Mapping[str, _TemplateRules]] = {
    "statefulSetTemplate": _TemplateRules(
        check_pods=_check_stateful_set_pods,
        labels_field="statefulSetTemplate",
        has_partition=True,
        unchangeable="updates to statefulsetTemplate spec for fields other than 'template', and "
        "'updateStrategy' are forbidden",
    ),
    "advancedStatefulSetTemplate": _TemplateRules(
        check_pods=_check_stateful_set_pods,
        labels_field="statefulSetTemplate",
        has_partition=True,
        unchangeable="updates to advancedStatefulsetTemplate spec for fields other than 'template', and "
        "'updateStrategy' are forbidden",
    ),
    "deploymentTemplate": _TemplateRules(
        check_pods=_check_replica_set_pods, labels_field="deploymentTemplate"
    ),
}
_ALL: Final = (*_RULES, "cloneSetTemplate")


def _check_template(
    registry: Registry, template: ReadOnlyTree, selector: Selector, path: Path
) -> Iterator[FieldError]:
    template_names = [name for name in _ALL if template.get(name) is not None]
    if not template_names:
        yield errors.required(path, f"should provide one of {_NAMES}")
    if len(template_names) > 1:
        yield errors.invalid(path, template, f"should provide only one of {_NAMES}")
    if template_names and template_names[0] in _RULES:
        yield from _check_workload(registry, template_names[0], template[template_names[0]], selector, path)


def _check_workload(
    registry: Registry, name: str, workload: ReadOnlyTree, selector: Selector, path: Path
) -> Iterator[FieldError]:
    rules, spec = _RULES[name], workload["spec"]
    labels = meta.labels(workload)
    if not selector.matches(labels):
        field_path = path.child(rules.labels_field, "metadata", "labels")
        yield errors.invalid(field_path, dict(labels), _MISMATCH)
    path = path.child(name, "spec")
    if spec.get("replicas") is not None:
        problem = f"replicas in {name} will not be used"
        yield errors.invalid(path.child("replicas"), spec["replicas"], problem)
    if rules.has_partition:
        yield from _check_partition(name, spec.get("updateStrategy") or {}, path.child("updateStrategy"))
    template = pod_template(registry, spec.get("template"))
    yield from rules.check_pods(template, selector, path.child("template"))


def _check_partition(name: str, strategy: ReadOnlyTree, path: Path) -> Iterable[FieldError]:
    partition = (strategy.get("rollingUpdate") or {}).get("partition")
    if strategy.get("type") != "RollingUpdate" or partition is None:
        return ()
    problem = f"partition in {name} will not be used"
    return (errors.invalid(path.child("rollingUpdate", "partition"), partition, problem),)


def _check_template_change(new: ReadOnlyTree, old: ReadOnlyTree, path: Path) -> Iterable[FieldError]:
    """Check a change of the template. Its kind may change; if it does not, some fields are immutable."""
    name = next((name for name in _RULES if new.get(name) and old.get(name)), "")
    if not name or not _RULES[name].unchangeable:
        return ()
    if not has_other_changes(new[name]["spec"], old[name]["spec"], _CHANGEABLE):
        return ()
    return (errors.forbidden(path.child(name, "spec"), _RULES[name].unchangeable),)


# --- subsets

_ADAPTIVE: Final = "Adaptive"
_UNLIMITED: Final = 1_000_000
_NOT_SET: Final = -1
"""The replicas of a UnitedDeployment without this field: they are the sum of its subsets' replicas."""


# --- each subset


def _check_subsets(topology: ReadOnlyTree, path: Path) -> Iterator[FieldError]:
    is_adaptive = (topology.get("scheduleStrategy") or {}).get("type") == _ADAPTIVE
    seen: set[str] = set()
    for index, subset in enumerate(topology.get("subsets") or ()):
        subset_path = path.child("subsets").index(index)
        yield from _check_name(subset["name"], seen, subset_path.child("name"))
        seen.add(subset["name"])
        yield from check_term(subset.get("nodeSelectorTerm") or {}, subset_path.child("nodeSelectorTerm"))
        yield from check_tolerations(
            subset.get("tolerations") or (), subset_path.child("tolerations"), compared=False
        )
        if is_adaptive and subset.get("replicas") is not None:
            detail = "specify replicas use minReplicas/maxReplicas to enable adaptive strategy"
            yield errors.forbidden(subset_path.child("replicas"), detail)


def _check_name(name: str, seen: set[str], path: Path) -> Iterator[FieldError]:
    if not name:
        yield errors.required(path)
    if name in seen:
        yield errors.invalid(path, name, f"duplicated subset name {name}")
    problems = names.check_dns1123_label(name)
    if problems:
        yield errors.invalid(path, name, f"invalid subset name {', '.join(problems)}")


# --- the replicas of all subsets


class _SubsetReplicas(Struct, frozen=True, kw_only=True):
    """The replicas of one subset as numbers, and the errors of invalid ones."""

    replicas: int
    minimum: int
    maximum: int
    problems: Sequence[FieldError]


def _check_replicas(
    replicas: int | None, subsets: Sequence[ReadOnlyTree], path: Path
) -> Iterator[FieldError]:
    total = _NOT_SET if replicas is None else replicas
    requested = [_subset_replicas(subset, total, path.index(index)) for index, subset in enumerate(subsets)]
    for index, (subset_replicas, subset) in enumerate(zip(requested, subsets, strict=True)):
        yield from subset_replicas.problems
        if subset_replicas.minimum > subset_replicas.maximum:
            problem = f"subset[{index}].minReplicas must be more than or equal to maxReplicas"
            yield errors.invalid(path.index(index).child("minReplicas"), subset.get("maxReplicas"), problem)
    has_replicas = any(subset.get("replicas") is not None for subset in subsets)
    has_bounds = any(_is_bounded(subset) for subset in subsets)
    if has_replicas and has_bounds:
        problem = (
            "subset.Replicas and subset.MinReplicas/subset.MaxReplicas are mutually exclusive in a "
            "UnitedDeployment"
        )
        yield errors.invalid(path, list(subsets), problem)
    elif has_bounds:
        yield from _check_bounds(total, subsets, requested, path)
    else:
        yield from _check_sum(
            total, subsets, sum(subset_replicas.replicas for subset_replicas in requested), path
        )


def _is_bounded(subset: ReadOnlyTree) -> bool:
    return subset.get("minReplicas") is not None or subset.get("maxReplicas") is not None


def _subset_replicas(subset: ReadOnlyTree, total: int, path: Path) -> _SubsetReplicas:
    numbers, problems = {}, []
    for name, absent in (("replicas", 0), ("minReplicas", 0), ("maxReplicas", _UNLIMITED)):
        value = subset.get(name)
        try:
            numbers[name] = absent if value is None else parse_subset_replicas(total, value)
        except SubsetReplicasError as error:
            numbers[name] = 0
            problems.append(errors.invalid(path.child(name), value, str(error)))
    return _SubsetReplicas(
        replicas=numbers["replicas"],
        minimum=numbers["minReplicas"],
        maximum=numbers["maxReplicas"],
        problems=problems,
    )


def _check_bounds(
    total: int, subsets: Sequence[ReadOnlyTree], requested: Sequence[_SubsetReplicas], path: Path
) -> Iterator[FieldError]:
    if total == _NOT_SET:
        problem = "spec.replicas must be not empty if you set subset.minReplicas/maxReplicas"
        yield errors.invalid(path, total, problem)
    limited = sum(subset.get("maxReplicas") is not None for subset in subsets)
    if limited >= len(subsets):
        yield errors.invalid(path, limited, "at least one subset.maxReplicas must be empty")
    minimum = sum(subset_replicas.minimum for subset_replicas in requested)
    if minimum > sum(subset_replicas.maximum for subset_replicas in requested):
        problem = "sum of indicated subset.minReplicas should not be greater than sum of indicated subset.maxReplicas"
        yield errors.invalid(path, minimum, problem)


def _check_sum(
    total: int, subsets: Sequence[ReadOnlyTree], subset_total: int, path: Path
) -> Iterator[FieldError]:
    subset_count = sum(subset.get("replicas") is not None for subset in subsets)
    if total == _NOT_SET:
        if subset_count != len(subsets):
            problem = (
                "if UnitedDeployment replicas is not provided, replicas of all subsets should be provided"
            )
            yield errors.invalid(path, subset_total, problem)
        return
    if subset_total > total:
        problem = f"sum of indicated subset replicas {subset_total} should not be greater than UnitedDeployment replicas {total}"
        yield errors.invalid(path, subset_total, problem)
    if subset_count == len(subsets) > 0 and subset_total != total:
        problem = (
            f"if replicas of all subsets are provided, the sum of indicated subset replicas {subset_total} should equal "
            f"UnitedDeployment replicas {total}"
        )
        yield errors.invalid(path, subset_total, problem)


# --- changes of subsets

_IMMUTABLE: Final = ("nodeSelectorTerm", "tolerations")


def _check_subset_changes(new: ReadOnlyTree, old: ReadOnlyTree, path: Path) -> Iterable[FieldError]:
    old_subsets = {subset["name"]: subset for subset in old.get("subsets") or ()}
    return [
        errors.forbidden(path.child("subsets").index(index).child(name), "may not be changed in an update")
        for index, subset in enumerate(new.get("subsets") or ())
        for name in _IMMUTABLE
        if subset["name"] in old_subsets
        and (subset.get(name) or None) != (old_subsets[subset["name"]].get(name) or None)
    ]
