"""CEL validation rules of custom resources: values, transition rules, and the cost budget."""

import pytest

from mockube.apimachinery.cel.language import language_of
from mockube.apimachinery.paths import ROOT
from mockube.apiserver.customresources.rules import BUDGET, rules_checker
from mockube.apiserver.kinds.apiextensions.schemas import check_schema


def spec(*rules, **properties):
    return {
        "type": "object",
        "properties": {
            "spec": {"type": "object", "x-kubernetes-validations": list(rules), "properties": properties}
        },
    }


def errors_and_warnings(schema, new, old=None):
    errors, warnings = rules_checker(schema)({"spec": new}, None if old is None else {"spec": old})
    return [*map(str, errors)], warnings


NUMBER = {"type": "integer"}


def test_schema_without_rules_has_no_checker():
    assert rules_checker(spec(n=NUMBER)) is None


def test_failed_rule_is_reported_by_rule_or_message():
    schema = spec({"rule": "self.n < 3"}, {"rule": "self.n < 4", "message": "too large"}, n=NUMBER)
    assert errors_and_warnings(schema, {"n": 2}) == ([], [])
    assert errors_and_warnings(schema, {"n": 5})[0] == [
        "spec: Invalid value: failed rule: self.n < 3",
        "spec: Invalid value: too large",
    ]


def test_rule_evaluation_error_is_reported():
    schema = spec({"rule": "self.n / self.m > 1"}, n=NUMBER, m=NUMBER)
    assert errors_and_warnings(schema, {"n": 5, "m": 0})[0] == [
        'spec: Invalid value: "object": division by zero evaluating rule: self.n / self.m > 1'
    ]


SET = {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"}
PAIR = {"type": "object", "required": ["k"], "properties": {"k": {"type": "string"}}}
MAP = {"type": "array", "items": PAIR, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]}
OBJECTS = SET | {"items": PAIR | {"x-kubernetes-map-type": "atomic"}}


@pytest.mark.parametrize(
    ("rule", "is_met"),
    [
        ("self.s == ['b', 'a']", True),
        ("self.s == ['a', 'a']", False),
        ("['a', 'a'] == self.s", False),
        ("self.s + ['b', 'c', 'c'] == ['c', 'a', 'b']", True),
        ("(self.s + ['c']) + ['a', 'd'] == ['d', 'c', 'b', 'a']", True),
        ("self.m == [self.m[1], self.m[0]]", True),
        ("self.m == [self.m[0], self.m[0]]", False),
        ("self.m + [self.m[1]] == [self.m[1], self.m[0]]", True),
    ],
)
def test_sets_and_maps_are_compared_and_joined_without_order(rule, is_met):
    schema = spec({"rule": rule}, s=SET, m=MAP)
    value = {"s": ["a", "b"], "m": [{"k": "a"}, {"k": "b"}]}
    assert errors_and_warnings(schema, value)[0] == (
        [] if is_met else [f"spec: Invalid value: failed rule: {rule}"]
    )


@pytest.mark.parametrize("rule", ["self.s == self.s", "size(self.s + self.s) > 0"])
def test_sets_of_objects_cannot_be_compared_or_joined(rule):
    problem = "listSet operations are only supported on lists of scalar values"
    assert errors_and_warnings(spec({"rule": rule}, s=OBJECTS), {"s": [{"k": "a"}]})[0] == [
        f'spec: Invalid value: "object": {problem} evaluating rule: {rule}'
    ]


NUMBERS = {"type": "array", "items": NUMBER}
NO_INTEGER = "invalid data, expected int, got float64"


