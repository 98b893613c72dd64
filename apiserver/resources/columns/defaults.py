"""Classes, one of which may be the default: an annotation says so, and the name shows it."""

from apimachinery import meta
from apiserver.wire.table import Tree


def name_with_default(tree: Tree, *annotations: str) -> str:
    """The name, marked if one of these annotations is true."""
    is_default = any(meta.annotations(tree).get(annotation) == "true" for annotation in annotations)
    return f"{meta.name(tree)} (default)" if is_default else meta.name(tree)
