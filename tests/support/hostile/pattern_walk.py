"""Find every regular expression of the packages: the text of each, and the ways in which it is applied.

A walk over the syntax trees finds the calls of `re`. Their first arguments are evaluated in the module's namespace;
names that are parameters, local variables or targets of loops are replaced by all that the module gives them. What
cannot be evaluated raises `Unknown`, so no pattern escapes.
"""

import ast
import builtins
import importlib
import itertools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from tools.packages import CODE, ROOT

WAYS = ("match", "fullmatch", "search", "finditer")
_SAME_AS = {
    "findall": "finditer",
    "sub": "finditer",
    "subn": "finditer",
    "split": "finditer",
    "scanner": "finditer",
}
_FUNCTIONS = {"compile", *WAYS, *_SAME_AS}
_HARMLESS = {"escape", "Pattern", "Match", "error", "purge"}
_NO_USE = {"pattern", "flags", "groups", "groupindex"}
_COMPILERS = {"fnmatch", "glob", "re2", "regex", "sre_compile", "sre_parse"}
"""Modules that compile patterns, which this walk cannot see."""
_ENGINE = "apimachinery/regexp/engine.py"
"""The only module that may import re2, which is linear."""
_OF_USERS = "apiserver/control/patterns.py"
"""The module that compiles what users write: it limits lengths and knows the costs, which are compared with measured ones."""
_MATCHES_OF_PATHS = {"match", "full_match", "glob", "rglob"}
"""The methods of pathlib that compile their argument with fnmatch."""
_MAY_HAVE_PATTERNS = re.compile(
    rf"(?:import .*|from )\b(?:re|pathlib|{'|'.join(sorted(_COMPILERS))})\b",
)
_COMPREHENSIONS = (ast.GeneratorExp, ast.ListComp, ast.SetComp, ast.DictComp)
_FUNCTION = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


class Unknown(Exception):
    """The text of a pattern cannot be determined from the module."""


class Pattern(NamedTuple):
    location: str
    compiled: re.Pattern[Any]
    ways: tuple[str, ...]


def places() -> list[str]:
    """Yield every module of the packages that may contain a pattern."""
    return [
        str(path.relative_to(ROOT))
        for package in CODE
        for path in sorted((ROOT / package).rglob("*.py"))
        if path != ROOT / _OF_USERS and _MAY_HAVE_PATTERNS.search(path.read_text())
    ]


def of_file(place: str) -> Iterator[Pattern]:
    """Return the patterns of a module of the packages."""
    return of_module((ROOT / place).read_text(), place, lambda: _namespace(Path(place)))


def _namespace(place: Path) -> dict[str, Any]:
    parts = place.with_suffix("").parts
    name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
    return dict(vars(importlib.import_module(name)))


def of_module(text: str, place: str, namespace: Any) -> Iterator[Pattern]:
    """Return the patterns in a module's source; `namespace()` returns its names after import."""
    module = ast.parse(text)
    if not _imports_re(module, place):
        return
    walk = _Module(module, place, namespace())
    for node in ast.walk(module):
        if _is_re(node):
            yield from walk._patterns_at(node)


def _imports_re(module: ast.Module, place: str) -> bool:
    found = False
    for node in ast.walk(module):
        if isinstance(node, ast.ImportFrom) and not node.level:
            root = (node.module or "").split(".")[0]
            if root == "re":
                raise Unknown(f"{place}:{node.lineno}: import the module re, not its names")
            _refuse_compiler(root, node, place)
        if isinstance(node, ast.Import):
            for name in node.names:
                if name.name.startswith("re.") or (name.name == "re" and name.asname):
                    raise Unknown(f"{place}:{node.lineno}: import re by its own name")
                _refuse_compiler(name.name.split(".")[0], node, place)
                found = found or name.name == "re"
    if _imports_pathlib(module):
        _refuse_patterns_of_paths(module, place)
    return found


def _refuse_compiler(name: str, node: ast.stmt, place: str) -> None:
    if name in _COMPILERS and not (name == "re2" and place == _ENGINE):
        raise Unknown(f"{place}:{node.lineno}: {name} compiles patterns that this walk cannot see")


def _imports_pathlib(module: ast.Module) -> bool:
    return any(
        (isinstance(node, ast.ImportFrom) and node.module == "pathlib")
        or (isinstance(node, ast.Import) and any(name.name == "pathlib" for name in node.names))
        for node in ast.walk(module)
    )


