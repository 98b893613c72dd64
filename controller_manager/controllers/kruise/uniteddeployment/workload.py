"""The workload of a subset: the template with the subset's nodes, tolerations and patch, and the desired replicas and partition."""

from collections.abc import Sequence
from functools import cache
from typing import Any, Final

import orjson
from msgspec import Struct

from mockube.apimachinery import meta
from mockube.apimachinery.names import check_dns1123_subdomain, mask_trailing_dash
from mockube.apimachinery.patch import strategic
from mockube.apimachinery.schema import builtin
from mockube.apimachinery.schema.model import Type
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.controller_manager.controllers.kruise.uniteddeployment.spec import SubsetSpec, UnitedView
from mockube.controller_manager.controllers.kruise.uniteddeployment.subset import (
    ANNOTATION_SUBSET_PATCH,
    LABEL_REVISION,
    LABEL_SUBSET_NAME,
)

_TERMS: Final = (
    "affinity",
    "nodeAffinity",
    "requiredDuringSchedulingIgnoredDuringExecution",
    "nodeSelectorTerms",
)


def pod_template(template: ReadOnlyTree, subset: SubsetSpec, revision: str) -> ReadOnlyTree:
    """Or `PatchError`, where the subset's patch does not fit."""
    labelled = meta.with_labels(template, {LABEL_SUBSET_NAME: subset.name, LABEL_REVISION: revision})
    spec = _tolerating(_with_node_terms(labelled.get("spec") or {}, subset), subset)
    placed = {**labelled, "spec": spec}
    return strategic.apply(placed, subset.patch, _pod_template_type()) if subset.patch else placed


def _with_node_terms(spec: ReadOnlyTree, subset: SubsetSpec) -> ReadOnlyTree:
    """Each of the template's terms is one way to be placed, so each gets what the subset requires."""
    required = subset.node_selector_term.get("matchExpressions") or ()
    if not required:
        return spec
    terms: Sequence[ReadOnlyTree] = _node_terms(spec) or ({},)
    narrowed = [
        {**term, "matchExpressions": [*(term.get("matchExpressions") or ()), *required]} for term in terms
    ]
    return meta.with_value(spec, _TERMS, narrowed)


def _node_terms(spec: ReadOnlyTree) -> Any:
    value: Any = spec
    for field in _TERMS:
        value = value.get(field) or {}
    return value


def _tolerating(spec: ReadOnlyTree, subset: SubsetSpec) -> ReadOnlyTree:
    if not subset.tolerations:
        return spec
    return {**spec, "tolerations": [*(spec.get("tolerations") or ()), *subset.tolerations]}


@cache
def _pod_template_type() -> Type:
    return builtin.load().definition("io.k8s.api.core.v1.PodTemplateSpec")


class Goal(Struct, frozen=True, kw_only=True):
    """What is decided for a subset."""

    subset: SubsetSpec
    revision: str
    replicas: int
    partition: int
    max_unavailable: int | None = None
    """None if the template's holds."""


def new_workload(view: UnitedView, goal: Goal) -> ReadOnlyTree:
    """The workload of a subset that has none; the server gives it its name. Or `PatchError`."""
    resource = view.adapter.resource
    owned = {
        "kind": resource.kind,
        "apiVersion": resource.api_version,
        "metadata": {
            "generateName": _prefix(view.key.name, goal.subset.name),
            "namespace": view.key.namespace,
            "ownerReferences": [meta.controller_reference(view.object)],
        },
    }
    return rewritten(view, goal, owned)


def rewritten(view: UnitedView, goal: Goal, workload: ReadOnlyTree) -> ReadOnlyTree:
    """The workload with all that is the controller's; labels and annotations of others stay. Or `PatchError`."""
    labelled = meta.with_labels(workload, {**meta.labels(view.template), **_identity(view, goal)})
    annotations = {**meta.annotations(view.template), ANNOTATION_SUBSET_PATCH: patch_text(goal.subset)}
    return {**meta.with_annotations(labelled, annotations), "spec": _spec(view, goal)}


def patch_text(subset: SubsetSpec) -> str:
    return orjson.dumps(subset.patch, option=orjson.OPT_SORT_KEYS).decode() if subset.patch else ""


def _identity(view: UnitedView, goal: Goal) -> dict[str, str]:
    selector = view.object["spec"]["selector"]
    own = {LABEL_SUBSET_NAME: goal.subset.name, LABEL_REVISION: goal.revision}
    return {**(selector.get("matchLabels") or {}), **own}


def _prefix(name: str, subset: str) -> str:
    prefix = f"{name}-{subset}-"
    return f"{name}-" if check_dns1123_subdomain(mask_trailing_dash(prefix)) else prefix


def _spec(view: UnitedView, goal: Goal) -> dict[str, Any]:
    template, selector = view.template["spec"], view.object["spec"]["selector"]
    labels = {**(selector.get("matchLabels") or {}), LABEL_SUBSET_NAME: goal.subset.name}
    spec = view.adapter.partitioned(template, goal.partition)
    place = view.adapter.unavailability(spec)
    if goal.max_unavailable is not None and place:
        spec = meta.with_value(spec, place, goal.max_unavailable)
    return {
        **spec,
        "replicas": goal.replicas,
        "selector": {**selector, "matchLabels": labels},
        "template": pod_template(template.get("template") or {}, goal.subset, goal.revision),
    }
