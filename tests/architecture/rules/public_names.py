"""A name has a verb or a noun of the field, and is no riddle.

Participles, pronouns, and pictures of houses and theatres name nothing: `told` may be a patch, a status or a warning.
Public functions and classes hold to the whole list, all other names to the words that were used most.
"""

import ast
from collections.abc import Iterator

from tests.architecture.source import Finding, Module

_PRONOUNS = "it what which who whose why how where together nothing everything"
_PARTICIPLES = "asked begun given gone heard held kept longest made meant offered olds said settled shown taken told wanted"
VAGUE = frozenset(f"{_PRONOUNS} {_PARTICIPLES}".split())

_OF_REPORTS = "say saying sayer tell tells"
_OF_STATE = "forgotten grown judged known passed remembered rolled seen tended"
_OF_NOTHING = "goals once one patience place planning reach standing turn verdict wishes"
_OF_HOUSES = "face home moment living outfit room scene shelf travel victim world"
RIDDLES = VAGUE | frozenset(f"{_OF_REPORTS} {_OF_STATE} {_OF_NOTHING} {_OF_HOUSES}".split())

ALLOWED = {"apimachinery/remembered.py": "remembered", "apimachinery/status.py": "Gone"}
"""A decorator is called by what it makes of a function, an error by its reason."""


def check(module: Module) -> Iterator[Finding]:
    for node in module.tree.body:
        if not isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if node.name.lower() in RIDDLES and ALLOWED.get(module.path) != node.name:
            yield Finding(node.lineno, f"'{node.name}' does not say what it is or does: use a verb or a noun")


def check_all(module: Module) -> Iterator[Finding]:
    """Every function, method, parameter, field, attribute of self and local variable, public or not."""
    for node in ast.walk(module.tree):
        for name in _names(node):
            if name.strip("_") in VAGUE:
                yield Finding(
                    node.lineno, f"'{name}' does not say what it is: use the noun or verb of the field"
                )


def _names(node: ast.AST) -> Iterator[str]:
    """The names that a node introduces."""
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            yield name
        case ast.arg(arg=name) | ast.Name(id=name, ctx=ast.Store()):
            yield name
        case ast.Attribute(value=ast.Name(id="self" | "cls"), attr=name, ctx=ast.Store()):
            yield name
        case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
            yield name
        case ast.alias(asname=str(name)) | ast.MatchMapping(rest=str(name)):
            yield name
