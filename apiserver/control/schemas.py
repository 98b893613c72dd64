"""The parts of schemas and columns from which the kinds are described."""

from collections.abc import Mapping
from typing import Any

from mockube.apimachinery.tree import Tree


def text(description: str, **rules: Any) -> Tree:
    return {"type": "string", "description": description, **rules}


def integer(description: str, **rules: Any) -> Tree:
    return {"type": "integer", "format": "int64", "description": description, **rules}


def seconds(description: str) -> Tree:
    """Return the schema of a span of time, of at most 30 years."""
    return {"type": "number", "minimum": 0, "maximum": 1e9, "description": description}


def object_of(description: str, properties: Mapping[str, Any], *required: str) -> Tree:
    schema: Tree = {"type": "object", "description": description, "properties": dict(properties)}
    return {**schema, "required": list(required)} if required else schema


def column(name: str, path: str, description: str, *, type_: str = "string", priority: int = 0) -> Tree:
    """Return a column of tables; one with a priority is shown by -o wide only."""
    tree: Tree = {"name": name, "type": type_, "jsonPath": path, "description": description}
    return {**tree, "priority": priority} if priority else tree
