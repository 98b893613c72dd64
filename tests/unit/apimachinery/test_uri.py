"""Queries and escapes as Go's package url reads them: the values are what `url.ParseQuery` of Go 1.26 returned."""

import pytest

from mockube.apimachinery.uri import parse_query, unescape

QUERIES = {
    "": {},
    "a": {"a": [""]},
    "a=": {"a": [""]},
    "=b": {"": ["b"]},
    "&&a=1&&": {"a": ["1"]},
    "a=1&b=3&a=2": {"a": ["1", "2"], "b": ["3"]},
    "a=b=c": {"a": ["b=c"]},
    "a=1;b=2&c=3": {"c": ["3"]},
    "a=%zz&b=1": {"b": ["1"]},
    "%zz=a&b=1": {"b": ["1"]},
    "a=%2&b=1": {"b": ["1"]},
    "a=%&b=1": {"b": ["1"]},
    "a=%25zz": {"a": ["%zz"]},
    "a=%2525": {"a": ["%25"]},
    "a=x%26y%3Dz%3B": {"a": ["x&y=z;"]},
    "a+b=c+d%2B": {"a b": ["c d+"]},
    "a=%c3%a9é": {"a": ["éé"]},
    "a=%f0%9f%98%80": {"a": ["😀"]},
    "a=\\x41%5c%41\\": {"a": ["\\x41\\A\\"]},
    "a=%00%0a": {"a": ["\x00\n"]},
    "a=%ff%FF": {"a": ["\ufffd" * 2]},
    "a=%e2%82b": {"a": ["\ufffd\ufffdb"]},
    "a=%ED%A0%80": {"a": ["\ufffd" * 3]},
    "a=\udcff\udcfe": {"a": ["\ufffd" * 2]},
}


@pytest.mark.parametrize(("query", "values"), QUERIES.items(), ids=map(ascii, QUERIES))
def test_query_is_parsed(query, values):
    assert parse_query(query) == values


def test_query_of_over_10000_pairs_is_ignored():
    assert parse_query("&" * 9998 + "a=1&b=2") == {"a": ["1"], "b": ["2"]}
    assert parse_query("&" * 9999 + "a=1&b=2") == {}


@pytest.mark.parametrize(
    ("text", "expected"),
    [("a%2Fb+c", "a/b+c"), ("%zz%2F", "%zz%2F"), ("é", "é"), ("\udcff", "\ufffd"), ("%c3%28", "\ufffd(")],
)
def test_escapes_are_decoded(text, expected):
    assert unescape(text) == expected
