"""Rules: inside its folder a file imports by relative names, elsewhere by `mockube.`; it uses one name for each thing.

Tests of the packages import no pack.
"""

import ast
from collections.abc import Iterator
from pathlib import PurePosixPath

from tests.architecture.rules import names
from tests.architecture.source import Finding, Module
from tools.packages import CODE


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
    inside = {*CODE} - {"mockube"}
    for line, name in names.imports(module):
        if name.partition(".")[0] in inside:
            yield Finding(line, f"import mockube.{name}")


def check_packs(module: Module) -> Iterator[Finding]:
    """Refuse to import a pack in tests of the packages: they pass without the folders of the packs and of their tests."""
    if module.path.startswith("tests/packs/"):
        return
    for line, name in names.imports(module):
        if f"{name}.".startswith(("mockube.packs.", "tests.packs.")):
            yield Finding(line, f"imports {name}: tests of a pack are in tests/packs")


def _parts(path: str) -> list[str]:
    parts = [*PurePosixPath(path).with_suffix("").parts]
    return parts if parts[0] == "mockube" else ["mockube", *parts]
