"""Objects as their metadata alone: PartialObjectMetadata and its list."""

from collections.abc import Mapping, Sequence
from typing import Any

from apimachinery.wellknown import ANNOTATION_TEMPLATE_GENERATION

Tree = dict[str, Any]


def of(tree: Tree, version: str) -> Tree:
    return {
        "kind": "PartialObjectMetadata",
        "apiVersion": f"meta.k8s.io/{version}",
        "metadata": _metadata(tree),
    }


def _metadata(tree: Tree) -> Tree:
    """The metadata, but for a DaemonSet's count of templates, which upstream writes as annotation into v1 alone."""
    metadata: Tree = tree["metadata"]
    annotations = metadata.get("annotations")
    if tree["kind"] != "DaemonSet" or not annotations or ANNOTATION_TEMPLATE_GENERATION not in annotations:
        return metadata
    kept = {name: text for name, text in annotations.items() if name != ANNOTATION_TEMPLATE_GENERATION}
    shown = {name: value for name, value in metadata.items() if name != "annotations"}
    return shown | {"annotations": kept} if kept else shown


def list_of(trees: Sequence[Tree], metadata: Mapping[str, Any], version: str) -> Tree:
    items = [of(tree, version) for tree in trees]
    api_version = f"meta.k8s.io/{version}"
    return {
        "kind": "PartialObjectMetadataList",
        "apiVersion": api_version,
        "metadata": metadata,
        "items": items,
    }
