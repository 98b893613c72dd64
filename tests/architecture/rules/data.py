"""Recognise pure data: assignments, imports and returns without conditions, comprehensions or lambdas."""

import ast
from collections.abc import Sequence

_NAMING = (ast.Import, ast.ImportFrom, ast.Assign, ast.AnnAssign, ast.Return)
_DECIDING = (
    ast.Lambda,
    ast.IfExp,
    ast.ListComp,
    ast.SetComp,
    ast.DictComp,
    ast.GeneratorExp,
    ast.Await,
    ast.Yield,
)


def _is_docstring(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def is_data(body: Sequence[ast.stmt], also_deciding: tuple[type[ast.AST], ...] = ()) -> bool:
    deciding = (*_DECIDING, *also_deciding)
    return all(
        _is_docstring(statement)
        or (
            isinstance(statement, _NAMING)
            and not any(isinstance(node, deciding) for node in ast.walk(statement))
        )
        for statement in body
    )
