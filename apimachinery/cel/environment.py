"""An environment: the variables and functions that expressions may use, and how they are compiled with them."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from msgspec import Struct

from mockube.apimachinery.cel import standard, types
from mockube.apimachinery.cel.ast import Expr, Ident, Select
from mockube.apimachinery.cel.checker import Checker, StructTypes
from mockube.apimachinery.cel.cost import runtime
from mockube.apimachinery.cel.cost.estimate import estimate_cost
from mockube.apimachinery.cel.cost.ranges import Range
from mockube.apimachinery.cel.declarations import Functions, merge
from mockube.apimachinery.cel.language import WHOLE, Language
from mockube.apimachinery.cel.lexer import tokenize
from mockube.apimachinery.cel.libraries import LIBRARIES
from mockube.apimachinery.cel.macros import MACROS, Macros
from mockube.apimachinery.cel.parser import MAX_DEPTH, Parser, TooDeep, UnexpectedToken
from mockube.apimachinery.cel.program import Program, plan
from mockube.apimachinery.cel.recovery import syntax_errors
from mockube.apimachinery.cel.schema_types import DeclaredStructs
from mockube.apimachinery.cel.source import NOWHERE, Issue, Issues, Source
from mockube.apimachinery.cel.types import Type
from mockube.apimachinery.cel.validators import children, validate

MAX_CODE_POINTS: Final = 100_000
_A, _B = types.type_parameter("A"), types.type_parameter("B")
TYPE_NAMES: Final[Mapping[str, Type]] = {
    name: types.type_of(type_)
    for name, type_ in {
        **{type_.name: type_ for type_ in (types.BOOL, types.BYTES, types.DOUBLE, types.DURATION, types.INT)},
        **{type_.name: type_ for type_ in (types.NULL, types.STRING, types.TIMESTAMP, types.UINT)},
        "list": types.list_of(_A),
        "map": types.map_of(_A, _B),
        "type": Type("type", "type"),
        "optional_type": types.optional_of(types.type_parameter("V")),
        "net.IP": types.opaque("net.IP"),
        "net.CIDR": types.opaque("net.CIDR"),
    }.items()
}
"""The types that expressions can name."""
_DECLARED_NAMES = {"duration": types.type_of(types.DURATION), "timestamp": types.type_of(types.TIMESTAMP)}
"""Further ones, where a schema declares types."""


class Library:
    """Functions that are added to those that every expression has."""

    def __init__(
        self,
        declared: Functions,
        functions: Mapping[str, Callable[..., Any]],
        singletons: Mapping[str, Callable[..., Any]] | None = None,
    ) -> None:
        """`singletons` are functions that look at their arguments themselves, in the place of those of the same name."""
        self.DECLARED = declared
        self.FUNCTIONS = functions
        self.SINGLETONS = singletons or {}


class _Implementation:
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


class CompiledExpression(Struct, frozen=True):
    """A checked expression and its program."""

    expr: Expr
    program: Program

    @property
    def type(self) -> Type:
        return self.expr.type

    def uses(self, variable: str) -> bool:
        return variable in variables_of(self.expr)

    def cost(self, sizes: Callable[[tuple[str, ...]], Range | None] = lambda _: None) -> Range:
        """Return the least and the most that an evaluation may cost."""
        return estimate_cost(self.expr, sizes)


class ResultTypeError(Exception):
    """An expression has a value of a type that is not accepted."""

    def __init__(self, type_: Type) -> None:
        super().__init__(str(type_))
        self.type = type_


class Environment:
    """Compiles expressions over variables with types. Structs are those that a schema declared."""

    def __init__(
        self,
        variables: Mapping[str, Type],
        structs: StructTypes | None = None,
        libraries: tuple[Library, ...] = (),
        macros: Macros = MACROS,
        language: Language = WHOLE,
    ) -> None:
        self.variables = {**TYPE_NAMES, **(_DECLARED_NAMES if structs else {}), **variables}
        for name in language.types:
            self.variables.pop(name, None)
        self.structs = structs or DeclaredStructs()
        self._macros = language.macros_of(macros)
        self._implementation = _Implementation(*LIBRARIES, *libraries) if libraries else _BASE
        self._declared = language.functions_of(self._implementation.declarations)
        self._checks_literals = language.checks_literals

    def check(self, text: str) -> Expr:
        """Return the checked expression, or raise Issues."""
        source = Source(text)
        expr = parse(source, self._macros)
        checker = Checker(self.variables, self._declared, self.structs)
        try:
            checker.check(expr)
            checker.finish()
            issues = checker.issues or validate(expr, checks_literals=self._checks_literals)
        except RecursionError:
            raise Issues(source, [_too_deep()]) from None
        if issues:
            raise Issues(source, issues)
        return expr

    def compile(self, text: str, accepts: Callable[[Type], bool] | None = None) -> CompiledExpression:
        """Return the expression ready to be evaluated, or raise Issues, ResultTypeError or ProgramError."""
        expr = self.check(text)
        if accepts is not None and not accepts(expr.type):
            raise ResultTypeError(expr.type)
        return CompiledExpression(expr, plan(expr, self._implementation))


def _too_deep() -> Issue:
    return Issue(NOWHERE, f"expression recursion limit exceeded: {MAX_DEPTH}")


def parse(source: Source, macros: Macros = MACROS) -> Expr:
    """Return the expression with its macros expanded, or raise Issues."""
    if len(source.text) > MAX_CODE_POINTS:
        size = f"size: {len(source.text)}, limit {MAX_CODE_POINTS}"
        raise Issues(source, [Issue(NOWHERE, f"expression code point size exceeds limit: {size}")])
    tokens, issues = tokenize(source.text)
    parser = Parser(tokens, macros)
    try:
        expr = parser.parse()
    except UnexpectedToken:
        issues = [*issues, *syntax_errors(source.text, tokens), *parser.issues]
    except (TooDeep, RecursionError):
        issues = [*issues, _too_deep()]
    else:
        if not issues and not parser.issues:
            return expr
        issues = [*issues, *parser.issues]
    raise Issues(source, issues)


def variables_of(expr: Expr) -> set[str]:
    """Return the names of the variables in an expression, including those of its own loops."""
    names: set[str] = set()
    seen: set[int] = set()
    stack = [expr]
    while stack:
        node = stack.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, Ident):
            names.add(node.name)
        elif isinstance(node, Select) and node.resolved is not None:
            names.add(node.resolved)
            continue
        stack += children(node)
    return names
