"""The pods of a subset: the template with the nodes and the tolerations of the subset, and its patch over all."""

from collections.abc import Sequence
from functools import cache
from typing import Any, Final

from apimachinery import meta
from apimachinery.patch import strategic
from apimachinery.schema import builtin
from apimachinery.schema.model import Type
from controller_manager.controllers.uniteddeployment.names import LABEL_REVISION, LABEL_SUBSET_NAME
from controller_manager.controllers.uniteddeployment.views import SubsetSpec
from controller_manager.runtime.resource import Tree

_TERMS: Final = (
    "affinity",
    "nodeAffinity",
    "requiredDuringSchedulingIgnoredDuringExecution",
    "nodeSelectorTerms",
)


def pod_template(template: Tree, subset: SubsetSpec, revision: str) -> Tree:
    """Or `PatchError`, where the subset's patch does not fit."""
    labelled = meta.with_labels(template, {LABEL_SUBSET_NAME: subset.name, LABEL_REVISION: revision})
    spec = _tolerating(_placed(labelled.get("spec") or {}, subset), subset)
    placed = {**labelled, "spec": spec}
    return strategic.apply(placed, subset.patch, _pod_template_type()) if subset.patch else placed


def _placed(spec: Tree, subset: SubsetSpec) -> Tree:
    """Each of the template's terms is one way to be placed, so each gets what the subset requires."""
    required = subset.node_selector_term.get("matchExpressions") or ()
    if not required:
        return spec
    terms: Sequence[Tree] = _found(spec) or ({},)
    narrowed = [
        {**term, "matchExpressions": [*(term.get("matchExpressions") or ()), *required]} for term in terms
    ]
    return meta.with_value(spec, _TERMS, narrowed)


def _found(spec: Tree) -> Any:
    value: Any = spec
    for field in _TERMS:
        value = value.get(field) or {}
    return value


def _tolerating(spec: Tree, subset: SubsetSpec) -> Tree:
    if not subset.tolerations:
        return spec
    return {**spec, "tolerations": [*(spec.get("tolerations") or ()), *subset.tolerations]}


@cache
def _pod_template_type() -> Type:
    return builtin.load().definition("io.k8s.api.core.v1.PodTemplateSpec")
