"""Make a mutant of a site: change functions and tables of the modules that this process has imported.

A function gets the code of the changed source, and so does every reference to it. A changed table replaces the old one in each
module that has its name.
"""

import ast
import gc
import os
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from types import CodeType, FunctionType, ModuleType

from .mutants import Mutant
from .sites import Site, edits

PREFIXES = ("mockube.", "tests.")


class Removals:
    """Makes mutants. The functions are those that exist when it is made."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._functions: dict[tuple[str, str, int], list[FunctionType]] = {}
        gc.unfreeze()  # frozen objects are not listed
        for each in gc.get_objects():
            if isinstance(each, FunctionType):
                code = each.__code__
                key = _real_path(code.co_filename), code.co_qualname, code.co_firstlineno
                self._functions.setdefault(key, []).append(each)
        gc.freeze()  # a collection would traverse all tests that were collected

    def mutant(self, site: Site) -> Mutant:
        return Mutant(f"{site.file} {site.name}", self._remover(site))

    def _remover(self, site: Site) -> Callable[[], None]:
        return lambda: self._change_table(site) if site.is_table else self._change_function(site)

    def _change_function(self, site: Site) -> None:
        file = str(self._root / site.file)
        code = compile(self._changed_tree(site), file, "exec", dont_inherit=True)
        new = next(
            each
            for each in _inner_codes(code)
            if (each.co_qualname, each.co_firstlineno) == (site.owner, site.first_line)
        )
        for function in self._functions[file, site.owner, site.first_line]:
            function.__code__ = new
        # The functions that it has made already, such as those of a table.
        for code in _inner_codes(new):
            for function in self._functions.get((file, code.co_qualname, code.co_firstlineno), ()):
                if function.__code__.co_freevars == code.co_freevars:
                    function.__code__ = code

    def _change_table(self, site: Site) -> None:
        tree = self._changed_tree(site)
        module = next(each for each in _modules() if _real_path(each.__file__) == str(self._root / site.file))
        old = vars(module)[site.owner]
        statement = next(each for each in tree.body if each.lineno in site.lines)
        assert isinstance(statement, ast.Assign | ast.AnnAssign)
        assert statement.value is not None
        new = eval(compile(ast.Expression(statement.value), site.file, "eval"), vars(module))
        for each in _modules():
            for name, value in [*vars(each).items()]:
                if value is old:
                    setattr(each, name, new)

    def _changed_tree(self, site: Site) -> ast.Module:
        tree = ast.parse((self._root / site.file).read_bytes())
        next(edit for edit in edits(tree) if edit.name == site.name).apply()
        return ast.fix_missing_locations(tree)


def _modules() -> Iterator[ModuleType]:
    for name, module in [*sys.modules.items()]:
        if name.startswith(PREFIXES) and getattr(module, "__file__", None):
            yield module


def _inner_codes(code: CodeType) -> Iterator[CodeType]:
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield each
            yield from _inner_codes(each)


@cache
def _real_path(path: str) -> str:
    return os.path.realpath(path)
