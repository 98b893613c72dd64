"""Checks of the CEL rules in a definition's schemas: they have to compile, and their estimated cost is limited."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from msgspec import Struct, field

from mockube.apimachinery import errors
from mockube.apimachinery.cel.cost.ranges import MAX_UINT64
from mockube.apimachinery.cel.language import FULL_LANGUAGE, Language
from mockube.apimachinery.cel.schema_types import DeclaredType, declare, escape
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.paths import Path
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apiserver.kinds.jsonschema.rules import (
    ValidationRule,
    compile_rules,
    field_path,
    max_cardinality,
)
from mockube.apiserver.kinds.jsonschema.schema import LIST_TYPE, RULES

RULE_LIMIT: Final = 10_000_000
"""The maximum estimated cost of one rule for all its values."""
DEFINITION_LIMIT: Final = 100_000_000
_REASONS: Final = (
    "FieldValueDuplicate",
    "FieldValueForbidden",
    "FieldValueInvalid",
    "FieldValueRequired",
)
_NEWLINES = re.compile(r"[\n\r]+")
_EMBEDDED: Final = "x-kubernetes-embedded-resource"


class TotalCost(Struct):
    """The estimated cost of all rules of a schema, and the paths of the expensive ones."""

    total: int = 0
    expensive: list[tuple[int, Path]] = field(default_factory=list)

    def add(self, path: Path, cost: int) -> None:
        self.total = min(self.total + cost, MAX_UINT64)
        if cost >= DEFINITION_LIMIT // 100:
            self.expensive.append((cost, path))

    def check(self, path: Path) -> Iterator[FieldError]:
        if self.total <= DEFINITION_LIMIT:
            return
        reason = "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema"
        for _, rule_path in sorted(self.expensive, key=lambda entry: -entry[0])[:4]:
            yield errors.forbidden(rule_path, reason)
        name = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema"
        yield errors.forbidden(path, _too_expensive(name, self.total, DEFINITION_LIMIT))


class RuleContext(Struct):
    """The context of a schema: its declared type, the number of its values, and whether they have old values."""

    schema: ReadOnlyTree
    total: TotalCost
    declared: DeclaredType | None = None
    """None unless this schema or an enclosing one has rules."""
    cardinality: int | None = 1
    """The maximum number of values, or None if there is no maximum."""
    uncorrelatable: Path | None = None
    """The list whose elements cannot be matched with old elements."""
    root: bool = False
    language: Language = FULL_LANGUAGE

    def type(self) -> DeclaredType | None:
        if self.declared is None:
            self.declared = declare(
                self.schema,
                root=self.root or bool(self.schema.get(_EMBEDDED)),
                limits_names=self.language.limits_names,
            )
        return self.declared

    def property(self, name: str, schema: ReadOnlyTree) -> "RuleContext":
        escaped = escape(name)
        fields = (self.declared.fields or {}) if self.declared else {}
        return self._child(schema, fields.get(escaped) if escaped else None)

    def element(self, schema: ReadOnlyTree, path: Path) -> "RuleContext":
        """Return the context of a list's elements, or of a map's values."""
        child = self._child(schema, self.declared.element if self.declared else None)
        if self.schema.get("items") is schema and self.schema.get(LIST_TYPE) != "map":
            child.uncorrelatable = child.uncorrelatable or path
        return child

    def _child(self, schema: ReadOnlyTree, declared: DeclaredType | None) -> "RuleContext":
        max_elements = _max_elements(self.schema)
        bounded = self.cardinality is not None and max_elements is not None
        cardinality = min(self.cardinality * max_elements, MAX_UINT64) if bounded else None  # type: ignore[operator]
        return RuleContext(
            schema, self.total, declared, cardinality, self.uncorrelatable, language=self.language
        )


def _max_elements(schema: ReadOnlyTree) -> int | None:
    limit: int | None = 1
    if schema.get("type") == "array":
        limit = schema.get("maxItems")
    elif schema.get("type") == "object" and schema.get("additionalProperties") is not None:
        limit = schema.get("maxProperties")
    return max(limit, 0) if limit is not None else None


def check_rule_fields(schema: ReadOnlyTree, path: Path) -> Iterator[FieldError]:
    """Refuse rules with missing or invalid fields."""
    for index, rule in enumerate(schema.get(RULES) or ()):
        rule_path = path.child(RULES).index(index)
        yield from _check_texts(rule, rule_path)
        if rule.get("messageExpression") and not rule["messageExpression"].strip():
            detail = "messageExpression must be non-empty if specified"
            yield errors.required(rule_path.child("messageExpression"), detail)
        if rule.get("reason") is not None and rule["reason"] not in _REASONS:
            yield errors.not_supported(rule_path.child("reason"), rule["reason"], _REASONS)
        yield from _check_field_path(rule.get("fieldPath") or "", schema, rule_path.child("fieldPath"))


def _check_texts(rule: Mapping[str, Any], path: Path) -> Iterator[FieldError]:
    text, message = (rule.get("rule") or "").strip(), rule.get("message") or ""
    if not text:
        yield errors.required(path.child("rule"), "rule is not specified")
    elif message and not message.strip():
        yield errors.invalid(path.child("message"), message, "must be non-empty if specified")
    elif _NEWLINES.search(message.strip()):
        yield errors.invalid(path.child("message"), message, "must not contain line breaks")
    elif _NEWLINES.search(text) and not message.strip():
        yield errors.required(path.child("message"), "message must be specified if rule contains line breaks")


def _check_field_path(text: str, schema: ReadOnlyTree, path: Path) -> Iterator[FieldError]:
    if not text:
        return
    if not text.strip():
        yield errors.invalid(path, text, "must be non-empty if specified")
    if _NEWLINES.search(text):
        yield errors.invalid(path, text, "must not contain line breaks")
    if field_path(text, schema) is None:
        yield errors.invalid(path, text, "must be a valid path")


def check_rules(context: RuleContext, path: Path) -> Iterator[FieldError]:
    """Refuse rules that do not compile or whose estimated cost is too high."""
    declared = context.type()
    rules_path = path.child(RULES)
    if declared is None:
        problem = "unable to convert structural schema to CEL declarations"
        reason = "failed to construct type information for x-kubernetes-validations rules"
        yield errors.internal(rules_path, f"internal error: {reason}: {problem}")
        return
    for index, rule in enumerate(compile_rules(context.schema, declared, context.language)):
        yield from _check_rule(rule, context, declared, rules_path.index(index))


def _check_rule(
    rule: ValidationRule, context: RuleContext, declared: DeclaredType, path: Path
) -> Iterator[FieldError]:
    times = context.cardinality if context.cardinality is not None else max_cardinality(declared)
    yield from _check_cost(
        "estimated rule cost", min(rule.cost * times, MAX_UINT64), context, path.child("rule")
    )
    if rule.error:
        yield errors.invalid(path.child("rule"), _validation_rule(rule.source), rule.error)
    if rule.message_error:
        yield errors.invalid(
            path.child("messageExpression"), _validation_rule(rule.source), rule.message_error
        )
    elif rule.message is not None:
        name = "estimated messageExpression cost"
        yield from _check_cost(name, rule.message_cost, context, path.child("messageExpression"))
    if rule.uses_old and context.uncorrelatable is not None:
        detail = "oldSelf cannot be used on the uncorrelatable portion of the schema within"
        yield errors.invalid(
            path.child("rule"), rule.source.get("rule"), f"{detail} {context.uncorrelatable}"
        )
    if not rule.uses_old and rule.source.get("optionalOldSelf") is not None:
        value = rule.source["optionalOldSelf"]
        detail = "may not be set if oldSelf is not used in rule"
        yield errors.invalid(path.child("optionalOldSelf"), value, detail)


def _check_cost(name: str, cost: int, context: RuleContext, path: Path) -> Iterator[FieldError]:
    context.total.add(path, cost)
    if cost > RULE_LIMIT:
        yield errors.forbidden(path, _too_expensive(name, cost, RULE_LIMIT))


def _too_expensive(name: str, cost: int, limit: int) -> str:
    factor = cost / limit
    factor_text = "more than 100" if factor > 100 else f"{factor:.6f}" if factor < 1.5 else f"{factor:.1f}"
    return (
        f"{name} exceeds budget by factor of {factor_text}x (try simplifying the rule, or adding "
        "maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)"
    )


def _validation_rule(rule: Mapping[str, Any]) -> dict[str, Any]:
    """Return a rule with the field names of upstream's struct, for messages."""
    return {
        "Rule": rule.get("rule") or "",
        "Message": rule.get("message") or "",
        "MessageExpression": rule.get("messageExpression") or "",
        "Reason": rule.get("reason"),
        "FieldPath": rule.get("fieldPath") or "",
        "OptionalOldSelf": rule.get("optionalOldSelf"),
    }
