"""YAML as Go's library reads and writes it."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mockube.apimachinery.yaml_decode import load
from mockube.apimachinery.yaml_scalars import YamlError
from mockube.apiserver.wire.yaml_codec import dump, dump_item, dump_list

TEXTS = st.text(
    st.characters(codec="utf-8", exclude_categories=("Cs", "Cc"), include_characters="\n\t"), max_size=12
)
TREES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=10,
)


@pytest.mark.thorough
@given(TREES)
def test_written_yaml_parses_to_same_tree(tree):
    assert load(dump(tree)).tree == tree


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        pytest.param("a: y", {"a": True}, id="y is yes"),
        pytest.param("a: Off", {"a": False}, id="off is no"),
        pytest.param("a: 017", {"a": 15}, id="octal"),
        pytest.param("a: 0x1F", {"a": 31}, id="hexadecimal"),
        pytest.param("a: 1_000", {"a": 1000}, id="with underscores"),
        pytest.param("a: 1:30", {"a": "1:30"}, id="no sexagesimal"),
        pytest.param("a: 2001-01-01", {"a": "2001-01-01"}, id="a date is a text"),
        pytest.param("a: 1e3", {"a": 1000}, id="an exponent without a sign"),
        pytest.param("a: 1e+3", {"a": 1000.0}, id="an exponent"),
        pytest.param("a: 0x", {"a": "0x"}, id="no digits, no number"),
        pytest.param("a: " + "9" * 5000, {"a": "9" * 5000}, id="larger than any number"),
        pytest.param("a: 1e+400", {"a": "1e+400"}, id="larger than any fraction"),
        pytest.param("a:", {"a": None}, id="empty"),
        pytest.param("1: a\ntrue: b\n", {"1": "a", "true": "b"}, id="keys become texts"),
        pytest.param(
            "a: &x {k: v}\nb: {<<: *x, l: w}", {"a": {"k": "v"}, "b": {"k": "v", "l": "w"}}, id="merge"
        ),
        pytest.param("a: 1\n---\na: 2\n", {"a": 1}, id="the first document"),
        pytest.param("", None, id="no document"),
    ],
)
def test_yaml_is_read(text, tree):
    assert load(text.encode()).tree == tree


def test_duplicate_yaml_key_is_reported_and_last_wins():
    loaded = load(b"a: 1\nb: 2\na: 3\n")
    assert loaded.tree == {"a": 3, "b": 2}
    assert loaded.strict_errors == ('yaml: unmarshal errors:\n  line 3: key "a" already set in map',)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param({"a": "true"}, 'a: "true"\n', id="a text that looks like a boolean"),
        pytest.param({"a": "2026-01-01T00:00:00Z"}, 'a: "2026-01-01T00:00:00Z"\n', id="a time"),
        pytest.param({"a": "12"}, 'a: "12"\n', id="a text that looks like a number"),
        pytest.param({"a": ""}, 'a: ""\n', id="an empty text"),
        pytest.param({"a": "x\ny\n"}, "a: |\n  x\n  y\n", id="lines"),
        pytest.param({"b": 1, "a": [{"k": 1}]}, "a:\n- k: 1\nb: 1\n", id="keys in order, lists not indented"),
        pytest.param({"a": "x: y"}, "a: 'x: y'\n", id="a text that looks like a mapping"),
        pytest.param({"a": {}, "b": []}, "a: {}\nb: []\n", id="empty ones"),
    ],
)
def test_yaml_is_written(text, expected):
    assert dump(text).decode() == expected


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("a: b: c", id="mapping in an invalid position"),
        pytest.param("{[1]: a}", id="a list for a key"),
        pytest.param("a: .nan", id="no number"),
        pytest.param("[" * 5000, id="deep"),
        pytest.param("[" * 500_000, id="deeper than a stack"),
        pytest.param("- " * 500_000, id="deep in blocks"),
        pytest.param("a: [\xff", id="cut off"),
        pytest.param(
            "a: &a [x,x,x,x,x,x,x,x,x]\n"
            + "".join(
                f"{chr(98 + i)}: &{chr(98 + i)} [{','.join(['*' + chr(97 + i)] * 9)}]\n" for i in range(9)
            ),
            id="aliases that multiply",
        ),
    ],
)
def test_unsupported_yaml_is_refused(text):
    with pytest.raises(YamlError):
        load(text.encode())


@given(st.binary(max_size=40))
def test_any_yaml_is_parsed_or_refused(data):
    with contextlib.suppress(YamlError):  # any other error fails the test
        load(data)


@given(TREES, TREES)
def test_yaml_list_from_parts_equals_whole_list(one, other):
    head, items = (
        {"apiVersion": "v1", "kind": "List", "metadata": {"a": one}},
        [{"a": one}, {"b": [other]}, {}],
    )
    assert b"".join(dump_list(head, "items", [dump_item(item) for item in items])) == dump(
        head | {"items": items}
    )
    assert b"".join(dump_list(head, "rows", [])) == dump(head | {"rows": []})
