"""What the parser of simulated Python scripts accepts and Python's compiler does not: statements outside of what they belong to."""

import ast
from collections.abc import Sequence
from typing import Final

_FUNCTIONS: Final = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_LOOPS: Final = (ast.For, ast.AsyncFor, ast.While)


def misplaced(statements: Sequence[ast.stmt]) -> tuple[str, ast.stmt | ast.expr] | None:
    """Return the message and the node of a statement of a module that is not where it may be."""
    pending: list[tuple[ast.AST, bool, bool]] = [(node, False, False) for node in reversed(statements)]
    while pending:
        node, in_function, in_loop = pending.pop()
        problem = _problem(node, in_function=in_function, in_loop=in_loop)
        if problem is not None:
            return problem
        if isinstance(node, _FUNCTIONS):
            in_function, in_loop = True, False
        elif isinstance(node, ast.ClassDef):
            in_function = in_loop = False
        children = [
            (child, in_function, in_loop or isinstance(node, _LOOPS)) for child in ast.iter_child_nodes(node)
        ]
        pending += reversed(children)
    return None


def _problem(node: ast.AST, *, in_function: bool, in_loop: bool) -> tuple[str, ast.stmt | ast.expr] | None:
    match node:
        case ast.Return() if not in_function:
            return "'return' outside function", node
        case ast.Yield() | ast.YieldFrom() if not in_function:
            return "'yield' outside function", node
        case ast.Await() if not in_function:
            return "'await' outside function", node
        case ast.Break() if not in_loop:
            return "'break' outside loop", node
        case ast.Continue() if not in_loop:
            return "'continue' not properly in loop", node
        case _:
            return None
