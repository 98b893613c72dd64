"""Rules: inside its folder a file imports by relative names, elsewhere by `mockube.`; it uses one name for each thing."""

import ast
from collections.abc import Iterator
from pathlib import PurePosixPath

from tests.architecture.source import Finding, Module
from tools.packages import PACKAGES


def check(module: Module) -> Iterator[Finding]:
    """Check the imports of a file of the product."""
    parts = _parts(module.path)
    own, folder = ".".join(part for part in parts if part != "__init__"), ".".join(parts[:-1])
    seen: set[str] = set()
    for node in module.tree.body:
        if not isinstance(node, ast.ImportFrom):
            continue
        source = ".".join(filter(None, (folder, node.module))) if node.level else node.module or ""
        if node.level > 1 or (
            not node.level and f"{source}.".startswith(f"{folder}.") and folder != parts[0]
        ):
            yield Finding(node.lineno, "import what is in the same folder, or below, by a relative name")
        for alias in node.names:
            name = f"{source}.{alias.name}"
            if name == own:
                yield Finding(node.lineno, "a module imports itself: use its names as they are")
            elif name in seen:
                yield Finding(node.lineno, f"{name} is imported twice: use one name")
            seen.add(name)


def check_namespace(module: Module) -> Iterator[Finding]:
    """Refuse to import a package by the name of its folder: it would be loaded a second time."""
    inside = {*PACKAGES} - {"mockube"}
    for node in ast.walk(module.tree):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and not node.level:
            names = [node.module or ""]
        for name in names:
            if name.partition(".")[0] in inside:
                yield Finding(node.lineno, f"import mockube.{name}")


def _parts(path: str) -> list[str]:
    parts = [*PurePosixPath(path).with_suffix("").parts]
    return parts if parts[0] == "mockube" else ["mockube", *parts]
