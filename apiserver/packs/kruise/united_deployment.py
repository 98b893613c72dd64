"""UnitedDeployment: the defaults and the validation of OpenKruise's webhooks."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, TypeAlias

from msgspec import Struct

from mockube.apimachinery import errors, meta
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.labels.selector import NOTHING, Selector
from mockube.apimachinery.paths import ROOT, Path
from mockube.apimachinery.tree import ReadOnlyTree, Tree
from mockube.apiserver.kinds.common.checks import NOT_NEGATIVE
from mockube.apiserver.kinds.common.workloads import (
    check_matches,
    check_required_selector,
    check_selected_template,
    selector_of,
)
from mockube.apiserver.kinds.core.pod.context import STRICT
from mockube.apiserver.kinds.core.pod.pod_template import check_template_metadata
from mockube.apiserver.packs.kruise.united_deployment_subsets import (
    check_replicas,
    check_subset_changes,
    check_subsets,
)
from mockube.apiserver.packs.kruise.workloads import changes_beyond, pod_template, set_template_defaults
from mockube.apiserver.registry.backend import Backend

CheckPods: TypeAlias = Callable[[ReadOnlyTree, Selector, Path], Iterable[FieldError]]

_MANUAL: Final = "Manual"
_SPEC: Final = ROOT.child("spec")
_STATEFUL: Final = ("advancedStatefulSetTemplate", "statefulSetTemplate")


def set_defaults(backend: Backend, tree: Tree, old: ReadOnlyTree | None) -> None:
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
        set_template_defaults(backend, stateful_set["spec"], None)
    _default_min_replicas((spec.get("topology") or {}).get("subsets") or ())


def _default_min_replicas(subsets: Iterable[Tree]) -> None:
    """Set minReplicas to 0 if a subset has bounds and none has replicas."""
    subsets = list(subsets)
    has_bounds = any(subset.keys() & {"minReplicas", "maxReplicas"} for subset in subsets)
    if has_bounds and not any("replicas" in subset for subset in subsets):
        for subset in subsets:
            subset.setdefault("minReplicas", 0)


def validate(backend: Backend, new: ReadOnlyTree, old: ReadOnlyTree | None) -> Iterator[FieldError]:
    spec, topology = new["spec"], new["spec"].get("topology") or {}
    yield from _check_numbers(spec, topology)
    selector = selector_of(spec)
    if selector is None:
        yield errors.invalid(_SPEC.child("selector"), spec["selector"], "")
    template = spec.get("template") or {}
    yield from _check_template(backend, template, selector or NOTHING, _SPEC.child("template"))
    path = _SPEC.child("topology")
    subsets = topology.get("subsets") or ()
    yield from check_replicas(spec.get("replicas"), subsets, path.child("subsets"))
    yield from check_subsets(topology, path)
    names = {subset["name"] for subset in subsets}
    yield from _check_partitions(spec["updateStrategy"], names, _SPEC.child("updateStrategy", "partitions"))
    if old is not None:
        old_spec = old["spec"]
        yield from _check_template_change(template, old_spec.get("template") or {}, _SPEC.child("template"))
        yield from check_subset_changes(topology, old_spec.get("topology") or {}, path)


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


def _check_partitions(strategy: ReadOnlyTree, names: set[str], path: Path) -> Iterable[FieldError]:
    partitions = (strategy.get("manualUpdate") or {}).get("partitions") or {}
    return [
        errors.invalid(path, partitions, f"subset {name} does not exist")
        for name in partitions
        if name not in names
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
    backend: Backend, template: ReadOnlyTree, selector: Selector, path: Path
) -> Iterator[FieldError]:
    template_names = [name for name in _ALL if template.get(name) is not None]
    if not template_names:
        yield errors.required(path, f"should provide one of {_NAMES}")
    if len(template_names) > 1:
        yield errors.invalid(path, template, f"should provide only one of {_NAMES}")
    if template_names and template_names[0] in _RULES:
        yield from _check_workload(backend, template_names[0], template[template_names[0]], selector, path)


def _check_workload(
    backend: Backend, name: str, workload: ReadOnlyTree, selector: Selector, path: Path
) -> Iterator[FieldError]:
    rules, spec = _RULES[name], workload["spec"]
    labels = meta.labels(workload)
    if not selector.matches(labels):
        at = path.child(rules.labels_field, "metadata", "labels")
        yield errors.invalid(at, dict(labels), _MISMATCH)
    path = path.child(name, "spec")
    if spec.get("replicas") is not None:
        problem = f"replicas in {name} will not be used"
        yield errors.invalid(path.child("replicas"), spec["replicas"], problem)
    if rules.has_partition:
        yield from _check_partition(name, spec.get("updateStrategy") or {}, path.child("updateStrategy"))
    template = pod_template(backend, spec.get("template"))
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
    if not changes_beyond(new[name]["spec"], old[name]["spec"], _CHANGEABLE):
        return ()
    return (errors.forbidden(path.child(name, "spec"), _RULES[name].unchangeable),)
