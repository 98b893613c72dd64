"""YAML is decoded as by sigs.k8s.io/yaml; the results in the tables are from that library."""

import pytest

from mockube.apimachinery.yaml_decode import (
    MAX_ALIASED_TEXT,
    MAX_STRICT_ERRORS,
    MAX_TAG_DIRECTIVES,
    allowed_alias_ratio,
    load,
    load_all,
)
from mockube.apimachinery.yaml_scalars import YamlError
from mockube.apiserver.wire.yaml_codec import dump
from tests.support.hostile.doubling import check_linear

KIB = 1 << 10


def error_message(data):
    with pytest.raises(YamlError) as caught:
        load(data)
    return str(caught.value).removeprefix("error converting YAML to JSON: ")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        pytest.param("089", 89, id="no octal number, but a number"),
        pytest.param("0O17", 15, id="octal in capitals"),
        pytest.param("0o8", "0o8", id="no octal digit"),
        pytest.param("0X1f", 31, id="hexadecimal in capitals"),
        pytest.param("-0b11", -3, id="binary"),
        pytest.param("0_", 0, id="an underscore at the end"),
        pytest.param("_1", "_1", id="an underscore at the beginning"),
        pytest.param("1.", 1, id="no digit after the point"),
        pytest.param(".5e1", 5, id="no digit before the point"),
        pytest.param("3.0", 3, id="a fraction that is whole"),
        pytest.param("1e3", 1000, id="an exponent without a sign"),
        pytest.param("1e400", "1e400", id="beyond every number"),
        pytest.param("18446744073709551615", 2**64 - 1, id="the largest whole number"),
        pytest.param("18446744073709551616", 2.0**64, id="one more"),
        pytest.param("1.5e", "1.5e", id="an exponent without digits"),
        pytest.param("--1", "--1", id="two signs"),
        pytest.param("! 5", "5", id="non-specific tag"),
        pytest.param("!mine 5", "5", id="local tag"),
        pytest.param("!!str 5", "5", id="a number that is a text"),
        pytest.param("!!float 5", 5, id="a number that is a fraction"),
        pytest.param("!!binary aGk=", "hi", id="bytes"),
        pytest.param("!!timestamp 2001-01-01", "2001-01-01", id="a time"),
        pytest.param("<<", "<<", id="a merge key that is no key"),
    ],
)
def test_yaml_scalar_has_upstreams_value(text, value):
    assert load(f"a: {text}".encode()).tree == {"a": value}


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        pytest.param("{a: &x {b: 1}, c: {b: 3, <<: *x}}", {"a": {"b": 1}, "c": {"b": 1}}, id="after a key"),
        pytest.param("{a: &x {b: 1}, c: {<<: *x, b: 3}}", {"a": {"b": 1}, "c": {"b": 3}}, id="before a key"),
        pytest.param("{c: {<<: [{a: 1}, {a: 2}]}}", {"c": {"a": 1}}, id="the first of several"),
        pytest.param("{c: {<<: {a: 1}, d: 2}}", {"c": {"a": 1, "d": 2}}, id="in place"),
        pytest.param('{c: {"<<": {a: 1}}}', {"c": {"<<": {"a": 1}}}, id="quoted merge key is a key"),
    ],
)
def test_yaml_mappings_are_merged_in_key_order(text, tree):
    assert load(text.encode()).tree == tree


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param("{a: *x}", "yaml: unknown anchor 'x' referenced", id="undefined anchor"),
        pytest.param("{a: &x [*x]}", "yaml: anchor 'x' value contains itself", id="in itself"),
        pytest.param("{a: &x {<<: *x}}", "yaml: anchor 'x' value contains itself", id="merged into itself"),
        pytest.param(
            "{a: &x [b], c: {<<: *x}}",
            "yaml: map merge requires map or sequence of maps as the value",
            id="a list merged",
        ),
        pytest.param("[1]: a", "yaml: invalid map key: []interface {}{1}", id="a list for a key"),
        pytest.param(
            "~: a", 'unsupported map key of type: %!s(<nil>), key: <nil>, value: "a"', id="null for a key"
        ),
        pytest.param("a: .inf", "json: unsupported value: +Inf", id="infinity"),
        pytest.param("a: !!int x", "yaml: cannot decode !!str `x` as a !!int", id="tag of another type"),
        pytest.param("a: !!binary x", "yaml: !!binary value contains invalid base64 data", id="no bytes"),
        pytest.param("a: b: c", "yaml: mapping values are not allowed in this context", id="in line one"),
        pytest.param("a: 1\nb: x\nb: 3\n  c: 4\n", "yaml: line 4: mapping values are not allowed in this context", id="in a line"),
        pytest.param("a: 'x\n\n", "yaml: line 3: found unexpected end of stream", id="cut off"),
        pytest.param("a\nb: c", "yaml: line 2: mapping values are not allowed in this context", id="after the end"),
        pytest.param("a: \x01", "yaml: control characters are not allowed", id="a control character"),
        pytest.param(
            "<<: a\nb: c: d",
            "yaml: line 2: mapping values are not allowed in this context",
            id="in the text after an error in a value",
        ),
        pytest.param("a: !!int x\nb: *c", "yaml: unknown anchor 'c' referenced", id="anchor after an error in a value"),
        pytest.param(
            "a: !!int x\nb: &c d\ne: *c\n---\n[",
            "yaml: cannot decode !!str `x` as a !!int",
            id="in a value before another document",
        ),
        pytest.param("[" * 300, "yaml: exceeded max depth", id="deep"),
        pytest.param("- " * 300, "yaml: exceeded max depth", id="deep in blocks"),
    ],
)  # fmt: skip
def test_yaml_error_is_upstreams(text, problem):
    assert error_message(text.encode()) == problem


