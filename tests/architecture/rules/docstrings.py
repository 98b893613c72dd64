"""Rule: a module has a docstring, a package's states what belongs in it, and `__init__` holds no logic."""

import ast
from collections.abc import Iterator

from tests.architecture.rules.data import is_data
from tests.architecture.source import Finding, Module

MEMBERSHIP = "belongs here"


def _check_package(module: Module, docstring: str) -> Iterator[Finding]:
    if MEMBERSHIP not in docstring:
        yield Finding(1, f'the package\'s docstring has no rule of membership: write what "{MEMBERSHIP}"')
    for statement in module.tree.body:
        if not is_data([statement], also_deciding=(ast.Call,)):
            yield Finding(statement.lineno, "a package's __init__ holds no logic: move it into a module")


def check(module: Module) -> Iterator[Finding]:
    docstring = ast.get_docstring(module.tree)
    if not docstring:
        yield Finding(1, "the module has no docstring: say what it owns and what it must not know")
    if module.path.endswith("/__init__.py"):
        yield from _check_package(module, docstring or "")
