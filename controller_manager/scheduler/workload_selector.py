"""The selector of the Services and of the controller of a pod. Pure. Upstream: plugins/helper, spread."""

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from mockube.apimachinery import meta
from mockube.apimachinery.labels import Selector, from_label_selector
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.controller_manager.cache.store import Lister
from mockube.controller_manager.scheduler.podinfo import PodInfo


class Workloads(Struct, frozen=True, kw_only=True):
    """The listers of Services and of the controllers whose pods are spread."""

    services: Lister[ReadOnlyTree]
    replication_controllers: Lister[ReadOnlyTree]
    replica_sets: Lister[ReadOnlyTree]
    stateful_sets: Lister[ReadOnlyTree]


_KINDS: Final[Mapping[tuple[str, str], str]] = {
    ("v1", "ReplicationController"): "replication_controllers",
    ("apps/v1", "ReplicaSet"): "replica_sets",
    ("apps/v1", "StatefulSet"): "stateful_sets",
}


def selector_of_workloads(pod: PodInfo, workloads: Workloads) -> Selector:
    """Return the selector of the pods with which a pod is spread; an empty one without such pods."""
    match_labels: dict[str, str] = {}
    for service in workloads.services.in_namespace(pod.view.key.namespace):
        selector: Mapping[str, str] | None = service["spec"].get("selector")
        if selector is not None and selector.items() <= pod.view.labels.items():
            match_labels |= selector
    expressions = []
    owner = meta.controller_of(pod.view.object)
    name = None if owner is None else _KINDS.get((owner["apiVersion"], owner["kind"]))
    controller = None
    if owner is not None and name is not None:
        lister: Lister[ReadOnlyTree] = getattr(workloads, name)
        controller = lister.get(pod.view.key.namespace, owner["name"])
    if controller is not None:
        of_controller = controller["spec"].get("selector") or {}
        if name == "replication_controllers":
            match_labels |= of_controller
        else:
            expressions = [
                *(
                    {"key": k, "operator": "In", "values": [v]}
                    for k, v in (of_controller.get("matchLabels") or {}).items()
                ),
                *(of_controller.get("matchExpressions") or ()),
            ]
    return from_label_selector({"matchLabels": match_labels, "matchExpressions": expressions})
