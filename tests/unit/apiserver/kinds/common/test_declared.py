"""Declared rules: their errors replace those of rules by hand and come last, in the order of the fields."""

from mockube.apimachinery import errors
from mockube.apimachinery.paths import ROOT
from mockube.apiserver.kinds.common.checks import IMMUTABLE
from mockube.apiserver.kinds.common.declared import (
    NO_RULES,
    DeclaredRules,
    as_declared,
    distinct,
    forbidden,
    immutable,
    required,
    short,
    valid,
)

NAME, KIND = ROOT.child("name"), ROOT.child("kind")
RULES = DeclaredRules(immutable("name"), required("name"), valid("name"), required("items[].kind"))


def merged(*field_errors, rules=RULES, new=None, old=None):
    return [str(error) for error in rules.merge(field_errors, new or {}, old)]


def item(index, detail=""):
    return errors.required(ROOT.child("items").index(index).child("kind"), detail)


def test_declared_errors_come_last_without_detail():
    other = errors.required(KIND, "is required")
    by_hand = errors.required(NAME, "must be set")
    assert merged(by_hand, other) == ["kind: Required value: is required", "name: Required value"]


def test_errors_of_items_are_in_order_of_index():
    assert merged(item(2, "a"), item(10, "b"), item(1, "c")) == [
        f"items[{index}].kind: Required value" for index in (1, 2, 10)
    ]


def test_repeated_error_by_hand_is_one_declared_error():
    assert merged(item(0, "a"), item(0, "a")) == ["items[0].kind: Required value"]


def test_repeated_error_of_no_declared_rule_is_returned_once():
    wrong = errors.invalid(KIND, {"a": [1]}, "must be b")
    same = errors.invalid(KIND, {"a": [1]}, "must be b")
    other = errors.invalid(KIND, {"a": [2]}, "must be b")
    assert merged(wrong, other, same, rules=NO_RULES) == [str(wrong), str(other)]


def test_changed_field_is_shown_as_null_and_ends_its_other_rules():
    by_hand = errors.invalid(NAME, "B", "must be lower case"), errors.invalid(NAME, "B", IMMUTABLE)
    assert merged(*by_hand, new={"name": "B"}, old={"name": "a"}) == [
        'name: Invalid value: "B": must be lower case',
        "name: Invalid value: null: field is immutable",
    ]


def test_all_ending_rules_of_a_field_run():
    by_hand = errors.invalid(NAME, "", IMMUTABLE), errors.required(NAME, "must be set")
    assert merged(*by_hand, new={"name": ""}, old={"name": "a"}) == [
        "name: Invalid value: null: field is immutable",
        "name: Required value",
    ]


def test_unchanged_field_keeps_its_error_by_hand():
    assert merged(item(0, "a"), new={"items": [{}]}, old={"items": [{}]}) == [
        "items[0].kind: Required value: a"
    ]


def test_items_are_all_checked_if_one_of_them_changes():
    assert merged(item(0, "a"), new={"items": [{}, {}]}, old={"items": [{}]}) == [
        "items[0].kind: Required value"
    ]


def test_change_of_discriminator_runs_rule_of_member():
    rules = DeclaredRules(forbidden("spec.a", discriminator="spec.type"))
    by_hand = errors.forbidden(ROOT.child("spec", "a"), "must be nil")
    old, new = {"spec": {"type": "A", "a": {}}}, {"spec": {"type": "B", "a": {}}}
    assert merged(by_hand, rules=rules, new=new, old=old) == ["spec.a: Forbidden"]
    assert merged(by_hand, rules=rules, new=new, old=new) == ["spec.a: Forbidden: must be nil"]


def test_lengths_are_worded_as_declared():
    rules = DeclaredRules(valid("name"), short("kind"))
    long_name = errors.invalid(NAME, "a", "must be no more than 63 characters")
    assert merged(errors.too_long(KIND, 63), long_name, rules=rules) == [
        'name: Invalid value: "a": must be no more than 63 bytes',
        "kind: Too long: may not be more than 63 characters",
    ]


def test_additional_errors_are_declared_ones():
    rules = DeclaredRules(
        forbidden("name", discriminator="kind"),
        additional=lambda _new, _old: [errors.forbidden(NAME, "")],
    )
    assert merged(rules=rules) == ["name: Forbidden"]


def test_equal_errors_are_returned_once_whatever_their_values_are():
    values = ["a", 1, {"a": [1], "b": {}}, {"b": {}, "a": [1]}, ["a"], ("a",), "a", None, {"a": [2], "b": {}}]
    found = [error.value for error in distinct(errors.invalid(NAME, value, "wrong") for value in values)]
    assert found == ["a", 1, {"a": [1], "b": {}}, ["a"], None, {"a": [2], "b": {}}]


def test_errors_of_a_declared_struct_come_after_those_of_the_kind():
    (of_struct,) = as_declared([errors.required(ROOT.child("spec"))])
    by_hand = errors.required(NAME, "must be set")
    kind = errors.invalid(KIND, "a", "must be b")
    expected = [str(kind), "name: Required value", str(of_struct)]
    assert merged(of_struct, by_hand, kind) == expected
    assert merged(of_struct, kind, rules=NO_RULES) == [str(kind), str(of_struct)]
