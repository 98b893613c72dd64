"""Evaluate the CEL rules of a schema, within one cost budget for all rules."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from msgspec import Struct, field

from mockube.apimachinery import errors, gotext
from mockube.apimachinery.cel.schema_types import DeclaredType, declare, escape
from mockube.apimachinery.cel.values import NONE, CelError, CostExceeded, Optional
from mockube.apimachinery.errors import OMITTED, ErrorType, FieldError
from mockube.apimachinery.paths import ROOT, Path
from mockube.apiserver.cel.faulty_values import InvalidValue, may_have_float_integers, with_invalid_values
from mockube.apiserver.cel.schema_values import Convert, converter
from mockube.apiserver.kinds.jsonschema.ratcheting import elements_by_keys, is_unchanged, keys_of, map_keys
from mockube.apiserver.kinds.jsonschema.rules import ValidationRule, compile_rules, rules_of
from mockube.apiserver.kinds.jsonschema.schema import Schema, properties

BUDGET: Final = 10_000_000
"""The cost limit of all rules together for one object."""
_MAX_MESSAGE_BYTES: Final = 5 * 1024
"""MaxEvaluatedMessageExpressionSizeBytes of apiserver/pkg/apis/cel/config.go."""
_NO_BUDGET: Final = (
    "validation failed due to running out of cost budget, no further validation rules will be run"
)
_SELF: Final = re.compile(r"\bself\b")
_EMBEDDED: Final = "x-kubernetes-embedded-resource"


class _OutOfBudget(Exception):
    """The budget is used up: no further rules are evaluated."""


class _Run(Struct):
    budget: int = BUDGET
    errors: list[FieldError] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    has_faults: bool = False
    """Whether values may be of other types than the schema declares."""

    def end(self, error: FieldError) -> None:
        self.errors.append(error)
        raise _OutOfBudget


class _Location(Struct, frozen=True):
    """A value, its old value if the two are correlated, and the location that contains it."""

    path: Path
    value: Any
    old: Any
    schema: Schema
    parent: "_Location | None" = None

    def is_unchanged(self) -> bool:
        """Return whether the value is unchanged; without an old value, whether the nearest correlated parent is."""
        if self.old is None:
            return self.parent is not None and self.parent.is_unchanged()
        return is_unchanged(self.schema, self.value, self.old)


class RuleNode(Struct, frozen=True):
    """The rules of a schema and its subschemas; None stands for a schema without rules."""

    kind: str
    rules: Sequence[ValidationRule]
    convert: Convert | None
    fields: Mapping[str, "RuleNode"]
    element: "RuleNode | None"
    keys: Sequence[str]
    """The keys that identify elements, if the list is a map."""
    all_of: Sequence["RuleNode"]
    schema: Schema

    def check(self, run: _Run, location: _Location) -> None:
        if location.value is None:
            return
        if self.rules:
            self._check_rules(run, location)
        for node in self.all_of:
            node.check(run, location)
        if isinstance(location.value, dict):
            self._check_members(run, location)
        elif isinstance(location.value, list) and self.element is not None:
            self._check_elements(run, location, self.element)

    def _check_members(self, run: _Run, location: _Location) -> None:
        old = location.old if isinstance(location.old, dict) else {}
        for key, value in location.value.items():
            node = self.fields.get(key) or self.element
            if node is None:
                continue
            path = location.path.child(key) if key in self.fields else location.path.key(key)
            node.check(run, _Location(path, value, old.get(key), node.schema, location))

    def _check_elements(self, run: _Run, location: _Location, node: "RuleNode") -> None:
        before = (
            elements_by_keys(location.old, self.keys) if self.keys and isinstance(location.old, list) else {}
        )
        for i, value in enumerate(location.value):
            old = before.get(keys_of(value, self.keys)) if before else None
            node.check(run, _Location(location.path.index(i), value, old, node.schema, location))

    def _check_rules(self, run: _Run, location: _Location) -> None:
        if run.budget <= 0:
            run.end(errors.invalid(location.path, self.kind, _NO_BUDGET))
        variables = _Variables(self.convert, location, has_faults=run.has_faults)
        for rule in self.rules:
            if rule.error:
                run.errors.append(
                    errors.invalid(location.path, self.kind, f"rule compile error: {rule.error}")
                )
            elif rule.compiled is not None and (
                location.old is not None or not rule.uses_old or rule.optional_old
            ):
                self._evaluate(run, location, rule, variables)

    def _evaluate(self, run: _Run, location: _Location, rule: ValidationRule, values: "_Variables") -> None:
        assert rule.compiled is not None
        try:
            variables = values.of(rule)
            holds, cost = rule.compiled.program.evaluate(variables)
        except CostExceeded as error:
            text = (
                f"'{error}': no further validation rules will be run due to call cost exceeds limit for rule"
            )
            run.end(errors.invalid(location.path, self.kind, f"{text}: {_name(rule)}"))
        except CelError as error:
            self._charge(run, location, error.cost)
            run.errors.append(errors.invalid(location.path, self.kind, _failure(error, rule)))
        else:
            self._charge(run, location, cost)
            if holds is not True:
                self._report(run, location, rule, variables)

    def _charge(self, run: _Run, location: _Location, cost: int) -> None:
        if cost > run.budget:
            run.end(errors.invalid(location.path, self.kind, _NO_BUDGET))
        run.budget -= cost

    def _report(
        self, run: _Run, location: _Location, rule: ValidationRule, variables: Mapping[str, Any]
    ) -> None:
        path = location.path if rule.path is None else location.path.child(str(rule.path))
        static_message = (rule.source.get("message") or "").strip()
        detail = static_message or f"failed rule: {_name(rule)}"
        ends = False
        if rule.message is not None:
            message, ends = _message(rule, variables, run)
            detail = message or detail
        error = _error(
            path,
            self.kind if ends else (OMITTED if self.kind in ("object", "array") else location.value),
            detail,
            "" if ends else (rule.source.get("reason") or ""),
        )
        if not rule.uses_old and location.is_unchanged():
            run.warnings.append(str(error))
        else:
            run.errors.append(error)
        if ends:
            raise _OutOfBudget


class _Variables:
    """`self` and `oldSelf` of one value, converted once for all of its rules."""

    def __init__(self, convert: Convert | None, location: _Location, *, has_faults: bool) -> None:
        self._self = convert(location.value) if convert else location.value
        if has_faults:
            self._self = with_invalid_values(location.schema, self._self)
        self._old = convert(location.old) if convert and location.old is not None else location.old

    def of(self, rule: ValidationRule) -> Mapping[str, Any]:
        """Return the variables of a rule by name; raise an error if the rule reads a value that has the wrong type."""
        if type(self._self) is InvalidValue and _SELF.search(rule.source["rule"]):
            self._self.raise_error()
        if not rule.optional_old:
            return {"self": self._self, "oldSelf": self._old}
        return {"self": self._self, "oldSelf": NONE if self._old is None else Optional(self._old)}


def _name(rule: ValidationRule) -> str:
    return str(rule.source.get("message") or rule.source.get("rule") or "").strip()


def _failure(error: CelError, rule: ValidationRule) -> str:
    if str(error).startswith("no such overload"):
        problem = "call arguments did not match a supported operator, function or macro signature for rule"
        return f"'{error}': {problem}: {_name(rule)}"
    return f"{error} evaluating rule: {_name(rule)}"


def _error(path: Path, value: Any, detail: str, reason: str) -> FieldError:
    if reason == ErrorType.FORBIDDEN.reason:
        return errors.forbidden(path, detail)
    if reason == ErrorType.REQUIRED.reason:
        return errors.required(path, detail)
    if reason == ErrorType.DUPLICATE.reason:
        return errors.duplicate(path, value)
    return errors.invalid(path, value, detail)


def _message(rule: ValidationRule, variables: Mapping[str, Any], run: _Run) -> tuple[str, bool]:
    """Return the text of a rule's message expression, "" if it fails, and whether no further rules are run."""
    assert rule.message is not None
    quoted_expression = gotext.quote(rule.source["messageExpression"])
    try:
        text, cost = rule.message.program.evaluate(variables)
    except CostExceeded:
        problem = (
            "no further validation rules will be run due to call cost exceeds limit for messageExpression"
        )
        return f"{problem}: {quoted_expression}", True
    except CelError as error:
        text, cost = "", error.cost
    if cost > run.budget:
        problem = "messageExpression evaluation failed due to running out of cost budget"
        return f"{problem}, no further validation rules will be run", True
    run.budget -= cost
    trimmed = text.strip() if isinstance(text, str) else ""
    if len(trimmed.encode(errors="replace")) > _MAX_MESSAGE_BYTES or "\n" in trimmed:
        return "", False
    return trimmed, False


