"""Resolve expressions of a module to the full dotted names of what it imported.

`from datetime import datetime as dt` makes `dt.now` stand for `datetime.datetime.now`; a call is written `()`, so
`asyncio.get_running_loop().time` has a name too. Names that are not imported are not resolved.
"""

import ast
from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from functools import cache, lru_cache
from typing import TypeAlias

from tests.architecture.source import Finding, Module


def imports(module: Module) -> Iterator[tuple[int, str]]:
    """Yield the line and module of each absolute import."""
    for node in module.nodes:
        match node:
            case ast.Import(names=names):
                yield from ((node.lineno, name.name) for name in names)
            case ast.ImportFrom(module=str(source), level=0):
                yield node.lineno, source


def _bindings(module: Module) -> dict[str, str]:
    bound: dict[str, str] = {}
    for node in module.nodes:
        match node:
            case ast.Import(names=names):
                for name in names:
                    root = name.name.partition(".")[0]
                    bound[name.asname or root] = name.name if name.asname else root
            case ast.ImportFrom(module=str(source), names=names, level=0):
                bound |= {name.asname or name.name: f"{source}.{name.name}" for name in names}
    return bound


def _dotted_name(node: ast.AST, bound: Mapping[str, str]) -> str | None:
    match node:
        case ast.Name(id=name):
            return bound.get(name)
        case ast.Attribute(value=value, attr=attr):
            base = _dotted_name(value, bound)
            return base and f"{base}.{attr}"
        case ast.Call(func=func):
            base = _dotted_name(func, bound)
            return base and f"{base}()"
    return None


Use: TypeAlias = tuple[ast.expr, str]


@lru_cache(maxsize=1)
def uses(module: Module) -> list[Use]:
    """Return each expression that has a dotted name, with that name. Several rules look at those of the same module."""
    bound = _bindings(module)
    return [
        (node, name)
        for node in module.nodes
        if isinstance(node, ast.Name | ast.Attribute) and (name := _dotted_name(node, bound))
    ]


_matches = cache(fnmatchcase)


def matches(name: str, patterns: Iterable[str]) -> str | None:
    """Return the first pattern that matches the name; patterns may contain `*`."""
    return next((pattern for pattern in patterns if _matches(name, pattern)), None)


def forbidden_among(used: Iterable[Use], forbidden: Mapping[str, str]) -> Iterator[Finding]:
    """Yield findings for forbidden names; `forbidden` maps each pattern to its replacement."""
    for node, name in used:
        if pattern := matches(name, forbidden):
            yield Finding(node.lineno, f"{name}: {forbidden[pattern]}")
