"""Rule: a file imports a module under one name, and does not import itself."""

import ast
from collections.abc import Iterator
from pathlib import PurePosixPath

from tests.architecture.source import Finding, Module


def check(module: Module) -> Iterator[Finding]:
    own = _module_name(module.path)
    seen: set[str] = set()
    for node in module.tree.body:
        if not isinstance(node, ast.ImportFrom):
            continue
        for alias in node.names:
            name = f"{node.module}.{alias.name}"
            if name == own:
                yield Finding(node.lineno, "a module imports itself: use its names as they are")
            elif name in seen:
                yield Finding(node.lineno, f"{name} is imported twice: use one name")
            seen.add(name)


def _module_name(path: str) -> str:
    parts = [part for part in PurePosixPath(path).with_suffix("").parts if part != "__init__"]
    return ".".join(parts if parts[0] == "mockube" else ("mockube", *parts))
