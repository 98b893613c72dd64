"""An environment: the variables and functions of expressions, which it checks and compiles."""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Final

from msgspec import Struct

from . import messages, standard, types
from .ast import Expr, Ident, Select
from .checker import Checker, StructTypes
from .cost import runtime
from .declarations import Functions, merge
from .language import FULL_LANGUAGE, Language
from .lexer import tokenize
from .libraries import LIBRARIES
from .macros import MACROS, Macros
from .parser import MAX_DEPTH, Parser, TooDeep, UnexpectedToken
from .program import Program, plan
from .recovery import syntax_errors
from .schema_types import DeclaredStructs
from .source import NO_LOCATION, Issue, Issues, Source
from .types import Type
from .validators import children, validate

MAX_CODE_POINTS: Final = 100_000
"""The limit of cel-go's parser (parser/parser.go)."""
_TYPE_A, _TYPE_B = types.type_parameter("A"), types.type_parameter("B")
TYPE_NAMES: Final[Mapping[str, Type]] = {
    name: types.type_of(type_)
    for name, type_ in {
        **{type_.name: type_ for type_ in (types.BOOL, types.BYTES, types.DOUBLE, types.DURATION, types.INT)},
        **{type_.name: type_ for type_ in (types.NULL, types.STRING, types.TIMESTAMP, types.UINT)},
        "list": types.list_of(_TYPE_A),
        "map": types.map_of(_TYPE_A, _TYPE_B),
        "type": Type("type", "type"),
        "optional_type": types.optional_of(types.type_parameter("V")),
        **messages.TYPES,
        "net.IP": types.opaque("net.IP"),
        "net.CIDR": types.opaque("net.CIDR"),
    }.items()
}
"""The types that expressions can name."""
_DECLARED_NAMES = {"duration": types.type_of(types.DURATION), "timestamp": types.type_of(types.TIMESTAMP)}
"""Types that expressions can name in addition if structs are declared."""


class Library:
    """Functions in addition to those of every expression."""

    def __init__(
        self,
        declarations: Functions,
        functions: Mapping[str, Callable[..., Any]],
        singletons: Mapping[str, Callable[..., Any]] | None = None,
    ) -> None:
        """Create a library; `singletons` replace functions of the same name and dispatch on their arguments themselves."""
        self.DECLARED = declarations
        self.FUNCTIONS = functions
        self.SINGLETONS = singletons or {}


class _Implementation:
    """The standard library and other libraries, with their costs."""

    def __init__(self, *libraries: Any) -> None:
        self.declarations = merge(standard.DECLARED, *(library.DECLARED for library in libraries))
        self.functions: dict[str, Callable[..., Any]] = dict(standard.FUNCTIONS)
        self.singletons: dict[str, Callable[..., Any]] = dict(standard.SINGLETONS)
        for library in libraries:
            self.functions.update(library.FUNCTIONS)
            self.singletons |= getattr(library, "SINGLETONS", {})

    def call_cost(self, function: str, overload: str) -> runtime.CallCost:
        return runtime.call_cost(function, overload)


_BASE = _Implementation(*LIBRARIES)


@cache
def _base_functions(language: Language) -> Functions:
    return language.functions_of(_BASE.declarations)


class CompiledExpression(Struct, frozen=True):
    """A checked expression and its program."""

    expr: Expr
    program: Program

    @property
    def type(self) -> Type:
        return self.expr.type

    def uses(self, variable: str) -> bool:
        return variable in variables_of(self.expr)


class ResultTypeError(Exception):
    """The expression has a result type that is not accepted."""

    def __init__(self, type_: Type) -> None:
        super().__init__(str(type_))
        self.type = type_


class Environment:
    """A compiler of expressions with typed variables. `structs` are those that a schema declares."""

    def __init__(
        self,
        variables: Mapping[str, Type],
        structs: StructTypes | None = None,
        libraries: tuple[Library, ...] = (),
        macros: Macros = MACROS,
        language: Language = FULL_LANGUAGE,
    ) -> None:
        self.variables = {**TYPE_NAMES, **(_DECLARED_NAMES if structs else {}), **variables}
        for name in language.types:
            self.variables.pop(name, None)
        self.structs = structs or DeclaredStructs()
        self._macros = language.macros_of(macros)
        self._implementation = _Implementation(*LIBRARIES, *libraries) if libraries else _BASE
        self._functions = (
            language.functions_of(self._implementation.declarations)
            if libraries
            else _base_functions(language)
        )
        self._checks_literals = language.checks_literals

    def check(self, text: str) -> Expr:
        """Parse, check and validate an expression; raise Issues if it is invalid."""
        source = Source(text)
        expr = parse(source, self._macros)
        checker = Checker(self.variables, self._functions, self.structs)
        try:
            checker.check(expr)
            checker.finish()
            issues = checker.issues or validate(expr, checks_literals=self._checks_literals)
        except RecursionError:
            raise Issues(source, [_recursion_limit_issue()]) from None
        if issues:
            raise Issues(source, issues)
        return expr

    def compile(self, text: str, accepts: Callable[[Type], bool] | None = None) -> CompiledExpression:
        """Return the compiled expression; raise Issues, ResultTypeError or ProgramError if it is invalid."""
        expr = self.check(text)
        if accepts is not None and not accepts(expr.type):
            raise ResultTypeError(expr.type)
        return CompiledExpression(expr, plan(expr, self._implementation))


def _recursion_limit_issue() -> Issue:
    return Issue(NO_LOCATION, f"expression recursion limit exceeded: {MAX_DEPTH}")


def parse(source: Source, macros: Macros = MACROS) -> Expr:
    """Parse an expression and expand its macros; raise Issues if it is invalid."""
    if len(source.text) > MAX_CODE_POINTS:
        size = f"size: {len(source.text)}, limit {MAX_CODE_POINTS}"
        raise Issues(source, [Issue(NO_LOCATION, f"expression code point size exceeds limit: {size}")])
    tokens, issues = tokenize(source.text)
    parser = Parser(tokens, macros)
    try:
        expr = parser.parse()
    except UnexpectedToken:
        issues = [*issues, *syntax_errors(source.text, tokens), *parser.issues]
    except (TooDeep, RecursionError):
        issues = [*issues, _recursion_limit_issue()]
    else:
        if not issues and not parser.issues:
            return expr
        issues = [*issues, *parser.issues]
    raise Issues(source, issues)


def variables_of(expr: Expr) -> set[str]:
    """Return the names of the variables in an expression, including those of comprehensions."""
    names: set[str] = set()
    visited: set[int] = set()
    stack = [expr]
    while stack:
        node = stack.pop()
        if id(node) in visited:
            continue
        visited.add(id(node))
        if isinstance(node, Ident):
            names.add(node.name)
        elif isinstance(node, Select) and node.resolved is not None:
            names.add(node.resolved)
            continue
        stack += children(node)
    return names
