"""The Python files of the repository, each as text and syntax tree, for the rules.

Contains no rule. The walk covers the folders named below and does not use git, so it also works on an export.
"""

import ast
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from textwrap import dedent
from typing import Any, TypeAlias

from mockube.component_base.python_source import parse
from tools.packages import ROOT


@dataclass(frozen=True, kw_only=True)
class Module:
    path: str
    """Relative to the root of the checkout, with slashes."""
    text: str
    tree: ast.Module

    @cached_property
    def nodes(self) -> list[ast.AST]:
        """All nodes of the tree: most rules look at each."""
        found: list[ast.AST] = [self.tree]
        for node in found:
            found += children(node)
        return found

    @classmethod
    def of(cls, path: str, text: str) -> "Module":
        """Return a module with this text as if it were at `path`, for tests of the rules."""
        text = dedent(text)
        return cls(path=path, text=text, tree=parse(text))


def children(node: ast.AST) -> list[ast.AST]:
    """Return the nodes in a node, without those that state whether a name is read or written: a third of all."""
    found: list[ast.AST] = []
    for field in node._fields:
        value = getattr(node, field, None)
        if isinstance(value, list):
            found += (item for item in value if isinstance(item, ast.AST))
        elif isinstance(value, ast.AST) and field != "ctx":
            found.append(value)
    return found


@dataclass(frozen=True, slots=True)
class Finding:
    line: int
    message: str


Check: TypeAlias = Callable[[Module], Iterator[Finding]]


@cache
def settings() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


TESTS = ("tests", "judges")
RECORDINGS = ROOT / "tests/conformance/golden"
"""Recorded elsewhere, together with the runners that replay them."""
TOOLS = ("benchmarks", "tools")


def paths(*folders: str) -> Iterator[str]:
    """Return the paths of all Python files in the folders, relative to the root of the checkout."""
    found = (path for folder in folders for path in sorted((ROOT / folder).rglob("*.py")))
    return (path.relative_to(ROOT).as_posix() for path in found if not path.is_relative_to(RECORDINGS))


def module(path: str) -> Module:
    """Parse a file. Modules are not cached: the syntax trees of the whole repository take a gigabyte."""
    return Module.of(path, (ROOT / path).read_text())
