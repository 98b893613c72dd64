"""The CEL expressions of an AuthenticationConfiguration, which map and validate `claims`, and validate the `user`."""

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any, Final, NamedTuple

from msgspec import Struct

from mockube.apimachinery import admission_expressions
from mockube.apimachinery.admission_expressions import ANY, BOOL, STRUCTS, BadExpression
from mockube.apimachinery.cel import types
from mockube.apimachinery.cel.ast import Call, Expr, Ident, Literal, Select
from mockube.apimachinery.cel.environment import CompiledExpression, Environment, ResultTypeError
from mockube.apimachinery.cel.schema_types import DeclaredStructs, unescape
from mockube.apimachinery.cel.validators import children
from mockube.apimachinery.cel.values import CelError, CostExceeded
from mockube.apiserver.authn.authenticators import BadToken
from mockube.apiserver.user import User

CLAIMS, USER = "claims", "user"
_USER: Final = "kubernetes.UserInfo"


@cache
def _environment(variable: str) -> Environment:
    if variable == USER:
        return Environment({USER: types.struct(_USER)}, DeclaredStructs({_USER: STRUCTS[_USER]}))
    return Environment({CLAIMS: types.map_of(types.STRING, types.ANY)})


class MapperExpression(NamedTuple):
    """An expression of a mapping or of a rule. `name` is the key of an extra; `message` is that of a rule."""

    text: str
    compiled: CompiledExpression
    name: str = ""
    message: str = ""


class Mapper(Struct, frozen=True, kw_only=True):
    """The expressions of one authenticator."""

    username: MapperExpression | None = None
    groups: MapperExpression | None = None
    uid: MapperExpression | None = None
    extra: Sequence[MapperExpression] = ()
    claim_rules: Sequence[MapperExpression] = ()
    user_rules: Sequence[MapperExpression] = ()


def compile_expression(text: str, variable: str, *, is_condition: bool) -> CompiledExpression:
    """Return an expression over `claims` or `user`, or raise BadExpression."""
    try:
        return admission_expressions.compile_expression(
            _environment(variable), text, BOOL if is_condition else ANY
        )
    except ResultTypeError as error:
        raise BadExpression("must evaluate to bool") from error


def selects(rules: Iterable[MapperExpression], field: str) -> bool:
    """Return whether an expression selects a claim."""
    return any(_is_selected(rule.compiled.expr, field) for rule in rules)


def _is_selected(expr: Expr, field: str) -> bool:
    stack, seen = [expr], set[int]()
    while stack:
        node = stack.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        match node:
            case Select(operand=Ident(name="claims")) if node.field == field:
                return True
            case Call(function="_?._", args=[Ident(name="claims"), Literal(value=value)]) if value == field:
                return True
        stack += children(node)
    return False


class _EscapedMap(dict[str, Any]):
    """A map whose keys are selected by escaped names in expressions: `a__dot__b` is a.b."""

    def __contains__(self, key: object) -> bool:
        return super().__contains__(unescape(key) if isinstance(key, str) else key)

    def __getitem__(self, key: str) -> Any:
        return super().__getitem__(unescape(key))


def values_of(claims: Any) -> Any:
    """Convert decoded JSON to values for expressions: each number is a double, as Go decodes it."""
    if isinstance(claims, dict):
        return _EscapedMap((name, values_of(value)) for name, value in claims.items())
    if isinstance(claims, list):
        return [values_of(value) for value in claims]
    return float(claims) if isinstance(claims, int) and not isinstance(claims, bool) else claims


def user_values(user: User) -> Mapping[str, Any]:
    extra = _EscapedMap((name, list(values)) for name, values in user.extra.items())
    return {"username": user.name, "uid": user.uid, "groups": list(user.groups), "extra": extra}


def evaluate(rule: MapperExpression, variable: str, value: Any) -> Any:
    try:
        return rule.compiled.program.evaluate({variable: value})[0]
    except (CelError, CostExceeded) as error:
        raise BadToken(f"expression '{rule.text}' resulted in error: {error}") from error


def check(rules: Sequence[MapperExpression], variable: str, value: Any) -> None:
    """Raise BadToken if a rule is not fulfilled; as upstream, all are evaluated first."""
    for rule, result in [(rule, evaluate(rule, variable, value)) for rule in rules]:
        if not isinstance(result, bool):
            raise BadToken("validation expression must return a boolean")
        if not result:
            raise BadToken(f"validation expression '{rule.text}' failed: {rule.message}")


def text_list(value: Any) -> Sequence[str]:
    """Return the values of an expression for groups or an extra, without empty strings."""
    if value is None:
        return ()
    values = [value] if isinstance(value, str) else value
    if not isinstance(values, list) or not all(isinstance(item, str) for item in values):
        raise BadToken("expression must return a string or a list of strings")
    return tuple(filter(None, values))
