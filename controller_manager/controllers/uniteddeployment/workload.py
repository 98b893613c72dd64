"""The workload of a subset, as it is to be: what the template says, and what the controller decided."""

from dataclasses import dataclass
from typing import Any

import orjson

from apimachinery import meta
from apimachinery.names import check_dns1123_subdomain, mask_trailing_dash
from controller_manager.controllers.uniteddeployment.names import (
    ANNOTATION_SUBSET_PATCH,
    LABEL_REVISION,
    LABEL_SUBSET_NAME,
)
from controller_manager.controllers.uniteddeployment.placement import pod_template
from controller_manager.controllers.uniteddeployment.views import SubsetSpec, UnitedView
from controller_manager.runtime.resource import Tree


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """What is decided for a subset."""

    subset: SubsetSpec
    revision: str
    replicas: int
    partition: int
    max_unavailable: int | None = None
    """None if the template's holds."""


def made(view: UnitedView, goal: Goal) -> Tree:
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


def rewritten(view: UnitedView, goal: Goal, workload: Tree) -> Tree:
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
