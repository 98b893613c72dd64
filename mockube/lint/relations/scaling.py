"""Autoscalers and disruption budgets against the workloads and pods that they name. Pure."""

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Final

from mockube.apimachinery.groups import GroupKind
from mockube.apiserver.kinds.built_in_kinds import NEWEST
from mockube.lint.objects import LintObject

from .existence import missing
from .fields import (
    AutoscalerFields,
    AutoscalerSpec,
    BudgetFields,
    Container,
    Metric,
    ObjectReference,
    ResourceMetric,
)
from .kind_names import kind_problem
from .misspellings import misspelt_as
from .object_set import DEPLOYMENT, ObjectSet, PodTemplate, is_custom, selector_of
from .problem import Problem
from .selections import selector_problem

_AUTOSCALER: Final = GroupKind("autoscaling", "HorizontalPodAutoscaler")
_BUDGET: Final = GroupKind("policy", "PodDisruptionBudget")
_LIMIT_RANGE: Final = GroupKind("", "LimitRange")
_VERTICAL: Final = GroupKind("autoscaling.k8s.io", "VerticalPodAutoscaler")
_SCALED_OBJECT: Final = GroupKind("keda.sh", "ScaledObject")
_REFERENCES: Final[Mapping[GroupKind, str]] = {
    _AUTOSCALER: "scaleTargetRef",
    _VERTICAL: "targetRef",
    _SCALED_OBJECT: "scaleTargetRef",
}
_VERTICAL_REFERENCE: Final = _REFERENCES[_VERTICAL]
_SCALE: Final = "scale"
_APPS: Final = "apps"
_OLD_GROUPS: Final = ("", "extensions")
_DEFAULT_METRIC: Final = "cpu"


def scale_targets(objects: ObjectSet) -> Iterator[Problem]:
    """Find autoscalers whose target is not in the files, although the files show which was meant."""
    for item, autoscaler in objects.decoded(AutoscalerFields, *_REFERENCES):
        reference, field = _reference(item, autoscaler.spec)
        misspelt = [*_misspelt_kinds(autoscaler.spec, reference, field)]
        for kind_field, kind_reason in misspelt:
            yield Problem(item=item, field=kind_field, message=kind_reason)
        if any(kind_field == f"spec.{field}.kind" for kind_field, _ in misspelt):
            continue  # no object has this kind
        reason = _target_problem(objects, item, reference)
        if reason:
            yield Problem(item=item, field=f"spec.{field}.name", message=reason)


def _reference(item: LintObject, spec: AutoscalerSpec) -> tuple[ObjectReference, str]:
    field = _REFERENCES[item.group_kind]
    return (spec.target_ref if field == _VERTICAL_REFERENCE else spec.scale_target_ref), field


def _misspelt_kinds(spec: AutoscalerSpec, target: ObjectReference, field: str) -> Iterator[tuple[str, str]]:
    """Yield the fields with misspelt kinds of the target and of the objects of metrics."""
    references = {f"spec.{field}.kind": target} | {
        f"spec.metrics[{index}].object.describedObject.kind": metric.object.described_object
        for index, metric in enumerate(spec.metrics)
    }
    for kind_field, reference in references.items():
        group = _group(reference)
        reason = kind_problem(reference.kind, (_APPS, *_OLD_GROUPS) if group in _OLD_GROUPS else (group,))
        if reason:
            yield kind_field, reason


def _target_problem(objects: ObjectSet, item: LintObject, reference: ObjectReference) -> str:
    namespace, kind = objects.namespace_of(item), _kind(reference)
    if not reference.name or is_custom(kind):
        return ""
    words = f'{str(kind).lower()} "{reference.name}"'
    has_scale = _has_scale()
    if _REFERENCES[item.group_kind] != _VERTICAL_REFERENCE and not has_scale.get(kind, True):
        return f"{words} cannot be scaled: a {kind.kind} has no replicas"
    if objects.find(kind, namespace, reference.name):
        return ""
    scalable = [each for each, is_scalable in has_scale.items() if is_scalable]
    for other in scalable:
        if other != kind and objects.find(other, namespace, reference.name):
            return f'{words} is not in the files, which have {str(other).lower()} "{reference.name}"'
    reason = missing(objects, kind, namespace, reference.name)
    if reason:
        return reason
    here = [name for other in scalable for found, name in objects.names(other) if found == namespace]
    if (
        objects.creates_pods
        or not here
        or (item.name not in here and len(here) != 1 and not misspelt_as(reference.name, here))
    ):
        return ""
    suggestion = item.name if item.name in here else misspelt_as(reference.name, here) or here[0]
    return f'{words} is not in the files: did you mean "{suggestion}"?'


