"""Rule: a name contains a verb or a noun of the field.

Participles, pronouns and metaphors are ambiguous: `told` may be a patch, a status or a warning.
The whole list applies to public functions and classes; `VAGUE` and `PICTURES` apply to all other names, and `HOLDERS`
to variables, parameters and attributes.
"""

import ast
import re
from collections.abc import Iterator

from tests.architecture.source import Finding, Module

_PRONOUNS = "it what which who whose why how where together nothing everything"
_PARTICIPLES = """
asked begun forgotten given gone happened heard held judged kept longest made meant offered olds remembered said settled
shown taken tended told wanted
"""
VAGUE = frozenset(f"{_PRONOUNS} {_PARTICIPLES}".split())

_IRREGULAR = """
became begun bent born bought bound broken brought built came caught chosen drawn driven fallen felt fled flown forgotten found
frozen given gone grown had heard held hidden kept known laid led left lost made meant met overridden paid proven risen said saw
seen sent shaken shown shut slept spent spoken spun stolen struck stuck sunk taken taught thought thrown told understood undone
unset was went were woken won worn wound written
"""
_PARTICIPLE = re.compile(f"[a-z]{{2,}}ed|{'|'.join(_IRREGULAR.split())}")
_FIELD_WORDS = frozenset(
    [
        "embed",
        "failed",
        "feed",
        "forbidden",
        "need",
        "proceed",
        "required",
        "seed",
        "shed",
        "speed",
        "succeed",
    ]
)
"""Words that end like a participle, and the reasons of errors under upstream's names."""

_HOUSES = "door doors face furnish home living room surroundings world"
_THEATRES = "fleet outfit performer saying sayer say scene scenes tell tells"
PICTURES = frozenset(f"{_HOUSES} {_THEATRES}".split())

_OF_STATE = "grown known passed rolled seen"
_OF_NOTHING = "goals once one patience place planning reach standing turn verdict wishes"
_OF_OTHERS = "moment shelf travel victim"
RIDDLES = VAGUE | PICTURES | frozenset(f"{_OF_STATE} {_OF_NOTHING} {_OF_OTHERS}".split())

HOLDERS = frozenset(
    ["found", "had", "has", "known", "knows", "left", "listed", "one", "ones", "spared", "whole"]
)
"""Names that say how a value was come by, or that there is one, and not what it is."""

ALLOWED = {"apimachinery/status.py": "Gone"}
"""An error has the name of its reason."""


LONE = {
    "apiserver/audit/audit.py": ("authenticated", "impersonated"),
    "apiserver/wire/protobuf/decode.py": ("cached",),
    "mockube/cluster.py": ("awaited",),
}
"""Parts of the programming interface, attributes of a record, and a decorator."""


def is_participle(word: str) -> bool:
    return _PARTICIPLE.fullmatch(word) is not None and word not in _FIELD_WORDS


def check(module: Module) -> Iterator[Finding]:
    for node in module.tree.body:
        if not isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if node.name.lower() in RIDDLES and ALLOWED.get(module.path) != node.name:
            yield Finding(node.lineno, f"'{node.name}' does not say what it is or does: use a verb or a noun")


def check_all(module: Module) -> Iterator[Finding]:
    """Check all names, public or not: classes, functions, parameters, fields, attributes and variables."""
    for node in ast.walk(module.tree):
        for name in _names(node):
            if name.strip("_") in VAGUE | PICTURES and ALLOWED.get(module.path, "").lower() != name:
                yield Finding(
                    node.lineno, f"'{name}' does not say what it is: use the noun or verb of the field"
                )


def check_functions(module: Module) -> Iterator[Finding]:
    """Refuse a lone participle as a function's name: `changed` may be a handler, a test or a result."""
    for node in ast.walk(module.tree):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        name = node.name.strip("_")
        if is_participle(name) and name not in LONE.get(module.path, ()):
            yield Finding(node.lineno, f"'{node.name}' does not say what the function does or returns")


def check_variables(module: Module) -> Iterator[Finding]:
    """Refuse `found` and the like for a variable, a parameter or an attribute; `left` may be beside a `right`."""
    names = [(node, name.strip("_")) for node in ast.walk(module.tree) for name in _variables(node)]
    has_operands = any(name == "right" for _, name in names)
    for node, name in names:
        if name in HOLDERS and not (name == "left" and has_operands):
            yield Finding(node.lineno, f"'{name}' does not say what the value is: use the noun of the field")


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
