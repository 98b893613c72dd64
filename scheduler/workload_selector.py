"""The selector of the Services and of the controller of a pod. Pure. Upstream: plugins/helper, spread."""

from collections.abc import Mapping
from typing import NamedTuple

from msgspec import Struct

from mockube.apimachinery import meta
from mockube.apimachinery.labels import Selector, from_label_selector
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.cache.store import Lister

from .podinfo import PodInfo


class SpreadControllers(NamedTuple):
    """The controllers of one kind whose pods are spread."""

    lister: Lister[ReadOnlyTree]
    has_plain_selector: bool = False
    """Whether their selector is a map of labels, and not a LabelSelector."""


class Workloads(Struct, frozen=True, kw_only=True):
    """The Services and the controllers whose pods are spread."""

    services: Lister[ReadOnlyTree]
    controllers: Mapping[tuple[str, str], SpreadControllers]
    """By apiVersion and kind."""


def selector_of_workloads(pod: PodInfo, workloads: Workloads) -> Selector:
    """Return the selector of the pods with which a pod is spread; an empty one without such pods."""
    namespace = pod.view.key.namespace
    match_labels: dict[str, str] = {}
    for service in workloads.services.in_namespace(namespace):
        selector: Mapping[str, str] | None = service["spec"].get("selector")
        if selector is not None and selector.items() <= pod.view.labels.items():
            match_labels |= selector
    owner = meta.controller_of(pod.view.object) or {}
    controllers = workloads.controllers.get((owner.get("apiVersion", ""), owner.get("kind", "")))
    if controllers is None:
        return from_label_selector({"matchLabels": match_labels})
    controller = controllers.lister.get(namespace, owner["name"])
    of_controller = {} if controller is None else controller["spec"].get("selector") or {}
    if controllers.has_plain_selector:
        return from_label_selector({"matchLabels": match_labels | of_controller})
    expressions = [
        *(
            {"key": key, "operator": "In", "values": [value]}
            for key, value in (of_controller.get("matchLabels") or {}).items()
        ),
        *(of_controller.get("matchExpressions") or ()),
    ]
    return from_label_selector({"matchLabels": match_labels, "matchExpressions": expressions})
