"""Match conditions of an authorization webhook: expressions over a SubjectAccessReview's spec; all must be true."""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Final

from msgspec import Struct

from mockube.apimachinery import errors
from mockube.apimachinery.admission_expressions import BOOL, BadExpression, compile_expression
from mockube.apimachinery.cel import types
from mockube.apimachinery.cel.environment import CompiledExpression, Environment, ResultTypeError
from mockube.apimachinery.cel.schema_types import DeclaredStructs
from mockube.apimachinery.cel.types import Type
from mockube.apimachinery.cel.values import CelError, CostExceeded
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.paths import Path

MAX_CONDITIONS: Final = 64
"""As upstream (apiserver/pkg/apis/apiserver/validation/validation.go)."""
_STRINGS: Final = types.list_of(types.STRING)


def _string_fields(*names: str) -> dict[str, Type]:
    return dict.fromkeys(names, types.STRING)


_SELECTOR: Final = {
    "rawSelector": types.STRING,
    "requirements": types.list_of(types.struct("kubernetes.SelectorRequirement")),
}
_STRUCTS: Final[Mapping[str, Mapping[str, Type]]] = {
    "kubernetes.SubjectAccessReviewSpec": {
        "resourceAttributes": types.struct("kubernetes.ResourceAttributes"),
        "nonResourceAttributes": types.struct("kubernetes.NonResourceAttributes"),
        **_string_fields("user", "uid"),
        "groups": _STRINGS,
        "extra": types.map_of(types.STRING, _STRINGS),
    },
    "kubernetes.ResourceAttributes": {
        **_string_fields("namespace", "verb", "group", "version", "resource", "subresource", "name"),
        "fieldSelector": types.struct("kubernetes.FieldSelectorAttributes"),
        "labelSelector": types.struct("kubernetes.LabelSelectorAttributes"),
    },
    "kubernetes.NonResourceAttributes": _string_fields("path", "verb"),
    "kubernetes.FieldSelectorAttributes": _SELECTOR,
    "kubernetes.LabelSelectorAttributes": _SELECTOR,
    "kubernetes.SelectorRequirement": {**_string_fields("key", "operator"), "values": _STRINGS},
}


class AuthorizerConditionsFailed(Exception):
    """Conditions that could not be evaluated; the message contains all their errors."""


@cache
def _environment() -> Environment:
    request = {"request": types.struct("kubernetes.SubjectAccessReviewSpec")}
    return Environment(request, DeclaredStructs(_STRUCTS))


class Conditions(Struct, frozen=True):
    expressions: Sequence[tuple[str, CompiledExpression]]

    def hold(self, spec: Mapping[str, Any]) -> bool:
        """Return whether all conditions are true; a false condition takes precedence over errors of others."""
        problems = []
        for text, compiled in self.expressions:
            try:
                if compiled.program.evaluate({"request": spec})[0] is False:
                    return False
            except (CelError, CostExceeded) as error:
                problems.append(f"cel evaluation error: expression '{text}' resulted in error: {error}")
        if problems:
            raise AuthorizerConditionsFailed(errors.aggregate(problems))
        return True


def compile_conditions(texts: Sequence[str], path: Path) -> tuple[Conditions | None, list[FieldError]]:
    """Return the conditions (None if there are none), and their errors."""
    root = path.child("matchConditions")
    if len(texts) > MAX_CONDITIONS:
        return None, [errors.too_many(root, len(texts), MAX_CONDITIONS)]
    expressions, problems = dict[str, CompiledExpression](), list[FieldError]()
    seen = set[str]()
    for index, text in enumerate(texts):
        field_path = root.index(index).child("expression")
        if not text.strip():
            problems.append(errors.required(field_path))
        elif text in seen:
            problems.append(errors.duplicate(field_path, text))
        else:
            seen.add(text)
            try:
                expressions[text] = _compile(text)
            except BadExpression as error:
                problems.append(error.field_error(field_path, text))
    return (Conditions([*expressions.items()]) if expressions else None), problems


def _compile(text: str) -> CompiledExpression:
    try:
        return compile_expression(_environment(), text, BOOL)
    except ResultTypeError as error:
        raise BadExpression(f"must evaluate to bool but got {error.type.declared_name()}") from error
