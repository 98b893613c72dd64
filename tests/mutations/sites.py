"""The places at which a rule of a package can be removed, found by the syntax: one condition, one operand, one call, one entry of a table.

An edit changes a syntax tree. Its name has no line number, so that it remains the same while code around it changes.
"""

import ast
import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

Function = ast.FunctionDef | ast.AsyncFunctionDef
TABLES = (ast.Tuple, ast.List, ast.Set, ast.Dict)
LITERALS = (ast.Constant, *TABLES)
"""What is a default at the end of an `or`, which is no rule."""
LOG = "LOG."
"""How a call begins that writes a log, which is no rule."""
LONGEST = 70
_FALSE = ast.Constant(value=False)


class Edit(NamedTuple):
    name: str
    lines: range
    """The lines of the statement."""
    owner: str
    """The qualified name of the function, or the name of the table."""
    first_line: int
    """The first line of the function, with its decorators; 0 for a table."""
    apply: Callable[[], object]
    """Change the tree."""


class Site(NamedTuple):
    """Where an edit is made: `file` is relative to the repository."""

    file: str
    name: str
    owner: str
    first_line: int
    lines: range

    @property
    def is_table(self) -> bool:
        return not self.first_line


def sites_of(root: Path, folder: str) -> list[Site]:
    """Return all sites of a folder. Tables from which others are made on import are left out: an entry has more than one owner."""
    trees = {path: ast.parse(path.read_bytes()) for path in sorted((root / folder).rglob("*.py"))}
    read_on_import = {name for tree in trees.values() for name in _read_on_import(tree)}
    return [
        Site(str(path.relative_to(root)), edit.name, edit.owner, edit.first_line, edit.lines)
        for path, tree in trees.items()
        for edit in edits(tree)
        if edit.first_line or edit.owner not in read_on_import
    ]


def chosen(sites: Sequence[Site], *, seed: int, count: int) -> list[Site]:
    """Return a random choice, in which a change of the code replaces few sites."""

    def rank(site: Site) -> bytes:
        return hashlib.sha256(f"{seed} {site.file} {site.name}".encode()).digest()

    return sorted(sites, key=rank)[:count]


def edits(tree: ast.Module) -> Iterator[Edit]:
    """Return the edits of a module, of which only one may be applied."""
    repeated = Counter[str]()
    for edit in (*_edits_of_functions(tree), *_edits_of_tables(tree)):
        repeated[edit.name] += 1
        number = repeated[edit.name]
        yield edit if number == 1 else edit._replace(name=f"{edit.name} #{number}")


def tables_read(tree: ast.Module, table: str, *, is_own: bool) -> Iterator[int]:
    """Return the lines on which a module reads a table, of its own or of another module."""
    is_imported = is_own or any(
        alias.name == table
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    )
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name) if name == table and is_imported:
                yield node.lineno
            case ast.Attribute(attr=name) if name == table:
                yield node.lineno


def _edits_of_functions(tree: ast.Module) -> Iterator[Edit]:
    for qualname, function in _functions(tree.body, ""):
        first = min((function.lineno, *(each.lineno for each in function.decorator_list)))
        for statement, node, parent in _walk(function):
            for what, apply in _edits_of_node(node, parent):
                yield Edit(f"{qualname}: {what}", _own_lines(statement), qualname, first, apply)


def _functions(body: Sequence[ast.stmt], prefix: str) -> Iterator[tuple[str, Function]]:
    """Return the functions of a module and of its classes. What is inside of a function belongs to it."""
    for statement in body:
        match statement:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                yield f"{prefix}{statement.name}", statement
            case ast.ClassDef(name=name, body=members):
                yield from _functions(members, f"{prefix}{name}.")


def _walk(function: Function) -> Iterator[tuple[ast.stmt, ast.AST, ast.AST]]:
    """Return each node of the body with the statement around it and its parent."""

    def below(parent: ast.AST, statement: ast.stmt) -> Iterator[tuple[ast.stmt, ast.AST, ast.AST]]:
        for node in ast.iter_child_nodes(parent):
            around = node if isinstance(node, ast.stmt) else statement
            yield around, node, parent
            yield from below(node, around)

    for statement in function.body:
        yield statement, statement, function
        yield from below(statement, statement)


def _own_lines(statement: ast.stmt) -> range:
    """Return the lines of a statement, without those of statements in it."""
    inner = [
        node.lineno
        for node in ast.walk(statement)
        if isinstance(node, ast.stmt) and node is not statement and node.lineno > statement.lineno
    ]
    end = statement.end_lineno or statement.lineno
    return range(statement.lineno, min((*inner, end + 1)))


