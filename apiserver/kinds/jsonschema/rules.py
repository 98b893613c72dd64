"""The compiled CEL rules of a schema, with their worst-case costs."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from mockube.apimachinery.cel import types
from mockube.apimachinery.cel.environment import CompiledExpression, Environment, ResultTypeError
from mockube.apimachinery.cel.language import FULL_LANGUAGE, Language
from mockube.apimachinery.cel.program import ProgramError
from mockube.apimachinery.cel.schema_types import (
    MAX_REQUEST_BYTES,
    DeclaredStructs,
    DeclaredType,
    name_structs,
    sizes_of,
)
from mockube.apimachinery.cel.source import Issues
from mockube.apimachinery.paths import ROOT, Path
from mockube.apiserver.cel.cost_estimate import estimate_cost

from .schema import RULES, Schema, properties

_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_ESCAPED: Final = {**{char: char for char in "'\\"}, **dict(zip("abfnrtv", "\a\b\f\n\r\t\v", strict=True))}
_STEP = re.compile(r"\.([^.\[\]]+)|\['((?:[^'\\]|\\.)*)'\]", re.DOTALL)


class ValidationRule(Struct, frozen=True):
    """One rule of a schema. A rule that does not compile has an error instead of a program."""

    source: Mapping[str, Any]
    compiled: CompiledExpression | None = None
    error: str = ""
    uses_old: bool = False
    cost: int = 0
    message: CompiledExpression | None = None
    message_error: str = ""
    message_cost: int = 0
    path: Path | None = None
    """The field that errors report, relative to the value."""

    @property
    def optional_old(self) -> bool:
        return bool(self.source.get("optionalOldSelf"))


def rules_of(schema: Schema) -> Sequence[Mapping[str, Any]]:
    return schema.get(RULES) or ()


def compile_rules(
    schema: Schema, declared: DeclaredType, language: Language = FULL_LANGUAGE
) -> list[ValidationRule]:
    """Compile the rules of a schema, not those of schemas within it."""
    declared, structs = name_structs(declared, "selfType")
    struct_types = DeclaredStructs(structs)
    environments: dict[bool, Environment] = {}
    compiled_rules: list[ValidationRule] = []
    for source in rules_of(schema):
        optional_old = bool(source.get("optionalOldSelf"))
        if optional_old not in environments:
            old = types.optional_of(declared.type) if optional_old else declared.type
            variables = {"self": declared.type, "oldSelf": old}
            environments[optional_old] = Environment(variables, struct_types, language=language)
        compiled_rules.append(_compile(source, environments[optional_old], declared, schema))
    return compiled_rules


def _compile(
    source: Mapping[str, Any], environment: Environment, declared: DeclaredType, schema: Schema
) -> ValidationRule:
    text = source.get("rule", "")
    if not text.strip():
        return ValidationRule(source)
    compiled, error = _compile_rule(environment, text, "bool", "")
    if compiled is None:
        return ValidationRule(source, error=error)
    cost = estimate_cost(compiled.expr, lambda path: sizes_of(declared, path)).high
    uses_old = compiled.uses("oldSelf")
    rule = ValidationRule(source, compiled, uses_old=uses_old, cost=cost, path=_field_path(source, schema))
    if not source.get("messageExpression"):
        return rule
    message, error = _compile_rule(environment, source["messageExpression"], "string", "messageExpression ")
    if message is None:
        return ValidationRule(source, compiled, uses_old=uses_old, cost=cost, message_error=error)
    message_cost = estimate_cost(message.expr, lambda path: sizes_of(declared, path)).high
    return ValidationRule(source, compiled, "", uses_old, cost, message, "", message_cost, rule.path)


def _compile_rule(
    environment: Environment, text: str, result_type: str, prefix: str
) -> tuple[CompiledExpression | None, str]:
    try:
        return environment.compile(text, lambda type_: type_.kind == result_type), ""
    except Issues as issues:
        return None, f"{prefix}compilation failed: {issues}"
    except ResultTypeError:
        must = "must evaluate to a"
        return None, f"{prefix}{must} string" if prefix else f"cel expression {must} bool"
    except ProgramError as error:
        kind = "program" if not prefix else "messageExpression"
        return None, f"{kind} instantiation failed: {error}"


def max_cardinality(declared: DeclaredType) -> int:
    """Return the maximum number of values of the type in a request."""
    return MAX_REQUEST_BYTES // (declared.min_size + 1)


def _field_path(source: Mapping[str, Any], schema: Schema) -> Path | None:
    text = source.get("fieldPath", "")
    return field_path(text, schema) if text else None


def field_path(text: str, schema: Schema) -> Path | None:
    """Return a JSON path such as `.a['b']` as a path, or None if the schema has no such field."""
    path, position = ROOT, 0
    current: Schema | None = schema
    while position < len(text):
        match = _STEP.match(text, position)
        if match is None or current is None:
            return None
        name = match[1] if match[1] is not None else _unescape(match[2])
        additional = current.get("additionalProperties")
        if name is None:
            return None
        if properties(current):
            path, current = path.child(name), properties(current).get(name)
        elif isinstance(additional, Mapping):
            path, current = path.key(name), additional
        else:
            return None
        if current is None:
            return None
        position = match.end()
    return path


def _unescape(text: str) -> str | None:
    if any(char not in _ESCAPED for char in _ESCAPE.findall(text)):
        return None
    return _ESCAPE.sub(lambda match: _ESCAPED[match[1]], text)