def test_duplicate_yaml_keys_are_reported_together():
    loaded = load(b"{a: 1, a: 2,\n  1: 1, 1: 2}\n")
    assert loaded.tree == {"a": 2, "1": 2}
    assert loaded.strict_errors == (
        'yaml: unmarshal errors:\n  line 1: key "a" already set in map\n  line 2: key 1 already set in map',
    )


def test_number_of_yaml_errors_is_limited():
    (complaint,) = load(b"a: 1\n" * 10_000).strict_errors
    assert complaint.count("\n") == MAX_STRICT_ERRORS


def test_yaml_documents_are_read_separately():
    assert [loaded.tree for loaded in load_all(b"a: &x 1\n---\n---\nb: 2\n")] == [{"a": 1}, None, {"b": 2}]


def test_yaml_anchor_is_limited_to_its_document():
    documents = load_all(b"a: &x 1\n---\nb: *x\n")
    assert next(documents).tree == {"a": 1}
    with pytest.raises(YamlError):
        next(documents)


# --- aliases: limited by upstream's ratio of aliases to nodes


def repeated(nodes, aliases):
    values = b"[" + b",".join([b"x"] * (nodes - 1)) + b"]"
    return b"{a: &a %b, b: [%b]}" % (values, b",".join([b"*a"] * aliases))


@pytest.mark.parametrize(
    ("nodes", "aliases", "is_refused"),
    [(2, 3000, False), (100, 100, False), (100, 101, False), (200, 990, True), (1001, 200, True), (1001, 90, False), (201, 3000, True)],
)  # fmt: skip
def test_yaml_alias_limit_is_upstreams(nodes, aliases, is_refused):
    data = repeated(nodes, aliases)
    if is_refused:
        assert error_message(data) == "yaml: document contains excessive aliasing"
    else:
        assert len(load(data).tree["b"]) == aliases


def test_allowed_alias_ratio_falls_with_size():
    assert (allowed_alias_ratio(400_000), allowed_alias_ratio(4_000_000)) == (0.99, 0.10)
    assert allowed_alias_ratio(2_200_000) == pytest.approx(0.545)


