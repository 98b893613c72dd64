"""PartialObjectMetadata, the view that has only the metadata of an object, and its list."""

from collections.abc import Mapping
from typing import Any

from mockube.apimachinery import status
from mockube.apimachinery.status import ApiError
from mockube.apimachinery.tree import Tree
from mockube.apimachinery.wellknown import ANNOTATION_TEMPLATE_GENERATION

ONLY_IN_V1: Mapping[str, str] = {"DaemonSet": ANNOTATION_TEMPLATE_GENERATION}
"""By kind, the annotation that partial metadata omits, because upstream stores it as a field of the object."""


_GO_PACKAGES: Mapping[str, str] = {"": "core", "events": "core"}
"""The Go package of a group's types, by the first word of the group, if it has another name."""


def check_view(api_version: str, kind: str, *, is_list: bool, wants_list: bool, custom: bool) -> None:
    """Raise NotAcceptable if the metadata of an object is requested of a list, or that of a list of an object."""
    if is_list == wants_list:
        return
    package = api_version.rpartition("/")[0].partition(".")[0]
    name = f"*{_GO_PACKAGES.get(package, package)}.{kind}"
    if custom and wants_list:
        raise ApiError("content is not a list")  # upstream treats any custom object as a list at first
    if custom:
        name = "*unstructured.UnstructuredList"
    view = "PartialObjectMetadataList" if wants_list else "PartialObjectMetadata"
    form = "a list" if is_list else "not a list"
    raise status.NotAcceptable(f"you requested {view}, but the requested object is {form} ({name})")


def to_partial_metadata(tree: Tree, version: str) -> Tree:
    """Return the PartialObjectMetadata of an object, in a version of `meta.k8s.io`."""
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


def list_head(metadata: Mapping[str, Any], version: str) -> Tree:
    """Return a PartialObjectMetadataList without its items."""
    return {
        "kind": "PartialObjectMetadataList",
        "apiVersion": f"meta.k8s.io/{version}",
        "metadata": metadata,
    }
