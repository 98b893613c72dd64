"""Parts of an object, any of which may be missing: then text is empty, a number 0, and a list without items.

What Go holds in a pointer can be absent and still be told from empty: `text` has a default for that.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from apimachinery import conditions, quantity
from apimachinery.timestamps import parse_time


def part(tree: Any, *path: str) -> Any:
    """What stands at the end of a path of fields, or None if the path ends early."""
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
    """How many entries a list or a map has."""
    return len(part(tree, *path) or ())


def time(tree: Any, *path: str) -> datetime | None:
    value = part(tree, *path)
    return parse_time(value) if value else None


def amount(tree: Any, *path: str) -> str:
    """A quantity as upstream prints it, `0` where there is none."""
    return str(quantity.from_json(part(tree, *path)))


def condition(tree: Any, condition_type: str) -> str:
    """A condition's status, True, False or Unknown, as texts; empty if there is no such condition."""
    return text(conditions.get(tree, condition_type), "status")
