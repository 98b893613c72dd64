"""Rule: files and functions have a maximum number of lines. Pure data is exempt."""

import ast
from collections.abc import Iterator

from tests.architecture.rules.data import is_data
from tests.architecture.source import Finding, Module

MAX_FILE_LINES = 400
MAX_FUNCTION_LINES = 50


def _own_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Return the number of lines from `def` to the end, without the docstring."""
    lines = (function.end_lineno or function.lineno) - function.lineno + 1
    if ast.get_docstring(function, clean=False) is not None:
        docstring = function.body[0]
        lines -= (docstring.end_lineno or docstring.lineno) - docstring.lineno + 1
    return lines


def check(module: Module) -> Iterator[Finding]:
    lines = len(module.text.splitlines())
    if lines > MAX_FILE_LINES and not is_data(module.tree.body):
        yield Finding(lines, f"the file has {lines} lines, the limit is {MAX_FILE_LINES}: split it by idea")
    for node in ast.walk(module.tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not is_data(node.body):
            own = _own_lines(node)
            if own > MAX_FUNCTION_LINES:
                yield Finding(node.lineno, f"{node.name} has {own} lines, the limit is {MAX_FUNCTION_LINES}")
