"""UnitedDeployment: the defaults and the validation of OpenKruise's webhooks."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from msgspec import Struct

from mockube.apimachinery import errors, names
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.labels.selector import NOTHING, Selector
from mockube.apimachinery.paths import ROOT, Path
from mockube.apimachinery.tree import ReadOnlyTree, Tree
from mockube.apiserver.kinds.apps.stateful_set import NUMBERS, POLICIES
from mockube.apiserver.kinds.common.checks import NOT_NEGATIVE
from mockube.apiserver.kinds.common.selectors import check_term
from mockube.apiserver.kinds.core.pod import workloads
from mockube.apiserver.kinds.core.pod.context import STRICT
from mockube.apiserver.kinds.core.pod.pod_template import check_template_metadata
from mockube.apiserver.kinds.core.pod.scheduling import check_tolerations
from mockube.apiserver.registry.registry import Registry
from mockube.packs.kruise.replicas import SubsetReplicasError, parse_subset_replicas

from .go_form import go_int_or_string
from .workloads import has_other_changes, pod_template, set_template_defaults

_MANUAL: Final = "Manual"
_SPEC: Final = ROOT.child("spec")
_STATEFUL: Final = ("advancedStatefulSetTemplate", "statefulSetTemplate")


def set_defaults(tree: Tree, old: ReadOnlyTree | None) -> None:
    spec = tree["spec"]
    spec.setdefault("replicas", 1)
    spec.setdefault("revisionHistoryLimit", 10)
    strategy = spec["updateStrategy"]
    strategy["type"] = strategy.get("type") or _MANUAL
    if strategy["type"] == _MANUAL:
        strategy.setdefault("manualUpdate", {})
    stateful_set = spec["template"].get("statefulSetTemplate")
    if stateful_set is not None and (old is None or spec["template"] != old["spec"]["template"]):
        set_template_defaults(stateful_set["spec"], None)
    _default_min_replicas(spec["topology"].get("subsets") or ())


def _default_min_replicas(subsets: Iterable[Tree]) -> None:
    """Set minReplicas to 0 if a subset has bounds and none has replicas."""
    subsets = list(subsets)
    has_bounds = any(subset.keys() & {"minReplicas", "maxReplicas"} for subset in subsets)
    if has_bounds and not any("replicas" in subset for subset in subsets):
        for subset in subsets:
            subset.setdefault("minReplicas", 0)


def validate(_registry: Registry, new: ReadOnlyTree, old: ReadOnlyTree | None) -> Iterator[FieldError]:
    spec, topology = new["spec"], new["spec"]["topology"]
    yield from _check_numbers(spec, topology)
    selector = workloads.selector_of(spec)
    if selector is None:
        yield errors.invalid(_SPEC.child("selector"), spec["selector"], "")
    else:
        yield from _check_template(spec, selector, _SPEC.child("template"))
    path = _SPEC.child("topology")
    subsets = topology.get("subsets") or ()
    yield from _check_replicas(spec["replicas"], subsets, path.child("subsets"))
    yield from _check_subsets(topology, path)
    subset_names = {subset["name"] for subset in subsets}
    yield from _check_update(spec["updateStrategy"], subset_names, _SPEC.child("updateStrategy"))
    if old is not None:
        yield from _check_template_change(spec, old["spec"]["template"], _SPEC.child("template"))
        yield from _check_subset_changes(topology, old["spec"]["topology"], path)


def _check_numbers(spec: ReadOnlyTree, topology: ReadOnlyTree) -> Iterator[FieldError]:
    template = spec["template"]
    yield from workloads.check_required_selector(spec, _SPEC, "statefulset")
    strategy = topology.get("scheduleStrategy") or {}
    reserves = bool((strategy.get("adaptive") or {}).get("reserveUnschedulablePods"))
    if strategy.get("type") == "Adaptive" and reserves and any(template.get(name) for name in _STATEFUL):
        problem = "only stateless workloads (Deployment and CloneSet) are supported by reserved rescheduling"
        yield errors.invalid(_SPEC.child("topology", "scheduleStrategy"), strategy, problem)


def _check_update(strategy: ReadOnlyTree, subset_names: set[str], path: Path) -> Iterator[FieldError]:
    if (strategy.get("type") or _MANUAL) != _MANUAL:
        yield errors.not_supported(path.child("type"), strategy["type"], (_MANUAL, ""))
        return
    partitions = (strategy.get("manualUpdate") or {}).get("partitions") or {}
    for name in partitions:
        if name not in subset_names:
            field_path = path.child("manualUpdate", "partitions")
            yield errors.invalid(field_path, partitions, f"subset {name} does not exist")


# --- the template of the workloads, which has exactly one kind

_NAMES: Final = "statefulSetTemplate, advancedStatefulSetTemplate, cloneSetTemplate, or deploymentTemplate"
_MISMATCH: Final = "`selector` does not match template `labels`"
_ROLLING_UPDATE: Final = "RollingUpdate"
_ALL: Final = ("statefulSetTemplate", "advancedStatefulSetTemplate", "deploymentTemplate", "cloneSetTemplate")


def _check_template(spec: ReadOnlyTree, selector: Selector, path: Path) -> Iterator[FieldError]:
    template = spec["template"]
    template_names = [name for name in _ALL if template.get(name) is not None]
    if not template_names:
        yield errors.required(path, f"should provide one of {_NAMES}")
    if len(template_names) > 1:
        yield errors.invalid(path, template, f"should provide only one of {_NAMES}")
    if template_names and template_names[0] != "cloneSetTemplate":
        yield from _check_workload(template_names[0], spec, selector, path)


def _check_workload(name: str, united: ReadOnlyTree, selector: Selector, path: Path) -> Iterator[FieldError]:
    workload = united["template"][name]
    spec, labels = workload["spec"], (workload.get("metadata") or {}).get("labels")
    if not selector.matches(labels or {}):
        owner = "statefulSetTemplate" if name == "advancedStatefulSetTemplate" else name
        yield errors.invalid(path.child(owner, "metadata", "labels"), labels, _MISMATCH)
    path = path.child(name, "spec")
    if spec.get("replicas") is not None:
        problem = f"replicas in {name} will not be used"
        yield errors.invalid(path.child("replicas"), spec["replicas"], problem)
    if name != "deploymentTemplate":
        yield from _check_partition(name, spec.get("updateStrategy") or {}, path.child("updateStrategy"))
    template_path = path.child("template")
    if name == "statefulSetTemplate":
        yield from _check_stateful_set(spec, united.get("selector"), path)
    elif name == "advancedStatefulSetTemplate":
        yield from _check_stateful_set_pods(pod_template(spec["template"]), selector, template_path)
    else:
        yield from workloads.check_selected_template(
            pod_template(spec["template"]), selector, template_path, kind="ReplicaSet"
        )


def _check_partition(name: str, strategy: ReadOnlyTree, path: Path) -> Iterable[FieldError]:
    partition = (strategy.get("rollingUpdate") or {}).get("partition")
    if strategy.get("type") != _ROLLING_UPDATE or partition is None:
        return ()
    problem = f"partition in {name} will not be used"
    return (errors.invalid(path.child("rollingUpdate", "partition"), partition, problem),)


def _check_stateful_set(
    spec: ReadOnlyTree, selector: ReadOnlyTree | None, path: Path
) -> Iterator[FieldError]:
    """Check the spec of a StatefulSet as a UnitedDeployment creates it, by the rules of that kind."""
    strategy = dict(spec.get("updateStrategy") or {})
    strategy["type"] = strategy.get("type") or _ROLLING_UPDATE
    created = {
        **spec,
        "selector": selector,
        "replicas": 1,
        "podManagementPolicy": spec.get("podManagementPolicy") or "OrderedReady",
        "updateStrategy": strategy,
    }
    yield from POLICIES(created, path)
    yield from NUMBERS(created, path)
    yield from workloads.check_required_selector(created, path, "statefulset")
    template, path = spec["template"], path.child("template")
    yield from _check_stateful_set_pods(template, workloads.selector_of(created) or NOTHING, path)
    yield from workloads.check_restarts(template, path, "StatefulSet")


def _check_stateful_set_pods(template: ReadOnlyTree, selector: Selector, path: Path) -> Iterator[FieldError]:
    if not selector.empty:
        yield from workloads.check_matches(template, selector, path)
    yield from check_template_metadata(template, path, STRICT)


# --- changes of the template, whose kind may change

_UNCHANGEABLE: Final = "updates to {} spec for fields other than {} are forbidden"
_CHANGEABLE: Final = (
    "template", "updateStrategy", "persistentVolumeClaimRetentionPolicy", "minReadySeconds", "ordinals",
)  # fmt: skip


def _check_template_change(spec: ReadOnlyTree, old: ReadOnlyTree, path: Path) -> Iterator[FieldError]:
    template = spec["template"]
    name = next((name for name in _ALL[:3] if template.get(name) and old.get(name)), "")
    if not name:
        return
    new_spec, old_spec = template[name]["spec"], old[name]["spec"]
    path = path.child(name, "spec")
    if name == "statefulSetTemplate":
        yield from _check_stateful_set(new_spec, spec.get("selector"), path)
        if has_other_changes(new_spec, old_spec, ("replicas", "selector", *_CHANGEABLE)):
            names = ", ".join(f"'{field}'" for field in _CHANGEABLE[:-1])
            allowed = f"{names} and '{_CHANGEABLE[-1]}'"
            yield errors.forbidden(path, _UNCHANGEABLE.format("statefulsetTemplate", allowed))
    elif name == "advancedStatefulSetTemplate" and has_other_changes(
        new_spec, old_spec, ("replicas", "template", "updateStrategy")
    ):
        allowed = "'template', and 'updateStrategy'"
        yield errors.forbidden(path, _UNCHANGEABLE.format("advancedStatefulsetTemplate", allowed))
    if (new_spec.get("replicas") or 0) < 0:
        yield errors.invalid(path.child("replicas"), new_spec["replicas"], NOT_NEGATIVE)


# --- subsets

_ADAPTIVE: Final = "Adaptive"
_UNLIMITED: Final = 1_000_000


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


def _check_replicas(total: int, subsets: Sequence[ReadOnlyTree], path: Path) -> Iterator[FieldError]:
    requested = [_subset_replicas(subset, total, path.index(index)) for index, subset in enumerate(subsets)]
    for index, (subset_replicas, subset) in enumerate(zip(requested, subsets, strict=True)):
        yield from subset_replicas.problems
        if subset_replicas.minimum > subset_replicas.maximum:
            problem = f"subset[{index}].minReplicas must be less than or equal to maxReplicas"
            value = go_int_or_string(subset.get("minReplicas"))
            yield errors.invalid(path.index(index).child("minReplicas"), value, problem)
    has_replicas = any(subset.get("replicas") is not None for subset in subsets)
    has_bounds = any(_is_bounded(subset) for subset in subsets)
    if has_replicas and has_bounds:
        problem = (
            "subset.Replicas and subset.MinReplicas/subset.MaxReplicas are mutually exclusive in a "
            "UnitedDeployment"
        )
        yield errors.invalid(path, list(subsets), problem)
    elif has_bounds:
        yield from _check_bounds(subsets, requested, path)
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
            problems.append(errors.invalid(path.child(name), go_int_or_string(value), str(error)))
    return _SubsetReplicas(
        replicas=numbers["replicas"],
        minimum=numbers["minReplicas"],
        maximum=numbers["maxReplicas"],
        problems=problems,
    )


def _check_bounds(
    subsets: Sequence[ReadOnlyTree], requested: Sequence[_SubsetReplicas], path: Path
) -> Iterator[FieldError]:
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
