"""The tree as the rules see it: which files there are, each read and parsed once.

Knows no rule. The walk is over the folders named below and not over what git knows, so it also works on an export.
"""

import ast
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from textwrap import dedent
from typing import Any, TypeAlias

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True, kw_only=True)
class Module:
    path: str
    """From the root of the checkout, with slashes."""
    text: str
    tree: ast.Module

    @classmethod
    def of(cls, path: str, text: str) -> "Module":
        """A module as it would be at `path`: how a test plants what a rule must find."""
        text = dedent(text)
        return cls(path=path, text=text, tree=ast.parse(text))


@dataclass(frozen=True, slots=True)
class Finding:
    line: int
    message: str


Check: TypeAlias = Callable[[Module], Iterator[Finding]]


@cache
def settings() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


PACKAGES: tuple[str, ...] = tuple(settings()["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"])
TESTS = ("tests",)
RECORDINGS = ROOT / "tests/conformance/golden"
"""Recorded elsewhere, together with the runners that replay them."""
TOOLS = ("benchmarks", "tools")


@cache
def modules(*folders: str) -> tuple[Module, ...]:
    found = (path for folder in folders for path in sorted((ROOT / folder).rglob("*.py")))
    paths = (path for path in found if not path.is_relative_to(RECORDINGS))
    return tuple(Module.of(path.relative_to(ROOT).as_posix(), path.read_text()) for path in paths)