def test_long_texts_are_limited_like_aliases():
    text = b"{a: &a " + b"x" * (MAX_ALIASED_TEXT // 50) + b", b: [" + b",".join([b"*a"] * 60) + b"]}"
    assert error_message(text) == "yaml: document contains excessive aliasing"


def test_aliased_yaml_value_is_copied():
    tree = load(b"{a: &a [1], b: *a}").tree
    tree["b"].append(2)
    assert tree["a"] == [1]


def test_number_of_tag_directives_is_limited():
    assert (
        error_message(b"%TAG !a! x\n" * (MAX_TAG_DIRECTIVES + 1) + b"--- a")
        == "yaml: too many %TAG directives"
    )
    assert (
        error_message(("%TAG !a! x\n" * (MAX_TAG_DIRECTIVES + 1) + "--- a").encode("utf-16"))
        == "yaml: too many %TAG directives"
    )


# --- cost


def flow_sequence_of(item):
    return lambda size: b"[" + item * (size // len(item)) + b"]"


def repeat_line(line):
    return lambda size: line * (size // len(line))


def repeat_between(begin, middle, end):
    return lambda size: begin + middle * (size // len(middle)) + end


def doubling_aliases(size):
    lines = [b"a0: &a0 [x, x]\n"]
    lines += [b"a%d: &a%d [*a%d, *a%d]\n" % (n, n, n - 1, n - 1) for n in range(1, size // 30)]
    return b"".join(lines)


def merged_again(size):
    fields = b", ".join(b"k%d: 1" % n for n in range(size // 20))
    return b"{a: &a {%b}, b: {%b}}" % (fields, b"<<: *a, " * (size // 20))


def merged_each_with_one(size):
    return b"{a: &a {b: 1}, c: {" + b"".join(b"k%d: 1, <<: *a, " % n for n in range(size // 20)) + b"}}"


def distinct_keys(size):
    return b"".join(b"k%d: 1\n" % n for n in range(size // 10))


def aliased_anchors(size):
    return b"".join(b"- &a%d x\n- *a%d\n" % (n, n) for n in range(size // 20))


SHAPES = {
    "digits": repeat_between(b"a: ", b"9", b""),
    "digits and no number": repeat_between(b"a: ", b"9", b"x"),
    "digits and a point": repeat_between(b"a: 1.", b"9", b"x"),
    "points": repeat_between(b"a: ", b".", b""),
    "an exponent": repeat_between(b"a: 1e", b"9", b"x"),
    "underscores": repeat_between(b"a: 1", b"_1", b""),
    "hexadecimal digits": repeat_between(b"a: 0x", b"f", b""),
    "base 60": repeat_between(b"a: 1", b":1", b""),
    "many numbers": flow_sequence_of(b"0.1e-3,"),
    "many long numbers": flow_sequence_of(b"9" * 69 + b","),
    "words": flow_sequence_of(b"yes,"),
    "empty lists": flow_sequence_of(b"[],"),
    "single pairs": flow_sequence_of(b"a: b,"),
    "flow nesting": repeat_between(b"", b"[", b""),
    "block nesting": repeat_between(b"", b"- ", b""),
    "keys nesting": repeat_between(b"", b"? ", b""),
    "indents": lambda size: b"".join(b" " * n + b"a:\n" for n in range(int((2 * size) ** 0.5))),
    "distinct keys": distinct_keys,
    "one key": repeat_line(b"a: 1\n"),
    "long keys": repeat_line(b"? " + b"a" * 2000 + b"\n: b\n"),
    "quotes": repeat_between(b"'", b"''", b"'"),
    "escapes": repeat_between(b'"', b"\\x41", b'"'),
    "folded lines": repeat_between(b'"', b"a\n", b'"'),
    "blank lines": repeat_between(b'"a', b"\n", b'b"'),
    "plain lines": repeat_between(b"a", b"\na", b""),
    "literal lines": repeat_between(b"|\n", b" a\n", b""),
    "literal blank lines": repeat_between(b"|\n", b"\n", b" a"),
    "spaces": repeat_between(b"a:", b" ", b"b"),
    "comments": repeat_between(b"", b"# a\n", b"a"),
    "tags": flow_sequence_of(b"!!str a,"),
    "a long tag": repeat_between(b"!<", b"%41", b"> a"),
    "directives": repeat_between(b"", b"%TAG !a! x\n", b"--- a"),
    "anchors": aliased_anchors,
    "aliases of one": lambda size: b"{a: &a x, b: [" + b"*a," * (size // 3) + b"]}",
    "aliases that double": doubling_aliases,
    "merges of many keys": merged_again,
    "merges of one key": merged_each_with_one,
    "merges in a list": lambda size: b"{a: &a {b: 1}, c: {<<: [" + b"*a, " * (size // 4) + b"]}}",
    "documents": repeat_line(b"---\n"),
    "an unclosed list": repeat_between(b"[", b"a,", b""),
    "two bytes a character": lambda size: ("[" + "a," * (size // 4) + "]").encode("utf-16"),
}


def read_all(data):
    try:
        for _ in load_all(data):
            pass
    except YamlError:
        pass


@pytest.mark.timed
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_yaml_reading_takes_linear_time(shape):
    check_linear(shape, read_all, 64 * KIB)


TREES = {
    "digits": lambda size: "9" * size,
    "digits and no number": lambda size: "9" * size + "x",
    "base 60": lambda size: "1" + ":1" * (size // 2) + "x",
    "a date": lambda size: "2001-01-01T" + " " * size + "\n",
    "lines": lambda size: "a\n" * (size // 2),
    "lines with spaces": lambda size: "a \n" * (size // 3),
    "blank lines": lambda size: "\n" * size,
    "spaces": lambda size: " " * size,
    "quotes": lambda size: "'" * size,
    "escapes": lambda size: "\x01" * size,
    "letters of other scripts": lambda size: "é" * (size // 2),
    "texts": lambda size: ["a"] * (size // 2),
    "numbers": lambda size: [1] * (size // 2),
    "fractions": lambda size: [1.5] * (size // 4),
    "empty lists": lambda size: [[]] * (size // 3),
    "keys": lambda size: {f"k{n}": "" for n in range(size // 10)},
    "nested": lambda size: [{"a": [{"b": {"c": "d"}}]}] * (size // 30),
}


@pytest.mark.timed
@pytest.mark.parametrize("make", TREES.values(), ids=TREES)
def test_yaml_writing_takes_linear_time(make):
    check_linear(make, dump, 96 * KIB)


SHAPES = ("a: {}{}\n", 'a: "{}\\u00e4{}"', "a: |\n  {}\r\n  {}\n")
LONG_SIZES = (65_530, 65_535, 65_536, 65_537, 200_000)


@pytest.mark.parametrize("size", LONG_SIZES)
@pytest.mark.parametrize("shape", SHAPES)
def test_long_text_is_read_like_a_short_one(shape, size):
    """Its parts may divide a character, a line end or an escape."""
    text = "äöü€" * (size // 11 + 1)
    short, long = (shape.format(part, part) + "\n---\nb: 2\n" for part in ("äö", text))
    first, second = (document.tree for document in load_all(long.encode()))
    assert second == {"b": 2}
    assert first["a"] == load(short.encode()).tree["a"].replace("äö", text)


@pytest.mark.parametrize("size", LONG_SIZES)
@pytest.mark.parametrize("ending", ["\na: [", "\n\ta: 1", "\n\x01", "\nb: \xff"])
def test_long_text_is_refused_like_a_short_one(ending, size):
    short, long = (("a: " + part + ending).encode("latin-1") for part in ("b", "b" * size))
    assert error_message(long) == error_message(short)