def _refuse_patterns_of_paths(module: ast.Module, place: str) -> None:
    """Refuse a pattern for paths that is not constant. Constants of modules match strings by expressions that the walk sees."""
    for node in ast.walk(module):
        if not (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in _MATCHES_OF_PATHS
        ):
            continue
        receiver = node.func.value
        if isinstance(receiver, ast.Name) and (receiver.id == "re" or receiver.id.isupper()):
            continue
        names = {part.id for each in node.args for part in ast.walk(each) if isinstance(part, ast.Name)}
        if not all(name.isupper() for name in names):
            raise Unknown(f"{place}:{node.lineno}: the pattern of a path is not constant")


def _is_re(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == "re"
        and node.attr not in _HARMLESS
        and not node.attr.isupper()
    )


class _Module:
    def __init__(self, module: ast.Module, place: str, namespace: dict[str, Any]) -> None:
        self._module = module
        self._place = place
        self._namespace = namespace
        self._parents = {child: node for node in ast.walk(module) for child in ast.iter_child_nodes(node)}
        self._busy: set[tuple[ast.AST, str]] = set()

    def _patterns_at(self, node: ast.Attribute) -> Iterator[Pattern]:
        location = f"{self._place}:{node.lineno}"
        call = self._parents[node]
        if not (isinstance(call, ast.Call) and call.func is node and node.attr in _FUNCTIONS and call.args):
            raise Unknown(f"{location}: re.{node.attr} is not called")
        ways = self._uses_of(call) if node.attr == "compile" else (_SAME_AS.get(node.attr, node.attr),)
        place_of_flags = {"compile": 1, "sub": 4, "subn": 4, "split": 3}.get(node.attr, 2)
        flags = next((keyword.value for keyword in call.keywords if keyword.arg == "flags"), None)
        if flags is None and len(call.args) > place_of_flags:
            flags = call.args[place_of_flags]
        for pattern in self._values(call.args[0], location) if ways else ():
            number = self._values(flags, location)[0] if flags is not None else 0
            compiled = pattern if isinstance(pattern, re.Pattern) else re.compile(pattern, number)
            yield Pattern(location, compiled, ways)

    # --- how a compiled pattern is applied

    def _uses_of(self, call: ast.Call) -> tuple[str, ...]:
        parent = self._parents[call]
        if isinstance(parent, ast.Attribute):
            return self._uses_of_attribute(parent.attr)
        target = None
        if isinstance(parent, ast.AnnAssign):
            target = parent.target
        elif isinstance(parent, ast.Assign) and len(parent.targets) == 1:
            target = parent.targets[0]
        if not (isinstance(target, ast.Name) and target.id.startswith("_")):
            return WAYS
        found: set[str] = set()
        for node in ast.walk(self._module):
            if isinstance(node, ast.Name) and node.id == target.id and node is not target:
                user = self._parents[node]
                found.update(
                    self._uses_of_attribute(user.attr) if isinstance(user, ast.Attribute) else self._any_way()
                )
        return tuple(way for way in WAYS if way in found)

    def _any_way(self) -> set[str]:
        """Return how a private pattern that is passed to a function may be applied: in any way that the module uses."""
        attributes = {node.attr for node in ast.walk(self._module) if isinstance(node, ast.Attribute)}
        return {_SAME_AS.get(attribute, attribute) for attribute in attributes} & {*WAYS}

    def _uses_of_attribute(self, attribute: str) -> tuple[str, ...]:
        if attribute in _NO_USE:
            return ()
        way = _SAME_AS.get(attribute, attribute)
        return (way,) if way in WAYS else WAYS

    # --- what an expression can be

    def _values(self, node: ast.expr, location: str) -> list[Any]:
        inner = {
            name.id
            for part in ast.walk(node)
            if isinstance(part, ast.comprehension)
            for name in ast.walk(part.target)
            if isinstance(name, ast.Name)
        }
        free = {
            name.id
            for name in ast.walk(node)
            if isinstance(name, ast.Name) and name.id not in inner and not hasattr(builtins, name.id)
        }
        choices = {name: self._values_of_name(name, node, location) for name in sorted(free)}
        code = compile(ast.Expression(node), location, "eval")
        found = []
        for combination in itertools.product(*choices.values()):
            names = dict(zip(choices, combination, strict=True))
            try:
                found.append(eval(code, self._namespace | names))
            except Exception as problem:
                raise Unknown(f"{location}: {ast.unparse(node)}: {problem!r}") from problem
        return found

    def _values_of_name(self, name: str, node: ast.AST, location: str) -> list[Any]:
        """Return all values that a name can have at `node`."""
        scope: ast.AST | None = node
        while scope is not None:
            found = self._in_scope(name, scope, location)
            if found is not None:
                return found
            scope = self._parents.get(scope)
        if name in self._namespace:
            return [self._namespace[name]]
        raise Unknown(f"{location}: {name} is not known")

    def _in_scope(self, name: str, scope: ast.AST, location: str) -> list[Any] | None:
        if isinstance(scope, _COMPREHENSIONS):
            for part in scope.generators:
                if _binds(part.target, name):
                    return self._items(part.target, part.iter, name, location)
        if isinstance(scope, ast.For | ast.AsyncFor) and _binds(scope.target, name):
            return self._items(scope.target, scope.iter, name, location)
        if not isinstance(scope, _FUNCTION):
            return None
        if (scope, name) in self._busy:
            return []
        self._busy.add((scope, name))
        try:
            return self._local(name, scope, location)
        finally:
            self._busy.discard((scope, name))

    def _local(self, name: str, function: Any, location: str) -> list[Any] | None:
        parameters = [*function.args.posonlyargs, *function.args.args]
        every = [*parameters, *function.args.kwonlyargs]
        if name in {parameter.arg for parameter in every}:
            return self._arguments(name, function, [parameter.arg for parameter in parameters], location)
        if isinstance(function, ast.Lambda):
            return None
        bound = [self._parents[node] for node in ast.walk(function) if _assigns(node, name)]
        if not bound:
            return None
        if (
            len(bound) == 1
            and isinstance(bound[0], ast.Assign | ast.AnnAssign)
            and bound[0].value is not None
        ):
            return self._values(bound[0].value, location)
        raise Unknown(f"{location}: {name} is bound in a way that cannot be evaluated")

    def _arguments(self, name: str, function: Any, positions: list[str], location: str) -> list[Any]:
        called = getattr(function, "name", "")
        if (
            not called.startswith("_")
            or called.startswith("__")
            or isinstance(self._parents[function], ast.ClassDef)
        ):
            raise Unknown(f"{location}: {name} is an argument of a function that others may call")
        found: list[Any] = []
        for node in ast.walk(self._module):
            if not (isinstance(node, ast.Name) and node.id == called):
                continue
            call = self._parents[node]
            if not (isinstance(call, ast.Call) and call.func is node):
                raise Unknown(f"{location}: {called} is handed on, so {name} can be anything")
            found += self._argument(name, call, positions, function, location)
        if not found:
            raise Unknown(f"{location}: {called} is never called")
        return found

    def _argument(
        self, name: str, call: ast.Call, positions: list[str], function: Any, location: str
    ) -> list[Any]:
        for keyword in call.keywords:
            if keyword.arg == name:
                return self._values(keyword.value, location)
        position = positions.index(name) if name in positions else len(call.args)
        if position < len(call.args) and not any(
            isinstance(signature, ast.Starred) for signature in call.args[: position + 1]
        ):
            return self._values(call.args[position], location)
        signature = function.args
        later = [*signature.posonlyargs, *signature.args][
            len(signature.posonlyargs) + len(signature.args) - len(signature.defaults) :
        ]
        defaults = [
            *zip(later, signature.defaults, strict=True),
            *zip(signature.kwonlyargs, signature.kw_defaults, strict=True),
        ]
        for parameter, default in defaults:
            if parameter.arg == name and default is not None:
                return self._values(default, location)
        raise Unknown(f"{location}: {name} is not given in line {call.lineno}")

    def _items(self, target: ast.expr, iterated: ast.expr, name: str, location: str) -> list[Any]:
        return [
            _value_bound_to(target, name, item)
            for values in self._values(iterated, location)
            for item in values
        ]


def _binds(target: ast.expr, name: str) -> bool:
    return any(isinstance(node, ast.Name) and node.id == name for node in ast.walk(target))


def _assigns(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store)


def _value_bound_to(target: ast.expr, name: str, item: Any) -> Any:
    if isinstance(target, ast.Name):
        return item
    assert isinstance(target, ast.Tuple | ast.List)
    for part, value in zip(target.elts, item, strict=True):
        if _binds(part, name):
            return _value_bound_to(part, name, value)
    raise Unknown(name)
