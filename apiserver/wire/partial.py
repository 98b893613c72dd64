"""Objects as their metadata alone: PartialObjectMetadata and its list."""

from collections.abc import Mapping, Sequence
from typing import Any

Tree = dict[str, Any]


def of(tree: Tree, version: str) -> Tree:
    return {
        "kind": "PartialObjectMetadata",
        "apiVersion": f"meta.k8s.io/{version}",
        "metadata": tree["metadata"],
    }


def list_of(trees: Sequence[Tree], metadata: Mapping[str, Any], version: str) -> Tree:
    items = [of(tree, version) for tree in trees]
    api_version = f"meta.k8s.io/{version}"
    return {
        "kind": "PartialObjectMetadataList",
        "apiVersion": api_version,
        "metadata": metadata,
        "items": items,
    }
