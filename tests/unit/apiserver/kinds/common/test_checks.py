"""The building blocks of validation rules: which fields each one reads, and the order of errors."""

import pytest

from mockube.apimachinery.paths import ROOT
from mockube.apiserver.kinds.common.checks import (
    all_of,
    each_item,
    field,
    optional,
    pointer,
    require,
    require_that,
)

REFUSE = require_that(lambda _value: False, "no")
NOT_ONE = require_that(lambda value: value != 1, "one")

GONE = object()
"""The field is absent."""


def errors_of(check, value):
    return [str(error) for error in check(value, ROOT)]


@pytest.mark.parametrize(
    ("way", "value", "errors"),
    [
        (optional("x", REFUSE), GONE, []),
        (optional("x", REFUSE), None, []),
        (optional("x", REFUSE), "", []),
        (optional("x", REFUSE), "a", ['x: Invalid value: "a": no']),
        (pointer("x", REFUSE), GONE, []),
        (pointer("x", REFUSE), None, []),
        (pointer("x", REFUSE), "", ['x: Invalid value: "": no']),
        (require("x", REFUSE), GONE, ["x: Required value"]),
        (require("x", REFUSE), "", ["x: Required value"]),
        (require("x", REFUSE, detail="it is"), None, ["x: Required value: it is"]),
        (require("x", REFUSE), "a", ['x: Invalid value: "a": no']),
        (field("x", NOT_ONE), GONE, []),
        (field("x", NOT_ONE), 0, []),
        (field("x", NOT_ONE), 1, ["x: Invalid value: 1: one"]),
        (field("x", REFUSE, absent=0), GONE, ["x: Invalid value: 0: no"]),
        (field("x", REFUSE, absent=0), "", ['x: Invalid value: "": no']),
    ],
)
def test_field_rules_handle_every_presence(way, value, errors):
    assert errors_of(way, {} if value is GONE else {"x": value}) == errors


def test_rules_of_value_and_fields_keep_order():
    check = all_of(
        require("a"),
        require_that(lambda tree: len(tree) > 1, "small"),
        all_of(pointer("b", REFUSE), require("c")),
    )
    assert errors_of(check, {"b": 0}) == [
        "a: Required value",
        '<nil>: Invalid value: {"b":0}: small',
        "b: Invalid value: 0: no",
        "c: Required value",
    ]


def test_field_paths_include_list_indexes():
    check = require("list", each_item(all_of(require("name"), optional("port", REFUSE))))
    assert errors_of(check, {"list": [{"name": "a"}, {"port": 1}]}) == [
        "list[1].name: Required value",
        "list[1].port: Invalid value: 1: no",
    ]
