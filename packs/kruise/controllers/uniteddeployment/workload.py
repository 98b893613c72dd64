"""The body of a subset's workload: the template with the subset's node terms, tolerations and patch."""

from collections.abc import Sequence
from functools import cache
from typing import Any, Final

import orjson
from msgspec import Struct

from mockube.apimachinery import meta
from mockube.apimachinery.names import check_dns1123_subdomain, mask_trailing_dash
from mockube.apimachinery.patch import strategic
from mockube.apimachinery.schema import builtin
from mockube.apimachinery.schema.model import SchemaType
from mockube.apimachinery.tree import ReadOnlyTree

from .spec import SubsetSpec, UnitedView
from .subset import ANNOTATION_SUBSET_PATCH, LABEL_REVISION, LABEL_SUBSET_NAME

_NODE_SELECTOR_TERMS: Final = (
    "affinity",
    "nodeAffinity",
    "requiredDuringSchedulingIgnoredDuringExecution",
    "nodeSelectorTerms",
)


def pod_template(template: ReadOnlyTree, subset: SubsetSpec, revision: str) -> ReadOnlyTree:
    """Return the pod template of a subset; raise `PatchError` if its patch cannot be applied."""
    labelled = meta.with_labels(template, {LABEL_SUBSET_NAME: subset.name, LABEL_REVISION: revision})
    spec = _with_tolerations(_with_node_terms(labelled.get("spec") or {}, subset), subset)
    subset_template = {**labelled, "spec": spec}
    return (
        strategic.apply(subset_template, subset.patch, _pod_template_type())
        if subset.patch
        else subset_template
    )


def _with_node_terms(spec: ReadOnlyTree, subset: SubsetSpec) -> ReadOnlyTree:
    """Add the subset's expressions to each node selector term: a node has to match only one of the terms."""
    required = subset.node_selector_term.get("matchExpressions") or ()
    if not required:
        return spec
    terms: Sequence[ReadOnlyTree] = _node_terms(spec) or ({},)
    new_terms = [
        {**term, "matchExpressions": [*(term.get("matchExpressions") or ()), *required]} for term in terms
    ]
    return meta.with_value(spec, _NODE_SELECTOR_TERMS, new_terms)


def _node_terms(spec: ReadOnlyTree) -> Any:
    value: Any = spec
    for field in _NODE_SELECTOR_TERMS:
        value = value.get(field) or {}
    return value


def _with_tolerations(spec: ReadOnlyTree, subset: SubsetSpec) -> ReadOnlyTree:
    if not subset.tolerations:
        return spec
    return {**spec, "tolerations": [*(spec.get("tolerations") or ()), *subset.tolerations]}


@cache
def _pod_template_type() -> SchemaType:
    return builtin.load().definition("io.k8s.api.core.v1.PodTemplateSpec")


class DesiredSubset(Struct, frozen=True, kw_only=True):
    """The desired state of a subset."""

    subset: SubsetSpec
    revision: str
    replicas: int
    partition: int
    max_unavailable: int | None = None
    """None to use the template's."""


def new_workload(view: UnitedView, desired: DesiredSubset) -> ReadOnlyTree:
    """Return the workload of a subset without one; the server generates its name. Raise `PatchError`."""
    resource = view.adapter.resource
    base = {
        "kind": resource.kind,
        "apiVersion": resource.api_version,
        "metadata": {
            "generateName": _generate_name(view.key.name, desired.subset.name),
            "namespace": view.key.namespace,
            "ownerReferences": [meta.controller_reference(view.object)],
        },
    }
    return updated_workload(view, desired, base)


def updated_workload(view: UnitedView, desired: DesiredSubset, workload: ReadOnlyTree) -> ReadOnlyTree:
    """Return the workload with the controller's spec, labels and annotations; raise `PatchError`.

    Labels and annotations of other writers remain.
    """
    labelled = meta.with_labels(workload, {**meta.labels(view.template), **_subset_labels(view, desired)})
    annotations = {**meta.annotations(view.template), ANNOTATION_SUBSET_PATCH: patch_text(desired.subset)}
    return {**meta.with_annotations(labelled, annotations), "spec": _workload_spec(view, desired)}


def patch_text(subset: SubsetSpec) -> str:
    return orjson.dumps(subset.patch, option=orjson.OPT_SORT_KEYS).decode() if subset.patch else ""


def _subset_labels(view: UnitedView, desired: DesiredSubset) -> dict[str, str]:
    selector = view.object["spec"]["selector"]
    own = {LABEL_SUBSET_NAME: desired.subset.name, LABEL_REVISION: desired.revision}
    return {**(selector.get("matchLabels") or {}), **own}


def _generate_name(name: str, subset: str) -> str:
    prefix = f"{name}-{subset}-"
    return f"{name}-" if check_dns1123_subdomain(mask_trailing_dash(prefix)) else prefix


def _workload_spec(view: UnitedView, desired: DesiredSubset) -> dict[str, Any]:
    template, selector = view.template["spec"], view.object["spec"]["selector"]
    labels = {**(selector.get("matchLabels") or {}), LABEL_SUBSET_NAME: desired.subset.name}
    spec = view.adapter.with_partition(template, desired.partition)
    path = view.adapter.max_unavailable_path(spec)
    if desired.max_unavailable is not None and path:
        spec = meta.with_value(spec, path, desired.max_unavailable)
    return {
        **spec,
        "replicas": desired.replicas,
        "selector": {**selector, "matchLabels": labels},
        "template": pod_template(template.get("template") or {}, desired.subset, desired.revision),
    }
