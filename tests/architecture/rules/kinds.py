"""Rule: code does not branch on an object's kind, except in `kinds/` and adapters; a resource is a row."""

import ast
import re
from collections.abc import Iterator

from tests.architecture.source import Finding, Module

AT_HOME = re.compile(r"^apiserver/kinds/[a-z]+/|(^|/)adapters(/|\.py$)")

_KIND = re.compile(r"[A-Z][A-Za-z]+")
"""Kinds begin with a capital letter; other things called kind, such as the kind of a token, do not."""

NOT_RESOURCES = frozenset({"Status"})
"""Kinds of responses: they have no resource, so no row can hold the fact."""


def _is_kind(node: ast.AST) -> bool:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name == "kind" or name.endswith("_kind")
        case ast.Subscript(slice=ast.Constant(value="kind")):
            return True
        case ast.Call(func=ast.Attribute(attr="get"), args=[ast.Constant(value="kind"), *_]):
            return True
    return False


def _literals(node: ast.AST) -> list[str]:
    """Return the kinds in a constant, or in a tuple, list or set of constants."""
    items = node.elts if isinstance(node, ast.Tuple | ast.List | ast.Set) else [node]
    values = [item.value for item in items if isinstance(item, ast.Constant)]
    kinds = [value for value in values if isinstance(value, str) and _KIND.fullmatch(value)]
    return [kind for kind in kinds if kind not in NOT_RESOURCES]


def _compared_kinds(node: ast.AST) -> list[str]:
    match node:
        case ast.Compare(left=left, comparators=others):
            sides = [left, *others]
            return [kind for side in sides for kind in _literals(side)] if any(map(_is_kind, sides)) else []
        case ast.Match(subject=subject, cases=cases) if _is_kind(subject):
            patterns = [part for case in cases for part in ast.walk(case.pattern)]
            return [
                kind
                for part in patterns
                if isinstance(part, ast.MatchValue)
                for kind in _literals(part.value)
            ]
    return []


def check(module: Module) -> Iterator[Finding]:
    if AT_HOME.search(module.path):
        return
    for node in ast.walk(module.tree):
        if kinds := _compared_kinds(node):
            yield Finding(
                node.lineno, f"decides by kind ({', '.join(kinds)}): make it a fact of the resource's row"
            )
