"""UnitedDeployments of v1alpha1."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, TypeAlias

from apimachinery import errors
from apimachinery.errors import FieldError
from apimachinery.labels.selector import NOTHING
from apimachinery.paths import ROOT, Path
from apiserver.packs.built_in import fill_templates
from apiserver.packs.kruise.subsets import check_replicas, check_subset_changes, check_subsets
from apiserver.packs.kruise.workload_templates import check_template, check_template_change
from apiserver.rest.backend import Backend
from apiserver.storage.stored import Tree
from apiserver.validation.rules import NOT_NEGATIVE
from apiserver.validation.workloads.selected import check_required_selector, selector_of

View: TypeAlias = Mapping[str, Any]

_MANUAL: Final = "Manual"
_SPEC: Final = ROOT.child("spec")
_STATEFUL: Final = ("advancedStatefulSetTemplate", "statefulSetTemplate")


def fill(backend: Backend, tree: Tree, old: View | None) -> None:
    spec = tree["spec"]
    spec.setdefault("revisionHistoryLimit", 10)
    strategy = spec.setdefault("updateStrategy", {})
    strategy["type"] = strategy.get("type") or _MANUAL
    if strategy["type"] == _MANUAL:
        strategy.setdefault("manualUpdate", {})
    template, before = spec.get("template") or {}, (old or {}).get("spec", {}).get("template")
    stateful_set = template.get("statefulSetTemplate")
    if stateful_set is not None and template != before:
        stateful_set["spec"].setdefault("template", {})
        fill_templates(backend, stateful_set["spec"], None)
    _fill_least((spec.get("topology") or {}).get("subsets") or ())


def _fill_least(subsets: Iterable[Tree]) -> None:
    """Where some subset has bounds and none has replicas, each has at least none."""
    subsets = list(subsets)
    are_bounded = any(subset.keys() & {"minReplicas", "maxReplicas"} for subset in subsets)
    if are_bounded and not any("replicas" in subset for subset in subsets):
        for subset in subsets:
            subset.setdefault("minReplicas", 0)


def check(backend: Backend, new: View, old: View | None) -> Iterator[FieldError]:
    spec, topology = new["spec"], new["spec"].get("topology") or {}
    yield from _check_numbers(spec, topology)
    selector = selector_of(spec)
    if selector is None:
        yield errors.invalid(_SPEC.child("selector"), spec["selector"], "")
    template = spec.get("template") or {}
    yield from check_template(backend, template, selector or NOTHING, _SPEC.child("template"))
    path = _SPEC.child("topology")
    subsets = topology.get("subsets") or ()
    yield from check_replicas(spec.get("replicas"), subsets, path.child("subsets"))
    yield from check_subsets(topology, path)
    names = {subset["name"] for subset in subsets}
    yield from _check_partitions(spec["updateStrategy"], names, _SPEC.child("updateStrategy", "partitions"))
    if old is not None:
        before = old["spec"]
        yield from check_template_change(template, before.get("template") or {}, _SPEC.child("template"))
        yield from check_subset_changes(topology, before.get("topology") or {}, path)


def _check_numbers(spec: View, topology: View) -> Iterator[FieldError]:
    replicas, template = spec.get("replicas"), spec.get("template") or {}
    if replicas is not None and replicas < 0:
        yield errors.invalid(_SPEC.child("replicas"), replicas, NOT_NEGATIVE)
    yield from check_required_selector(spec, _SPEC, "statefulset")
    strategy = topology.get("scheduleStrategy") or {}
    reserves = bool((strategy.get("adaptive") or {}).get("reserveUnschedulablePods"))
    if strategy.get("type") == "Adaptive" and reserves and any(template.get(name) for name in _STATEFUL):
        problem = "only stateless workloads (Deployment and CloneSet) are supported by reserved rescheduling"
        yield errors.invalid(_SPEC.child("topology", "scheduleStrategy"), strategy, problem)


def _check_partitions(strategy: View, names: set[str], path: Path) -> Iterable[FieldError]:
    partitions = (strategy.get("manualUpdate") or {}).get("partitions") or {}
    return [
        errors.invalid(path, partitions, f"subset {name} does not exist")
        for name in partitions
        if name not in names
    ]