def _edits_of_node(node: ast.AST, parent: ast.AST) -> Iterator[tuple[str, Callable[[], object]]]:
    yield from _edits_of_condition(node, parent)
    match node:
        case ast.Return(value=ast.BoolOp(values=[*_, last])) if isinstance(last, LITERALS):
            pass
        case ast.Return(value=ast.Compare() | ast.BoolOp() | ast.UnaryOp(op=ast.Not()) as value):
            yield f"`return {_text(value)}` inverted", _setter(node, "value", _inverted(value))
        case ast.Expr(value=ast.Call() | ast.Await() | ast.Yield() | ast.YieldFrom() as value):
            if not _text(value).startswith(LOG):
                # A generator remains one, and the variables of inner functions remain the same.
                unreached = ast.If(_FALSE, [node], [])
                yield f"without `{_text(value)}`", _replacer(parent, node, unreached)


def _edits_of_condition(node: ast.AST, parent: ast.AST) -> Iterator[tuple[str, Callable[[], object]]]:
    match node:
        case ast.If(test=test):
            yield f"`if {_text(test)}` never", _setter(node, "test", _FALSE)
            yield f"`if {_text(test)}` inverted", _setter(node, "test", _inverted(test))
        case ast.IfExp(test=test):
            yield f"`… if {_text(test)}` inverted", _setter(node, "test", _inverted(test))
        case ast.match_case(guard=ast.expr() as guard):
            yield f"`case … if {_text(guard)}` always", _setter(node, "guard", None)
        case ast.comprehension(ifs=tests):
            for test in tests:
                yield f"`for … if {_text(test)}` always", _remover(tests, test)
        case ast.BoolOp(op=operator, values=values) if not isinstance(values[-1], LITERALS):
            word = "and" if isinstance(operator, ast.And) else "or"
            for operand in values:
                others = [each for each in values if each is not operand]
                smaller = ast.BoolOp(operator, others) if len(others) > 1 else others[0]
                yield f"`{_text(node)}` without {word} `{_text(operand)}`", _replacer(parent, node, smaller)


def _edits_of_tables(tree: ast.Module) -> Iterator[Edit]:
    for statement in tree.body:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                pass
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                pass
            case _:
                continue
        if isinstance(value, ast.Call) and len(value.args) == 1:
            (value,) = value.args
        if name.isupper() and isinstance(value, TABLES):
            lines = range(statement.lineno, (statement.end_lineno or statement.lineno) + 1)
            for what, remove in _entries(value):
                yield Edit(f"{name}: without {what}", lines, name, 0, remove)


def _entries(table: ast.expr) -> Iterator[tuple[str, Callable[[], object]]]:
    if isinstance(table, ast.Dict):
        for number, key in enumerate(table.keys):
            if key is not None:
                yield f"`{_text(key)}`", _entry_remover(table, number)
        return
    assert isinstance(table, ast.Tuple | ast.List | ast.Set)
    for entry in table.elts:
        if isinstance(entry, ast.Starred):
            if isinstance(entry.value, TABLES):
                yield from _entries(entry.value)
        else:
            yield f"`{_text(entry)}`", _remover(table.elts, entry)


def _entry_remover(table: ast.Dict, number: int) -> Callable[[], object]:
    return lambda: (table.keys.pop(number), table.values.pop(number))


def _remover(elements: list[ast.expr], element: ast.expr) -> Callable[[], object]:
    return lambda: elements.remove(element)


def _setter(node: ast.AST, field: str, value: ast.expr | None) -> Callable[[], object]:
    return lambda: setattr(node, field, value)


def _replacer(parent: ast.AST, node: ast.AST, other: ast.AST) -> Callable[[], object]:
    def apply() -> None:
        for field, value in ast.iter_fields(parent):
            if value is node:
                setattr(parent, field, other)
            elif isinstance(value, list):
                value[:] = [other if each is node else each for each in value]

    return apply


def _inverted(test: ast.expr) -> ast.expr:
    return ast.UnaryOp(ast.Not(), test)


def _text(node: ast.AST) -> str:
    text = ast.unparse(node)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"


def _read_on_import(parent: ast.AST) -> Iterator[str]:
    """Return the names that are read when a module is imported: outside of functions, and in their decorators and defaults."""
    for node in ast.iter_child_nodes(parent):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.Lambda():
                defaults = [each for each in (*node.args.defaults, *node.args.kw_defaults) if each]
                decorators = [] if isinstance(node, ast.Lambda) else node.decorator_list
                for each in (*defaults, *decorators):
                    yield from _read_on_import(ast.Expr(each))
            case ast.Name(id=name, ctx=ast.Load()) | ast.Attribute(attr=name):
                yield name
                yield from _read_on_import(node)
            case _:
                yield from _read_on_import(node)
