"""Objects as their metadata alone: PartialObjectMetadata and its list."""

from collections.abc import Mapping
from typing import Any

from mockube.apimachinery import status
from mockube.apimachinery.status import ApiError
from mockube.apimachinery.tree import Tree
from mockube.apimachinery.wellknown import ANNOTATION_TEMPLATE_GENERATION

ONLY_IN_V1: Mapping[str, str] = {"DaemonSet": ANNOTATION_TEMPLATE_GENERATION}
"""The annotation that upstream writes into whole objects of a kind alone: a field of the object that v1 has no more."""


_GO_PACKAGES: Mapping[str, str] = {"": "core", "events": "core"}
"""By the first word of a group: where upstream's own types of it lie, if not in one of that name."""


def check_view(api_version: str, kind: str, *, is_list: bool, wants_list: bool, custom: bool) -> None:
    """Refuse to show a list as one object's metadata, or one object as a list."""
    if is_list == wants_list:
        return
    package = api_version.rpartition("/")[0].partition(".")[0]
    name = f"*{_GO_PACKAGES.get(package, package)}.{kind}"
    if custom and wants_list:
        raise ApiError("content is not a list")  # upstream takes any custom object for a list at first
    if custom:
        name = "*unstructured.UnstructuredList"
    view = "PartialObjectMetadataList" if wants_list else "PartialObjectMetadata"
    form = "a list" if is_list else "not a list"
    raise status.NotAcceptable(f"you requested {view}, but the requested object is {form} ({name})")


def of(tree: Tree, version: str) -> Tree:
    return {
        "kind": "PartialObjectMetadata",
        "apiVersion": f"meta.k8s.io/{version}",
        "metadata": _metadata(tree),
    }


def _metadata(tree: Tree) -> Tree:
    metadata: Tree = tree["metadata"]
    annotations, hidden = metadata.get("annotations"), ONLY_IN_V1.get(tree["kind"])
    if hidden is None or not annotations or hidden not in annotations:
        return metadata
    other_annotations = {name: text for name, text in annotations.items() if name != hidden}
    fields = {name: value for name, value in metadata.items() if name != "annotations"}
    return fields | {"annotations": other_annotations} if other_annotations else fields


def head_of_list(metadata: Mapping[str, Any], version: str) -> Tree:
    """A list but for its items."""
    return {
        "kind": "PartialObjectMetadataList",
        "apiVersion": f"meta.k8s.io/{version}",
        "metadata": metadata,
    }
