"""What the workloads of a UnitedDeployment are made of: the template of exactly one kind."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from apimachinery import errors, meta
from apimachinery.errors import FieldError
from apimachinery.labels.selector import Selector
from apimachinery.paths import Path
from apiserver.packs.built_in import pod_template
from apiserver.packs.kruise.changes import changes_beyond
from apiserver.rest.backend import Backend
from apiserver.validation.pods.leniency import STRICT
from apiserver.validation.pods.template import check_template_metadata
from apiserver.validation.workloads.selected import check_matches, check_selected_template

View: TypeAlias = Mapping[str, Any]
CheckPods: TypeAlias = Callable[[View, Selector, Path], Iterable[FieldError]]

_NAMES: Final = "statefulSetTemplate, advancedStatefulSetTemplate, cloneSetTemplate, or deploymentTemplate"
_MISMATCH: Final = "`selector` does not match template `labels`"
_CHANGEABLE: Final = ("replicas", "template", "updateStrategy")


def _of_stateful_set(template: View, selector: Selector, path: Path) -> Iterator[FieldError]:
    if not selector.empty:
        yield from check_matches(template, selector, path)
    yield from check_template_metadata(template, path, STRICT)


def _of_replica_set(template: View, selector: Selector, path: Path) -> Iterator[FieldError]:
    return check_selected_template(template, selector, path, kind="ReplicaSet")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kind:
    """How the template of one kind is looked at. Nothing is said of those that are not here."""

    check_pods: CheckPods
    labels_at: str
    """The template that upstream blames for labels that are not selected."""
    has_partition: bool = False
    unchangeable: str = ""
    """What is said of a change of anything but pods and their update; "": everything may change."""


_KINDS: Final[Mapping[str, _Kind]] = {
    "statefulSetTemplate": _Kind(
        check_pods=_of_stateful_set,
        labels_at="statefulSetTemplate",
        has_partition=True,
        unchangeable="updates to statefulsetTemplate spec for fields other than 'template', and "
        "'updateStrategy' are forbidden",
    ),
    "advancedStatefulSetTemplate": _Kind(
        check_pods=_of_stateful_set,
        labels_at="statefulSetTemplate",
        has_partition=True,
        unchangeable="updates to advancedStatefulsetTemplate spec for fields other than 'template', and "
        "'updateStrategy' are forbidden",
    ),
    "deploymentTemplate": _Kind(check_pods=_of_replica_set, labels_at="deploymentTemplate"),
}
_ALL: Final = (*_KINDS, "cloneSetTemplate")


def check_template(backend: Backend, template: View, selector: Selector, path: Path) -> Iterator[FieldError]:
    given = [name for name in _ALL if template.get(name) is not None]
    if not given:
        yield errors.required(path, f"should provide one of {_NAMES}")
    if len(given) > 1:
        yield errors.invalid(path, template, f"should provide only one of {_NAMES}")
    if given and given[0] in _KINDS:
        yield from _check_workload(backend, given[0], template[given[0]], selector, path)


def _check_workload(
    backend: Backend, name: str, workload: View, selector: Selector, path: Path
) -> Iterator[FieldError]:
    kind, spec = _KINDS[name], workload["spec"]
    labels = meta.labels(workload)
    if not selector.matches(labels):
        at = path.child(kind.labels_at, "metadata", "labels")
        yield errors.invalid(at, dict(labels), _MISMATCH)
    path = path.child(name, "spec")
    if spec.get("replicas") is not None:
        problem = f"replicas in {name} will not be used"
        yield errors.invalid(path.child("replicas"), spec["replicas"], problem)
    if kind.has_partition:
        yield from _check_partition(name, spec.get("updateStrategy") or {}, path.child("updateStrategy"))
    made = pod_template(backend, spec.get("template"))
    yield from kind.check_pods(made, selector, path.child("template"))


def _check_partition(name: str, strategy: View, path: Path) -> Iterable[FieldError]:
    partition = (strategy.get("rollingUpdate") or {}).get("partition")
    if strategy.get("type") != "RollingUpdate" or partition is None:
        return ()
    problem = f"partition in {name} will not be used"
    return (errors.invalid(path.child("rollingUpdate", "partition"), partition, problem),)


def check_template_change(new: View, old: View, path: Path) -> Iterable[FieldError]:
    """A template may give way to that of another kind; of the same kind, not everything may change."""
    name = next((name for name in _KINDS if new.get(name) and old.get(name)), "")
    if not name or not _KINDS[name].unchangeable:
        return ()
    if not changes_beyond(new[name]["spec"], old[name]["spec"], _CHANGEABLE):
        return ()
    return (errors.forbidden(path.child(name, "spec"), _KINDS[name].unchangeable),)
