"""Read values for table cells from an object, and the cells that several kinds print.

Any part of an object may be missing: its text is then empty, its number 0, and its list has no items. `text` takes a default
because Go distinguishes an absent pointer from an empty string.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from mockube.apimachinery import conditions, labels, meta, quantity
from mockube.apimachinery.timestamps import parse_time
from mockube.apimachinery.tree import Tree
from mockube.apiserver.wire.table import Column


def part(tree: Any, *path: str) -> Any:
    """Return the value at a path of fields, or None if the path ends early."""
    for field in path:
        if tree is None:
            return None
        tree = tree.get(field)
    return tree


def text(tree: Any, *path: str, default: str = "") -> str:
    value = part(tree, *path)
    return default if value is None else str(value)


def number(tree: Any, *path: str) -> int:
    return part(tree, *path) or 0


def flag(tree: Any, *path: str, default: bool = False) -> bool:
    value = part(tree, *path)
    return default if value is None else value


def items(tree: Any, *path: str) -> Sequence[Any]:
    return part(tree, *path) or ()


def count(tree: Any, *path: str) -> int:
    """Return the number of entries of a list or a map."""
    return len(part(tree, *path) or ())


def time(tree: Any, *path: str) -> datetime | None:
    value = part(tree, *path)
    return parse_time(value) if value else None


def amount(tree: Any, *path: str) -> str:
    """Return a quantity as upstream prints it; `0` if it is missing."""
    return str(quantity.from_json(part(tree, *path)))


def condition(tree: Any, condition_type: str) -> str:
    """Return the status of a condition: "True", "False" or "Unknown"; "" if it is missing."""
    return text(conditions.get(tree, condition_type), "status")


def join_shortened(texts: Sequence[str], *, maximum: int = 3, separator: str = ",") -> str:
    """Join the first texts, and count the others, so that a cell stays narrow."""
    text = separator.join(texts[:maximum])
    return f"{text} + {len(texts) - maximum} more..." if len(texts) > maximum else text


_NONE: Final = "<none>"


def labels_text(chosen: Mapping[str, str] | None) -> str:
    """Return labels, or a selector that is a map of labels, as text."""
    return ",".join(f"{key}={value}" for key, value in sorted((chosen or {}).items())) or _NONE


def selector_text(selector: Mapping[str, Any] | None) -> str:
    try:
        return str(labels.from_label_selector(selector)) or _NONE
    except labels.SelectorError:
        return "<error>"


CONTAINERS: Final = Column(name="Containers", priority=1)
IMAGES: Final = Column(name="Images", priority=1)
SELECTOR: Final = Column(name="Selector", priority=1)


def names_and_images(template: Any) -> tuple[str, str]:
    """Return two cells: the names and the images of a pod template's containers."""
    containers = items(template, "spec", "containers")
    return (
        ",".join(text(container, "name") for container in containers),
        ",".join(text(container, "image") for container in containers),
    )


def ingress_addresses(tree: Tree) -> list[str]:
    """Return the unique ingress addresses or host names of a load balancer, sorted, for a Service or an Ingress."""
    points = items(tree, "status", "loadBalancer", "ingress")
    return sorted({text(point, "ip") or text(point, "hostname") for point in points} - {""})


def is_default(tree: Tree, *annotations: str) -> bool:
    """Return whether one of these annotations makes a class the default."""
    return any(meta.annotations(tree).get(annotation) == "true" for annotation in annotations)


def name_with_default(tree: Tree, *annotations: str) -> str:
    """Return the name of a class, marked if one of these annotations makes it the default."""
    return f"{meta.name(tree)} (default)" if is_default(tree, *annotations) else meta.name(tree)
