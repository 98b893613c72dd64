"""The fast and the slow decoder agree on generated trees."""

from contextlib import suppress
from functools import partial

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mockube.apimachinery.schema import builtin
from mockube.apimachinery.schema.model import Shape
from mockube.apiserver.schema import decoder_errors, document
from mockube.apiserver.schema.decode import MAX_DEPTH, DecodeError, has_duplicates, is_too_deep

SCHEMAS = builtin.load()
CONFIG_MAP = SCHEMAS.kind("v1", "ConfigMap")


def decode(decoder, text, *, strict=True):
    return decoder.decode(CONFIG_MAP, orjson.loads(text), text=text, strict=strict)


def test_valid_object_is_decoded(decoder):
    decoded = decode(decoder, b'{"data":{"a":"b"}}')
    assert (decoded.tree, decoded.strict) == ({"metadata": {}, "data": {"a": "b"}}, ())


@pytest.mark.parametrize("strict", [True, False])
def test_invalid_object_is_refused(decoder, strict):
    with pytest.raises(
        DecodeError, match=r"^json: cannot unmarshal number 1\.50? into Go .*metadata\.generation"
    ):
        decode(decoder, b'{"metadata":{"generation":1.50}}', strict=strict)


def test_null_decodes_as_empty_object(decoder):
    assert decode(decoder, b"null").tree == {"metadata": {}}


def test_tree_is_decoded_without_its_text(decoder):
    decoded = decoder.decode(CONFIG_MAP, {"x": 1, "metadata": {}})
    assert (decoded.tree, decoded.strict) == ({"metadata": {}}, ('unknown field "x"',))


def test_unknown_fields_are_ignored_without_strict(decoder):
    decoded = decode(decoder, b'{"x":1}', strict=False)
    assert (decoded.tree, decoded.strict) == ({"metadata": {}}, ())


def test_duplicate_fields_are_reported(decoder):
    decoded = decode(decoder, b'{"metadata":{"name":"a"},"x":1,"metadata":{"labels":{"b":"c"}}}')
    assert decoded.tree == {"metadata": {"name": "a", "labels": {"b": "c"}}}
    assert decoded.strict == ('unknown field "x"', 'duplicate field "metadata"')


def test_duplicate_fields_are_merged_without_strict(decoder):
    text = (
        b'{"metadata":{"name":"a"},"metadata":{"labels":{"b":"c"}},"data":{"a":"1"},"data":{"a":"2","b":"3"}}'
    )
    decoded = decode(decoder, text, strict=False)
    metadata = {"name": "a", "labels": {"b": "c"}}
    assert (decoded.tree, decoded.strict) == ({"metadata": metadata, "data": {"a": "2", "b": "3"}}, ())


def test_overwritten_duplicate_may_have_wrong_type(decoder):
    with pytest.raises(DecodeError, match=r"cannot unmarshal number into Go struct field ConfigMap\.data"):
        decode(decoder, b'{"data":1,"data":{}}')


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**33), 2**33)
    | st.floats(-3, 3)
    | st.sampled_from(["", "a", "1Gi"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("ab"), inner, max_size=2),
    max_leaves=4,
)

LEAVES = {
    Shape.STRING: st.sampled_from(["", "a", "b"]),
    Shape.BOOLEAN: st.booleans(),
    Shape.INTEGER: st.integers(-5, 5),
    Shape.NUMBER: st.sampled_from([0, 0.5, 2.0]),
    Shape.QUANTITY: st.sampled_from(["0", "0.5", "1024Mi", 3, 1.5]),
    Shape.INT_OR_STRING: st.sampled_from([0, 5, "", "25%"]),
    Shape.TIME: st.sampled_from(["2024-05-06T07:08:09+02:00", "0001-01-01T00:00:00Z"]),
    Shape.MICRO_TIME: st.just("2024-05-06T07:08:09.123456Z"),
    Shape.BYTES: st.sampled_from(["", "YQ==", "YR=="]),
    Shape.ANY: st.sampled_from([{"a": [None]}, True, [], {}]),
}


@st.composite
def values(draw, of, depth, noise):
    """Generate values of the type, and occasionally of another type."""
    if draw(st.integers(0, 19)) < noise:
        return draw(JSON)
    if of.shape in LEAVES:
        return draw(LEAVES[of.shape] | st.none())
    if depth == 0:
        return draw(st.sampled_from([None, [] if of.shape is Shape.LIST else {}]))
    inner = {"depth": depth - 1, "noise": noise}
    match of.shape:
        case Shape.LIST:
            return draw(st.lists(values(of.items, **inner), max_size=2))
        case Shape.MAP:
            return draw(
                st.dictionaries(st.sampled_from(["b", "a", "é"]), values(of.items, **inner), max_size=2)
            )
    fields = draw(st.lists(st.sampled_from([*of.fields.values()]), max_size=4)) if of.fields else []
    made = {field.name: draw(values(field.type, **inner)) for field in fields}
    return made | ({"notAField": 1} if draw(st.integers(0, 19)) < noise else {})


def objects(noise):
    kinds = st.sampled_from(sorted(SCHEMAS.kinds())).map(lambda key: SCHEMAS.kind(*key))
    return kinds.flatmap(lambda kind: st.tuples(st.just(kind), values(kind, depth=5, noise=noise)))


@pytest.mark.thorough
@given(objects(noise=0))
def test_second_decoding_changes_nothing(decoder, drawn):
    """The comparison begins with the second decoding: Go writes a pointer to a zero time as null, and omits null."""
    of, tree = drawn
    once = decoder.decode(of, tree)
    twice = decoder.decode(of, once.tree)
    assert (once.strict, twice.strict) == ((), ())
    assert orjson.dumps(decoder.decode(of, twice.tree).tree) == orjson.dumps(twice.tree)


def outcome(decoder, of, text):
    """Return the errors of decoding in the form of the slow decoder."""
    try:
        return decoder_errors.DecodingErrors(strict=decoder.decode(of, orjson.loads(text), text=text).strict)
    except DecodeError as error:
        return decoder_errors.DecodingErrors(error=str(error))


@given(objects(noise=1))
def test_decoder_and_fault_finder_refuse_the_same(decoder, drawn):
    of, tree = drawn
    text = orjson.dumps(tree)
    assert outcome(decoder, of, text) == decoder_errors.find(of, document.parse(text))


@given(objects(noise=1))
def test_decoding_does_not_modify_tree(decoder, drawn):
    of, tree = drawn
    before = orjson.dumps(tree)
    with suppress(DecodeError):
        decoder.decode(of, tree)
    assert orjson.dumps(tree) == before


VALUES = st.recursive(
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


def nested_text(depth, opening="[", closing="]"):
    return (opening * depth + closing * depth).encode()


def test_depth_limit_is_exact():
    assert not is_too_deep(nested_text(MAX_DEPTH))
    assert is_too_deep(nested_text(MAX_DEPTH + 1))
    assert is_too_deep(nested_text(MAX_DEPTH + 1, '{"a":[', "]}"))


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


@given(VALUES, st.integers(0, MAX_DEPTH))
def test_scanned_depth_equals_walked_depth(tree, around):
    """The text is nested to the limit, and one level deeper, so that the innermost value decides."""
    maximum = MAX_DEPTH - depth(tree)
    for extra in (min(around, maximum), maximum, maximum + 1):
        text = b"[" * extra + orjson.dumps(tree) + b"]" * extra
        assert is_too_deep(text) == (extra > maximum)


@pytest.mark.parametrize("write", WAYS_TO_WRITE)
@given(tree=VALUES)
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
