"""The labels that servers and controllers of Kubernetes add to the pods of a template. Pure."""

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from mockube.apimachinery import wellknown
from mockube.apimachinery.groups import GroupKind
from mockube.apimachinery.labels.selector import Operator, Requirement
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apimachinery.wildcards import matches_wildcards

_ANY: Final = "*"
_TEMPLATE_GENERATION: Final = "pod-template-generation"
_ROLLOUT_HASH: Final = "rollouts-pod-template-hash"
_INDEXED: Final = "Indexed"
_NEEDS_VALUE: Final = frozenset({Operator.EQUALS, Operator.DOUBLE_EQUALS, Operator.IN})

Patterns = Mapping[str, str]
"""The patterns of the values that labels get, by key."""


def controller_labels(kind: GroupKind, name: str, spec: ReadOnlyTree) -> Patterns:
    """Return the labels that pods of an object get besides those of its template."""
    return {**_OF_NODES, **_BY_KIND.get(kind, _none)(name, spec)}


def may_match(requirement: Requirement, patterns: Patterns) -> bool:
    """Return whether a label with a value of its pattern may meet a requirement."""
    pattern = patterns.get(requirement.key)
    if pattern is None or requirement.operator is Operator.DOES_NOT_EXIST:
        return False
    return requirement.operator not in _NEEDS_VALUE or any(
        matches_wildcards(value, pattern) for value in requirement.values
    )


def _none(_name: str, _spec: ReadOnlyTree) -> Patterns:
    return {}


def _of_deployment(_name: str, _spec: ReadOnlyTree) -> Patterns:
    return {wellknown.LABEL_POD_TEMPLATE_HASH: _ANY}


def _of_rollout(_name: str, _spec: ReadOnlyTree) -> Patterns:
    return {_ROLLOUT_HASH: _ANY}


def _of_daemon_set(_name: str, _spec: ReadOnlyTree) -> Patterns:
    return {wellknown.LABEL_CONTROLLER_REVISION_HASH: _ANY, _TEMPLATE_GENERATION: _ANY}


def _of_stateful_set(name: str, _spec: ReadOnlyTree) -> Patterns:
    return {
        wellknown.LABEL_CONTROLLER_REVISION_HASH: _ANY,
        wellknown.LABEL_STATEFULSET_POD_NAME: f"{name}-*",
        wellknown.LABEL_POD_INDEX: _ANY,
    }


def _of_job(name: str, spec: ReadOnlyTree) -> Patterns:
    return dict(_of_jobs(name if not name.endswith("-") else f"{name}*", spec))


def _of_cron_job(name: str, spec: ReadOnlyTree) -> Patterns:
    template = spec.get("jobTemplate")
    job = template.get("spec") if isinstance(template, dict) else None
    return dict(_of_jobs(f"{name}-*", job if isinstance(job, dict) else {}))


def _of_jobs(name: str, spec: ReadOnlyTree) -> Iterator[tuple[str, str]]:
    if spec.get("manualSelector") is not True:
        yield wellknown.LABEL_JOB_NAME, name
        yield wellknown.LABEL_JOB_NAME_LEGACY, name
        yield wellknown.LABEL_JOB_CONTROLLER_UID, _ANY
        yield wellknown.LABEL_JOB_CONTROLLER_UID_LEGACY, _ANY
    if spec.get("completionMode") == _INDEXED:
        yield wellknown.LABEL_JOB_COMPLETION_INDEX, _ANY


_OF_NODES: Final[Patterns] = {wellknown.LABEL_ZONE: _ANY, wellknown.LABEL_REGION: _ANY}
"""The labels that a binding copies from the node to the pod."""
_BY_KIND: Final[Mapping[GroupKind, Callable[[str, ReadOnlyTree], Patterns]]] = {
    GroupKind("apps", "Deployment"): _of_deployment,
    GroupKind("argoproj.io", "Rollout"): _of_rollout,
    GroupKind("apps", "DaemonSet"): _of_daemon_set,
    GroupKind("apps", "StatefulSet"): _of_stateful_set,
    GroupKind("batch", "Job"): _of_job,
    GroupKind("batch", "CronJob"): _of_cron_job,
}
