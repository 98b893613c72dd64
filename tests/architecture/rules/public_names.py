"""A public function or class of a module has a verb or a noun of the field for a name, and no riddle.

Participles, pronouns, and pictures of houses and theatres name nothing: `told` may be a patch, a status or a warning.
"""

import ast
from collections.abc import Iterator

from tests.architecture.source import Finding, Module

_OF_REPORTS = "say saying sayer tell tells told"
_OF_STATE = "asked forgotten given grown held judged kept known made meant passed remembered rolled seen settled shown tended wanted"
_OF_NOTHING = (
    "goals it longest olds once one patience place planning reach standing together told turn verdict wishes"
)
_OF_HOUSES = "face home moment living outfit room scene shelf travel victim world"
RIDDLES = frozenset(f"{_OF_REPORTS} {_OF_STATE} {_OF_NOTHING} {_OF_HOUSES}".split())

ALLOWED = {"apimachinery/remembered.py": "remembered"}
"""A decorator is called by what it makes of a function."""


def check(module: Module) -> Iterator[Finding]:
    for node in module.tree.body:
        if not isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if node.name.lower() in RIDDLES and ALLOWED.get(module.path) != node.name:
            yield Finding(node.lineno, f"'{node.name}' does not say what it is or does: use a verb or a noun")
