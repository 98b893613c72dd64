"""Rule: a name contains a verb or a noun of the field.

Participles, pronouns and metaphors are ambiguous: `told` may be a patch, a status or a warning.
"""

import ast
from collections.abc import Iterator

from tests.architecture.source import Finding, Module

_PRONOUNS = "it what which who whose why how where together nothing everything"
_PARTICIPLES = """
asked begun forgotten given gone happened heard held judged kept longest made meant offered olds remembered said settled
shown taken tended told wanted
"""
VAGUE = frozenset(f"{_PRONOUNS} {_PARTICIPLES}".split())

_HOUSES = "door doors face furnish home living room surroundings world"
_THEATRES = "fleet outfit performer saying sayer say scene scenes tell tells"
PICTURES = frozenset(f"{_HOUSES} {_THEATRES}".split())

ALLOWED = {"apimachinery/status.py": "Gone"}
"""An error has the name of its reason."""


def check(module: Module) -> Iterator[Finding]:
    """Check all names, public or not: classes, functions, parameters, fields, attributes and variables."""
    for node in module.nodes:
        for name in _names(node):
            if name.strip("_") in VAGUE | PICTURES and ALLOWED.get(module.path, "").lower() != name:
                yield Finding(
                    node.lineno, f"'{name}' does not say what it is: use the noun or verb of the field"
                )


def _names(node: ast.AST) -> Iterator[str]:
    """Yield the names that a node introduces."""
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            yield name
        case ast.ClassDef(name=name):
            yield name.lower()
        case _:
            yield from _variables(node)


def _variables(node: ast.AST) -> Iterator[str]:
    """Yield the names of variables, parameters and attributes that a node introduces."""
    match node:
        case ast.arg(arg=name) | ast.Name(id=name, ctx=ast.Store()):
            yield name
        case ast.Attribute(value=ast.Name(id="self" | "cls"), attr=name, ctx=ast.Store()):
            yield name
        case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
            yield name
        case ast.alias(asname=str(name)) | ast.MatchMapping(rest=str(name)):
            yield name