@pytest.mark.parametrize(
    ("rule", "problem"),
    [
        pytest.param("self.n > 3", NO_INTEGER, id="a field"),
        pytest.param("has(self.n)", NO_INTEGER, id="has() of a field"),
        pytest.param("self.l.all(x, x > 3)", NO_INTEGER, id="an element"),
        pytest.param("self.m == self.k", NO_INTEGER, id="a value of a map"),
        pytest.param(
            "string(self.i) == ''",
            "invalid data, expected XIntOrString value to be either a string or integer",
            id="either",
        ),
        pytest.param("self.l[1] == 4 && self.f == 2.0 && self.o == 3", "", id="others"),
        pytest.param("self.l[0] == 4 || true", "", id="an error that makes no difference"),
    ],
)
def test_whole_float_is_no_integer_in_rule(rule, problem):
    values = {"type": "object", "additionalProperties": NUMBER}
    either = {"x-kubernetes-int-or-string": True}
    schema = spec(
        {"rule": rule}, n=NUMBER, l=NUMBERS, m=values, k=values, f={"type": "number"}, o=NUMBER, i=either
    )
    new = {"n": 5.0, "l": [5.0, 4], "m": {"a": 1.0}, "k": {"a": 1}, "f": 2.0, "o": 3, "i": 7.0}
    wanted = [f'spec: Invalid value: "object": {problem} evaluating rule: {rule}'] if problem else []
    assert errors_and_warnings(schema, new) == (wanted, [])


def test_rule_of_integer_fails_for_float():
    number = NUMBER | {"x-kubernetes-validations": [{"rule": "self > 3"}, {"rule": "true"}]}
    wanted = f'spec.n: Invalid value: "integer": {NO_INTEGER} evaluating rule: self > 3'
    assert errors_and_warnings(spec(n=number), {"n": 5.0}) == ([wanted], [])
    assert errors_and_warnings(spec(n=number), {"n": 5}) == ([], [])


def test_map_list_with_float_siblings_is_compared_by_keys():
    entry = {"type": "object", "required": ["k"], "properties": {"k": {"type": "string"}, "n": NUMBER}}
    keyed = {
        "type": "array",
        "items": entry,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["k"],
    }
    schema = spec({"rule": "self.l == oldSelf.l"}, l=keyed, f={"type": "number"})
    one, other = {"k": "a"}, {"k": "b"}
    assert errors_and_warnings(schema, {"l": [one, other], "f": 1.0}, {"l": [other, one]}) == ([], [])


def test_transition_rule_is_skipped_on_create():
    schema = spec({"rule": "self.n >= oldSelf.n"}, n=NUMBER)
    assert errors_and_warnings(schema, {"n": 1}) == ([], [])
    assert errors_and_warnings(schema, {"n": 1}, {"n": 2})[0] == [
        "spec: Invalid value: failed rule: self.n >= oldSelf.n"
    ]


def test_optional_old_self_is_evaluated_on_create():
    rule = {"rule": "oldSelf.hasValue() || self.n == 1", "optionalOldSelf": True}
    assert errors_and_warnings(spec(rule, n=NUMBER), {"n": 2})[0] == [
        "spec: Invalid value: failed rule: oldSelf.hasValue() || self.n == 1"
    ]
    assert errors_and_warnings(spec(rule, n=NUMBER), {"n": 2}, {"n": 1}) == ([], [])


def test_unchanged_value_that_fails_rule_is_a_warning():
    rule = {"x-kubernetes-validations": [{"rule": "self < 3"}]}
    schema = spec(n=NUMBER | rule, m=NUMBER)
    assert errors_and_warnings(schema, {"n": 5, "m": 1}, {"n": 5, "m": 0}) == (
        [],
        ["spec.n: Invalid value: 5: failed rule: self < 3"],
    )


def test_map_list_elements_are_correlated_with_old_ones():
    items = {
        "type": "object",
        "properties": {"k": {"type": "string"}, "v": NUMBER},
        "x-kubernetes-validations": [{"rule": "self.v >= oldSelf.v"}],
    }
    by_key = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]}
    schema = spec(l={"type": "array", "items": items} | by_key)
    new, old = [{"k": "b", "v": 1}, {"k": "a", "v": 1}], [{"k": "a", "v": 1}, {"k": "b", "v": 2}]
    assert errors_and_warnings(schema, {"l": new}, {"l": old})[0] == [
        "spec.l[0]: Invalid value: failed rule: self.v >= oldSelf.v"
    ]