@cache
def _has_scale() -> Mapping[GroupKind, bool]:
    """Return whether objects of Kubernetes' kinds have replicas, which their scale changes."""
    return {
        kind.resource.group_kind: any(each.name == _SCALE for each in kind.resource.subresources)
        for kind in NEWEST.all
    }


def _group(reference: ObjectReference) -> str:
    return reference.api_version.rpartition("/")[0]


def _kind(reference: ObjectReference) -> GroupKind:
    """Return the kind of a target; people leave out the group of workloads, or write the one that they had once."""
    kind = GroupKind(_group(reference), reference.kind or DEPLOYMENT.kind)
    in_apps = GroupKind(_APPS, kind.kind)
    return (
        in_apps
        if kind.group in _OLD_GROUPS and kind not in _has_scale() and in_apps in _has_scale()
        else kind
    )


def autoscaler_requests(objects: ObjectSet) -> Iterator[Problem]:
    """Find autoscalers on the utilisation of a resource that containers do not request, of which there is then no metric."""
    limited = {objects.namespace_of(item) for item in objects.of(_LIMIT_RANGE)}
    for item, autoscaler in objects.decoded(AutoscalerFields, _AUTOSCALER):
        namespace = objects.namespace_of(item)
        reference = autoscaler.spec.scale_target_ref
        found = objects.find(_kind(reference), namespace, reference.name)
        pods = [pod for pod in objects.pods.get(namespace, ()) if any(pod.item is each for each in found)]
        if namespace in limited:  # its defaults are requests of all containers
            continue
        for field, resource, container in _utilizations(item, autoscaler.spec):
            for pod in pods:
                lacking = _without_request(pod, resource, container)
                if lacking and not pod.may_get_containers:
                    subject = (
                        f"containers {', '.join(lacking)}" if len(lacking) > 1 else f"container {lacking[0]}"
                    )
                    verb = "request" if len(lacking) > 1 else "requests"
                    message = (
                        f"{subject} of {pod.item.title} {verb} no {resource}: its utilization is not known"
                    )
                    yield Problem(item=item, field=field, message=message)


def _utilizations(item: LintObject, spec: AutoscalerSpec) -> Iterator[tuple[str, str, str]]:
    """Yield the field, the resource and the container ("" for all) of each target that is a share of requests."""
    if item.api_version == "autoscaling/v1" or not spec.metrics:
        field = "targetCPUUtilizationPercentage" if spec.target_cpu is not None else "scaleTargetRef"
        yield f"spec.{field}", _DEFAULT_METRIC, ""
        return
    for index, metric in enumerate(spec.metrics):
        source = _resource(metric)
        if source is not None and (source.target.type == "Utilization" or source.target.average_utilization):
            field = "resource" if metric.type == "Resource" else "containerResource"
            yield f"spec.metrics[{index}].{field}", source.name, source.container


def _resource(metric: Metric) -> ResourceMetric | None:
    return metric.resource if metric.type == "Resource" else metric.container_resource


def _without_request(pod: PodTemplate, resource: str, container: str) -> list[str]:
    """Return the containers without a request; a limit is a request, too, and so is that of the pod."""
    if resource in pod.spec.resources.requests or resource in pod.spec.resources.limits:
        return []
    return [
        each.name
        for each in pod.spec.containers
        if container in ("", each.name) and not _requests(each, resource)
    ]


def _requests(container: Container, resource: str) -> bool:
    return resource in container.resources.requests or resource in container.resources.limits


def budget_selectors(objects: ObjectSet) -> Iterator[Problem]:
    """Find budgets that select no pods although the files show which were meant."""
    for item, budget in objects.decoded(BudgetFields, _BUDGET):
        yield from selector_problem(objects, item, selector_of(budget.spec.selector), "spec.selector")
