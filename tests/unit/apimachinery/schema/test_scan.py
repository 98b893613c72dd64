from functools import partial

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mockube.apimachinery.schema.scan import MAX_DEPTH, has_duplicates, is_too_deep

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text('a{}[]":\\,\n', max_size=6),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text('a{}[]":\\', max_size=4), inner, max_size=4)
    ),
)
"""Strings with brackets, quotes and escapes."""

WAYS_TO_WRITE = [
    pytest.param(orjson.dumps, id="compact"),
    pytest.param(partial(orjson.dumps, option=orjson.OPT_APPEND_NEWLINE), id="with a newline"),
    pytest.param(partial(orjson.dumps, option=orjson.OPT_INDENT_2), id="indented"),
]


def nested(depth, opening="[", closing="]"):
    return (opening * depth + closing * depth).encode()


def test_depth_limit_is_exact():
    assert not is_too_deep(nested(MAX_DEPTH))
    assert is_too_deep(nested(MAX_DEPTH + 1))
    assert is_too_deep(nested(MAX_DEPTH + 1, '{"a":[', "]}"))


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(b"[" + b"[]," * 500 + b"[]]", id="wide"),
        pytest.param(b'["' + b"[" * 500 + b'"]', id="in a string"),
        pytest.param(b'["' + b'\\"[' * 500 + b'"]', id="behind escaped quotes"),
        pytest.param(b'["\\\\",' + b'"[",' * 500 + b"1]", id="behind an escaped backslash"),
    ],
)
def test_shallow_document_with_many_brackets_is_accepted(text):
    assert orjson.loads(text)
    assert not is_too_deep(text)


def test_brackets_in_strings_are_not_counted():
    """A closing bracket within a string does not reduce the depth."""
    hidden = b'["]]]",' * (MAX_DEPTH + 1) + b"1" + b"]" * (MAX_DEPTH + 1)
    assert orjson.loads(hidden)
    assert is_too_deep(hidden)


def test_unclosed_brackets_count_as_depth():
    assert is_too_deep(b"[" * 100_000)
    assert not is_too_deep(b"]" * 100_000)


def depth(tree):
    inner = tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list) else None
    return 0 if inner is None else 1 + max(map(depth, inner), default=0)


@given(JSON, st.integers(0, MAX_DEPTH))
def test_scanned_depth_equals_walked_depth(tree, around):
    """The text is nested to the limit, and one level deeper, so that the innermost value decides."""
    most = MAX_DEPTH - depth(tree)
    for extra in (min(around, most), most, most + 1):
        text = b"[" * extra + orjson.dumps(tree) + b"]" * extra
        assert is_too_deep(text) == (extra > most)


@pytest.mark.parametrize("write", WAYS_TO_WRITE)
@given(tree=JSON)
def test_document_without_duplicates_is_recognised(write, tree):
    text = write(tree)
    assert not has_duplicates(text, orjson.loads(text))


@pytest.mark.parametrize(
    "text",
    [
        pytest.param('{"a":1,"a":1}', id="duplicate member"),
        pytest.param('{"a":{"b":1},"a":2}', id="overwritten object"),
        pytest.param('[{"x":{"a":1,"b":2,"a":3}}]', id="further in"),
        pytest.param('{"a":":","\\u0061":1}', id="written differently"),
        pytest.param('{ "a" : 1 , "a" : "\\":" }', id="spaced"),
        pytest.param('{"a":1,"a":"\\u003a"}', id="an escaped colon"),
        pytest.param('{"a":"\\u003A","b":{"c":1,"c":1}}', id="an escaped colon that makes up for a member"),
    ],
)
def test_document_with_duplicates_is_recognised(text):
    assert has_duplicates(text.encode(), orjson.loads(text))