@pytest.mark.thorough
def test_rules_stop_when_cost_budget_is_spent():
    element = {"type": "string", "x-kubernetes-validations": [{"rule": "self.matches('[a-z]*a')"}]}
    schema = spec(l={"type": "array", "items": element})
    texts = ["a" * 10_000] * (BUDGET // 2000)
    assert errors_and_warnings(schema, {"l": texts})[0] == [
        (
            f'spec.l[{BUDGET // 2003}]: Invalid value: "string": validation failed due to running out of cost budget, '
            "no further validation rules will be run"
        )
    ]


def test_one_evaluation_has_own_cost_limit():
    schema = spec({"rule": "self.l.all(a, self.l.all(b, a + b > 0))"}, l={"type": "array", "items": NUMBER})
    assert errors_and_warnings(schema, {"l": [1] * 600})[0] == [
        (
            "spec: Invalid value: \"object\": 'operation cancelled: actual cost limit exceeded': no further validation "
            "rules will be run due to call cost exceeds limit for rule: self.l.all(a, self.l.all(b, a + b > 0))"
        )
    ]


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ({"rule": "self.n"}, "cel expression must evaluate to a bool"),
        ({"rule": "uint('x')"}, "cel expression must evaluate to a bool"),
        ({"rule": "self.n > 1", "messageExpression": "1"}, "messageExpression must evaluate to a string"),
        ({"rule": "self.zz > 1"}, "undefined field 'zz'"),
        ({"rule": "self.n >"}, "Syntax error: mismatched input '<EOF>'"),
        ({"rule": "self.n > 1", "fieldPath": ".zz"}, "must be a valid path"),
        ({"rule": " "}, "rule is not specified"),
        ({"rule": "self.n > 1", "optionalOldSelf": True}, "may not be set if oldSelf is not used in rule"),
        (
            {"rule": "self.l.all(a, self.l.all(b, self.l.all(c, a != b || b != c)))"},
            "estimated rule cost exceeds budget by factor of more than 100x",
        ),
    ],
)
def test_definition_with_invalid_rule_is_refused(rule, message):
    schema = spec(rule, n=NUMBER, l={"type": "array", "items": {"type": "string"}})
    assert message in "\n".join(map(str, check_schema({"openAPIV3Schema": schema}, ROOT)))


def test_transition_rule_in_uncorrelatable_list_is_refused():
    element = {"type": "integer", "x-kubernetes-validations": [{"rule": "self >= oldSelf"}]}
    schema = spec(l={"type": "array", "maxItems": 3, "items": element})
    assert [str(error) for error in check_schema({"openAPIV3Schema": schema}, ROOT)] == [
        (
            "openAPIV3Schema.properties[spec].properties[l].items.x-kubernetes-validations[0].rule: Invalid value: "
            '"self >= oldSelf": oldSelf cannot be used on the uncorrelatable portion of the schema within '
            "openAPIV3Schema.properties[spec].properties[l]"
        )
    ]


def test_reordered_map_list_elements_are_ratcheted():
    never = {"x-kubernetes-validations": [{"rule": "false", "message": "no"}]}
    element = {"type": "object", "properties": {"k": {"type": "string"}}}
    keyed = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]}
    schema = spec(
        map={"type": "array", "items": element} | keyed | never,
        atomic={"type": "array", "items": element | never},
        open={"type": "object", "x-kubernetes-preserve-unknown-fields": True} | never,
    )
    one, other = {"k": "a"}, {"k": "b"}
    old = {"map": [one, other], "atomic": [one], "open": {"a": 1}}
    problems, warnings = errors_and_warnings(schema, old | {"map": [other, one]}, old)
    assert problems == ["spec.open: Invalid value: no"]
    assert warnings == ["spec.map: Invalid value: no", "spec.atomic[0]: Invalid value: no"]


@pytest.mark.parametrize(("minor", "is_limited"), [("1.36", False), ("1.37", True)])
def test_names_have_a_greatest_length_in_estimated_costs_since_1_37(minor, is_limited):
    rule = {"rule": "self.metadata.name.contains(self.metadata.name)"}
    schema = {"type": "object", "x-kubernetes-validations": [rule]}
    problems = [*check_schema({"openAPIV3Schema": schema}, ROOT, language_of(minor))]
    assert bool(problems) != is_limited


@pytest.mark.parametrize(
    ("minor", "problem"),
    [
        ("1.36", "invalid duration argument"),
        ("1.37", "found no matching overload for 'duration' applied to '(int)'"),
    ],
)
def test_durations_of_integers_are_unknown_since_1_37(minor, problem):
    schema = {"type": "object", "x-kubernetes-validations": [{"rule": "duration(1) == duration('1s')"}]}
    (error,) = check_schema({"openAPIV3Schema": schema}, ROOT, language_of(minor))
    assert problem in error.detail