RulesCheck = Callable[[Mapping[str, Any], Mapping[str, Any] | None], tuple[list[FieldError], list[str]]]
"""Returns the errors of an object, and the warnings of rules that it violates in unchanged parts."""


def rules_checker(schema: Schema) -> RulesCheck | None:
    """Return the function that evaluates the rules of a schema; None if it has none."""
    declared = declare(schema, root=True)
    node = _node(schema, schema, declared, root=True)
    if node is None:
        return None

    def check(tree: Mapping[str, Any], old: Mapping[str, Any] | None) -> tuple[list[FieldError], list[str]]:
        run = _Run(has_faults=may_have_float_integers(tree))
        with suppress(_OutOfBudget):
            node.check(run, _Location(ROOT, tree, old, schema))
        return run.errors, run.warnings

    return check


def _node(rules: Schema, schema: Schema, declared: DeclaredType | None, *, root: bool) -> RuleNode | None:
    """Return the node of a schema. Its `allOf` may contain rules for values that the schema itself declares."""
    if declared is None:
        return None
    compiled = compile_rules(rules, declared)
    fields = dict(_field_nodes(rules, schema, declared))
    element = _element_node(rules, schema, declared)
    all_of = [
        node
        for part in rules.get("allOf") or ()
        if (node := _node(part, schema, declared, root=root)) is not None
    ]
    if not compiled and not fields and element is None and not all_of:
        return None
    keys, convert = map_keys(schema), converter(schema) if compiled else None
    return RuleNode(schema.get("type", ""), compiled, convert, fields, element, keys, all_of, schema)


def _field_nodes(rules: Schema, schema: Schema, declared: DeclaredType) -> Iterator[tuple[str, RuleNode]]:
    for name, part in properties(rules).items():
        own = properties(schema).get(name)
        if own is None:
            continue
        escaped = escape(name)
        below = (
            (declared.fields or {}).get(escaped) if escaped else declare(own, root=bool(own.get(_EMBEDDED)))
        )
        node = _node(part, own, below, root=False)
        if node is not None:
            yield name, node


def _element_node(rules: Schema, schema: Schema, declared: DeclaredType) -> RuleNode | None:
    for name in ("items", "additionalProperties"):
        part, own = rules.get(name), schema.get(name)
        if isinstance(part, Mapping) and isinstance(own, Mapping) and may_contain_rules(part):
            return _node(part, own, declared.element, root=False)
    return None


def may_contain_rules(schema: Schema) -> bool:
    return bool(schema) and (
        bool(rules_of(schema)) or any(isinstance(v, (dict, list)) for v in schema.values())
    )
