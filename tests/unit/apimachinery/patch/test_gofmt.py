import pytest

from mockube.apimachinery.patch import gofmt

TREE = {"b": [1, 2.5, "x", None], "a": {"c": True}}


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "<nil>"),
        ("x", "x"),
        (True, "true"),
        (1_000_000.0, "1e+06"),
        (2**63 - 1, "9223372036854775807"),
        (2**63, "9.223372036854776e+18"),
        ({}, "map[]"),
        (TREE, "map[a:map[c:true] b:[1 2.5 x <nil>]]"),
    ],
)
def test_plain_values_are_printed_as_go_does(value, text):
    assert gofmt.format_verb_v(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "interface {}(nil)"),
        ("x", '"x"'),
        (5, "5"),
        ([], "[]interface {}{}"),
        (
            TREE,
            (
                'map[string]interface {}{"a":map[string]interface {}{"c":true}, '
                '"b":[]interface {}{1, 2.5, "x", interface {}(nil)}}'
            ),
        ),
    ],
)
def test_go_syntax_is_printed(value, text):
    assert gofmt.format_go_syntax(value) == text


@pytest.mark.parametrize(
    ("value", "kind", "go_type"),
    [
        ({}, "object", "map[string]interface {}"),
        ([], "array", "[]interface {}"),
        ("", "string", "string"),
        (True, "bool", "bool"),
        (1, "number", "int64"),
        (1.5, "number", "float64"),
    ],
)
def test_go_type_names_are_printed(value, kind, go_type):
    assert (gofmt.json_kind(value), gofmt.go_type(value)) == (kind, go_type)


def test_go_type_of_null_is_nil():
    assert gofmt.go_type(None) == "%!s(<nil>)"


def test_texts_are_printed_as_go_does():
    value = {"b": ["x", 1, None], "a": {"c": True, "d": 1.5}}
    shown = "map[a:map[c:%!s(bool=true) d:%!s(float64=1.5)] b:[x %!s(int64=1) %!s(<nil>)]]"
    assert gofmt.format_verb_s(value) == shown
    assert gofmt.format_verb_s(None) == "%!s(<nil>)"
