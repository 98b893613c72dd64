"""Print the longest files and functions, and private functions that may only cut a thought in two. `make lint` ends with it.

It is a list for a reviewer, and no limit. Tables count as one line: what has only literals is data.
"""

import ast
import gc
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from typing import Final, NamedTuple, TypeAlias

from tools.packages import CODE, ROOT

SHOWN: Final = 5
SHORT_LINES: Final = 3
"""The lines of a short function, with its `def`."""

Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef


class Size(NamedTuple):
    lines: int
    place: str


class Sizes(NamedTuple):
    files: list[Size]
    functions: list[Size]
    short: list[Size]
    """Short private functions that are named once in their file besides their definition."""


def sizes() -> Sizes:
    found = Sizes([], [], [])
    for package in CODE:
        for path in sorted((ROOT / package).rglob("*.py")):
            text, name = path.read_text(), path.relative_to(ROOT).as_posix()
            tree = ast.parse(text)
            nodes = [*ast.walk(tree)]
            tables = _tables(nodes)
            found.files.append(Size(len(text.splitlines()) - _saved_lines(tables), name))
            uses = Counter(_names(nodes))
            for node in nodes:
                if isinstance(node, Function):
                    size = Size(_own_lines(node, tables), f"{name}:{node.lineno} {node.name}")
                    found.functions.append(size)
                    if node.name.startswith("_") and uses[node.name] == 1 and size.lines <= SHORT_LINES:
                        found.short.append(size)
    return found


def _own_lines(function: Function, tables: list[ast.expr]) -> int:
    """Return the number of lines from `def` to the end, without the docstring and tables."""
    end = function.end_lineno or function.lineno
    lines = end - function.lineno + 1
    if ast.get_docstring(function, clean=False) is not None:
        docstring = function.body[0]
        lines -= (docstring.end_lineno or docstring.lineno) - docstring.lineno + 1
    return lines - _saved_lines([table for table in tables if function.lineno <= table.lineno <= end])


def _tables(nodes: list[ast.AST]) -> list[ast.expr]:
    """Return the outermost literals of several lines."""
    long = [
        node
        for node in nodes
        if isinstance(node, ast.Dict | ast.Tuple | ast.List | ast.Set) and _saved_lines([node])
    ]
    tables, end = list[ast.expr](), 0
    for table in sorted(long, key=lambda table: table.lineno):
        if table.lineno > end and _is_literal(table):
            end = table.end_lineno or table.lineno
            tables.append(table)
    return tables


def _saved_lines(tables: list[ast.expr]) -> int:
    """Return the lines of tables, less one for each."""
    return sum((table.end_lineno or table.lineno) - table.lineno for table in tables)


def _is_literal(node: ast.expr) -> bool:
    return not any(isinstance(child, ast.Call | ast.Lambda | ast.comprehension) for child in ast.walk(node))


def _names(nodes: list[ast.AST]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr


def main() -> None:
    gc.disable()  # syntax trees have two million objects, which last
    found = sizes()
    for title, rows, is_longest in (
        ("The longest files", found.files, True),
        ("The longest functions", found.functions, True),
        (
            f"{len(found.short)} private functions of {SHORT_LINES} lines at most are called once, such as",
            found.short,
            False,
        ),
    ):
        print(f"{title}:")
        for size in islice(sorted(rows, reverse=is_longest), SHOWN):
            print(f"{size.lines:6} {size.place}")


if __name__ == "__main__":
    main()
