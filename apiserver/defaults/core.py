"""Defaults of the kinds of the core group that are about neither pods nor volumes nor services."""

from typing import Final

from apimachinery.wellknown import LABEL_METADATA_NAME
from apiserver.defaults.table import Tree, of, set_labels


def _namespace(namespace: Tree) -> None:
    """Every namespace carries its name as a label, once it has one."""
    metadata = namespace["metadata"]
    if "name" in metadata:
        set_labels(metadata, metadata.get("labels", {}) | {LABEL_METADATA_NAME: metadata["name"]})


def _node_status(status: Tree) -> None:
    if "capacity" in status:
        status.setdefault("allocatable", dict(status["capacity"]))


def _limit_range_item(item: Tree) -> None:
    """A container's limit is the most that it may have, what it asks for is its limit or the least that it must have."""
    if item["type"] != "Container":
        return
    limits = item.get("max", {}) | item.get("default", {})
    requests = item.get("min", {}) | limits | item.get("defaultRequest", {})
    for field, amounts in (("default", limits), ("defaultRequest", requests)):
        if amounts:
            item[field] = dict(sorted(amounts.items()))


def _replication_controller(controller: Tree) -> None:
    """It selects, and is labelled, as the pods of its template are."""
    spec = controller["spec"]
    labels = spec.get("template", {}).get("metadata", {}).get("labels")
    if labels:
        spec.setdefault("selector", dict(labels))
        if "labels" not in controller["metadata"]:
            set_labels(controller["metadata"], labels)


DEFAULTS: Final = of(
    "io.k8s.api.core.v1",
    {
        "Secret": {"type": "Opaque"},
        "Namespace": _namespace,
        "NamespaceStatus": {"phase": "Active"},
        "NodeStatus": _node_status,
        "LimitRangeItem": _limit_range_item,
        "ReplicationController": _replication_controller,
    },
)
