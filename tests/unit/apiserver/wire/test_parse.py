"""Request bodies: parsed, or refused with Go's error messages."""

import contextlib

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mockube.apimachinery.status import UnsupportedMediaType
from mockube.apiserver.wire import go_json
from mockube.apiserver.wire.parse import UnreadableBody, duplicate_keys, parse
from mockube.apiserver.wire.protobuf import envelope

JSON = "application/json"


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (b"", "unexpected end of JSON input"),
        (b'{"a":1', "unexpected end of JSON input"),
        (b"{} x", "invalid character 'x' after top-level value"),
        (b"{a:1}", "invalid character 'a' looking for beginning of object key string"),
        (b"{'a':1}", "invalid character '\\'' looking for beginning of object key string"),
        (b'{"a" 1}', "invalid character '1' after object key"),
        (b'{"a":1 "b"}', "invalid character '\"' after object key:value pair"),
        (b'{"a":1,}', "invalid character '}' looking for beginning of object key string"),
        (b"[1,]", "invalid character ']' looking for beginning of value"),
        (b"[1 2]", "invalid character '2' after array element"),
        (b"trux", "invalid character 'x' in literal true (expecting 'e')"),
        (b"-x", "invalid character 'x' in numeric literal"),
        (b"1.x", "invalid character 'x' after decimal point in numeric literal"),
        (b"1ex", "invalid character 'x' in exponent of numeric literal"),
        (b"01", "invalid character '1' after top-level value"),
        (b'"\n"', "invalid character '\\n' in string literal"),
        (b'"\\x"', "invalid character 'x' in string escape code"),
        (b'"\\u1x"', "invalid character 'x' in \\u hexadecimal character escape"),
        (b"[" * 201 + b"]" * 201, "exceeded max depth"),
        (b"[1e400]", "json: cannot unmarshal number 1e400 into Go value of type float64"),
        (b"9" * 5000, f"json: cannot unmarshal number {'9' * 5000} into Go value of type float64"),
    ],
)
def test_json_error_has_gos_message(text, fault):
    with pytest.raises(UnreadableBody) as caught:
        parse(text, JSON)
    assert str(caught.value) == fault


@given(st.binary(max_size=30) | st.text('{}[]",:tfn019.-e\\u ', max_size=20).map(str.encode))
def test_json_error_is_found_where_orjson_finds_one(text):
    try:
        orjson.loads(text)
    except orjson.JSONDecodeError:
        if not go_json.syntax_error(text):
            with contextlib.suppress(go_json.NumberOutOfRange):
                go_json.decode(go_json.replace_invalid_characters(text))
    else:
        assert go_json.syntax_error(text) == ""


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (rb"x\ud800y", "x\ufffdy"),
        (rb"\udc00", "\ufffd"),
        (rb"\ud800\ud83d\ude00", "\ufffd\U0001f600"),
        (rb"\\ud800\ud800", "\\ud800\ufffd"),
        (b"x\xffy", "x\ufffdy"),
        (b"\xe2\x82x", "\ufffd\ufffdx"),
        (b"\xf0\x9f\x98", "\ufffd\ufffd\ufffd"),
        (b"\xed\xa0\x80", "\ufffd\ufffd\ufffd"),
        (b"\xc0\x80", "\ufffd\ufffd"),
        (b"\xf5\x80\x80\x80", "\ufffd\ufffd\ufffd\ufffd"),
        ("\xe9\u20ac".encode() + b"\xff\\ud800", "\xe9\u20ac\ufffd\ufffd"),
    ],
)
def test_invalid_characters_are_replaced(text, value):
    """Each invalid byte is replaced by itself, as by Go."""
    assert parse(b'{"a":"' + text + b'"}', JSON).tree == {"a": value}


@pytest.mark.parametrize("opening", [b"[", b'{"a":'])
def test_syntax_error_is_found_at_any_depth(opening):
    assert go_json.syntax_error(opening * 100_000) == go_json.END


def test_duplicate_keys_are_found_with_invalid_characters():
    parsed = parse(b'{"a":"\xff","b":1,"b":2}', JSON)
    assert duplicate_keys(parsed) == ('yaml: unmarshal errors:\n  line 1: key "b" already set in map',)


def test_body_is_parsed_by_media_type():
    tree = {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "a"}}
    assert parse(orjson.dumps(tree), "application/json; charset=utf-8").tree == tree
    assert parse(orjson.dumps(tree), "").tree == tree
    assert parse(b"kind: ConfigMap\napiVersion: v1\nmetadata: {name: a}\n", "application/yaml").tree == tree
    assert parse(envelope.encode(tree), "application/vnd.kubernetes.protobuf").tree == tree
    with pytest.raises(UnsupportedMediaType):
        parse(b"{}", "text/plain")


def test_yaml_members_are_sorted():
    """Upstream converts YAML to JSON first, and reports errors in that order."""
    tree = parse(b"spec: {z: 1, a: [{d: 1, c: 2}]}\nkind: X\n", "application/yaml").tree
    assert orjson.dumps(tree) == b'{"kind":"X","spec":{"a":[{"c":2,"d":1}],"z":1}}'
