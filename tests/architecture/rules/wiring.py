"""Rule: an object gets the functions that it calls by its constructor, or by a method that adds a handler.

A function that another object assigns to an attribute afterwards is missing until then, hides who calls whom, and a second
assignment drops the first one. Where two objects need each other, what both need is an object of its own, made before them.
"""

import ast
from collections.abc import Iterator, Mapping

from tests.architecture.source import Finding, Module

ALLOWED: Mapping[str, str] = {
    "apiserver/http/adapter.py": "the callback of one request, on the connection that serves it",
    "apiserver/request/request_observer.py": "the callback of one request, which its response calls",
    "container_runtime/simulated/runtime.py": "the host of a container is data, to which one run adds its callback",
}
"""Which file may assign functions, and why. An entry that is no longer needed is an error, too."""


def check(module: Module, allowed: Mapping[str, str] = ALLOWED) -> Iterator[Finding]:
    if module.path not in allowed:
        yield from assignments(module)


def assignments(module: Module) -> Iterator[Finding]:
    """Yield the assignments of functions, or of the object itself, to attributes of other objects."""
    functions = {
        node.name for node in module.nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    functions -= {
        node.name
        for node in module.nodes
        if isinstance(node, ast.FunctionDef) and any(map(_is_property, node.decorator_list))
    }
    for node in module.nodes:
        if not isinstance(node, ast.Assign | ast.AnnAssign) or node.value is None:
            continue
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            for one, value in _pairs(target, node.value):
                if _is_of_another(one) and (
                    one.attr.startswith("on_") or _is_function(value, functions) or _is_name(value, "self")
                ):
                    message = f"wires {ast.unparse(one)} after construction: pass it to the constructor"
                    yield Finding(node.lineno, message)


def _pairs(target: ast.expr, value: ast.expr) -> Iterator[tuple[ast.expr, ast.expr]]:
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
        yield from zip(target.elts, value.elts, strict=False)
    else:
        yield target, value


def _is_of_another(target: ast.expr) -> bool:
    """Return whether an object assigns to an attribute of another one. A function of a module decorates itself."""
    return isinstance(target, ast.Attribute) and not any(
        _is_name(target.value, name) for name in ("self", "cls")
    )


def _is_function(value: ast.expr, functions: set[str]) -> bool:
    if isinstance(value, ast.Lambda):
        return True
    if isinstance(value, ast.Call):
        return _is_name(value.func, "partial")
    if isinstance(value, ast.Attribute):
        return _is_name(value.value, "self") and value.attr in functions
    return isinstance(value, ast.Name) and value.id in functions


def _is_property(decorator: ast.expr) -> bool:
    name = decorator.attr if isinstance(decorator, ast.Attribute) else getattr(decorator, "id", "")
    return name in {"property", "cached_property", "setter"}


def _is_name(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name
