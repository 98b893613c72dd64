"""Rule: a name of the product that a test, a benchmark or a tool uses exists.

They are not type-checked, and not all of them run in each suite. A name that a change of the product removed would stay
in them until somebody runs them. The rule imports the module, and looks up imported names, attributes of imported
modules and classes, and keywords in calls of imported functions and classes.
"""

import ast
import importlib
import inspect
from collections.abc import Iterator, Mapping
from functools import cache
from types import FunctionType, ModuleType
from typing import TypeAlias

from msgspec import Struct

from tests.architecture.source import Finding, Module, children

PRODUCT = "mockube"
UNKNOWN = object()
"""The value of a local name that is nothing of the product."""
MISSING = object()

_Scope: TypeAlias = ast.Module | ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


def check(module: Module) -> Iterator[Finding]:
    yield from _check_scope(module.tree, {})


def _check_scope(scope: _Scope, outer: Mapping[str, object]) -> Iterator[Finding]:
    """Check a module or a function. Classes and comprehensions count as part of the scope around them."""
    nodes = _nodes_of(scope)
    names = {**outer}
    if not isinstance(scope, ast.Module):
        names |= {node.arg: UNKNOWN for node in ast.walk(scope.args) if isinstance(node, ast.arg)}
    for node in nodes:
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names[node.id] = UNKNOWN
    for node in nodes:
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield from _bind(node, names)
    for node in nodes:
        if isinstance(node, ast.Attribute):
            yield from _check_attribute(node, names)
        elif isinstance(node, ast.Call):
            yield from _check_keywords(node, names)
        elif isinstance(node, _FUNCTIONS):
            yield from _check_scope(node, names)


def _nodes_of(scope: _Scope) -> list[ast.AST]:
    """Return the nodes of a scope, with the functions in it but without what is inside of them."""
    found = children(scope)
    for node in found:
        if not isinstance(node, _FUNCTIONS):
            found += children(node)
    return found


def _bind(node: ast.Import | ast.ImportFrom, names: dict[str, object]) -> Iterator[Finding]:
    """Add the names that a statement imports, and report those that do not exist."""
    for alias in node.names:
        source = alias.name if isinstance(node, ast.Import) else node.module or ""
        name = alias.asname or alias.name.split(".")[0]
        if source.split(".")[0] != PRODUCT:
            names[name] = UNKNOWN
        elif (module := _import(source)) is MISSING:
            yield Finding(node.lineno, f"there is no module {source}")
        elif isinstance(node, ast.Import):
            names[name] = module if alias.asname else _import(PRODUCT)
        else:
            names[name] = _member(module, alias.name)
            if names[name] is MISSING:
                yield Finding(node.lineno, f"{source} has no name '{alias.name}'")


def _check_attribute(node: ast.Attribute, names: Mapping[str, object]) -> Iterator[Finding]:
    owner = _value(node.value, names)
    if isinstance(owner, ModuleType | type) and _member(owner, node.attr) is MISSING:
        yield Finding(node.lineno, f"{owner.__name__} has no name '{node.attr}'")


def _check_keywords(node: ast.Call, names: Mapping[str, object]) -> Iterator[Finding]:
    function = _value(node.func, names)
    if isinstance(function, FunctionType | type) and (keywords := _keywords(function)) is not None:
        for keyword in node.keywords:
            if keyword.arg and keyword.arg not in keywords:
                yield Finding(node.lineno, f"{function.__qualname__} has no parameter '{keyword.arg}'")


@cache
def _keywords(function: FunctionType | type) -> frozenset[str] | None:
    """Return the keywords that a function or class takes, or None if it takes any."""
    if isinstance(function, type) and issubclass(function, Struct):
        return frozenset(function.__struct_fields__)
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return None
    takes_any = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values())
    return None if takes_any else frozenset(parameters)


def _value(node: ast.expr, names: Mapping[str, object]) -> object:
    """Return the module, class or function of the product that an expression names."""
    if isinstance(node, ast.Name):
        return names.get(node.id, UNKNOWN)
    if isinstance(node, ast.Attribute):
        owner = _value(node.value, names)
        return _member(owner, node.attr) if isinstance(owner, ModuleType | type) else UNKNOWN
    return UNKNOWN


def _member(owner: object, name: str) -> object:
    """Return an attribute of a module or class, or the module of that name in a package."""
    if hasattr(owner, name):
        return getattr(owner, name)
    return _import(f"{owner.__name__}.{name}") if isinstance(owner, ModuleType) else MISSING


def _import(name: str) -> object:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name and name.startswith(error.name):
            return MISSING
        raise
