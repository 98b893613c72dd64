"""Bodies of every media type are decoded or refused, and encoding restores what was decoded."""

import math

import orjson

from mockube.apimachinery import status, yaml_decode
from mockube.apimachinery.schema import builtin
from mockube.apiserver.wire import yaml_codec
from mockube.apiserver.wire.parse import UnreadableBody, parse
from mockube.apiserver.wire.protobuf import envelope
from mockube.apiserver.wire.protobuf.varint import ProtobufError
from tests.fuzz import texts
from tests.fuzz.engine import Fault, Target, mutated_text
from tests.fuzz.values import object_of
from tests.support.hostile import hostile_bodies

JSON, YAML, PROTOBUF = hostile_bodies.JSON, hostile_bodies.YAML, hostile_bodies.PROTOBUF
KINDS = sorted(builtin.load().kinds())

_JSON_TOKENS = (
    "{", "}", "[", "]", ":", ",", '"a"', '"', "1", "-", "0", ".", "e", "E+", "true", "null", "nul", " ", "\n", "\\", "\\u", "\\ud800", "\\udc00", '"\\u0000"', "9" * 5000, "1e400",
    '"a":', '{"a":1,"a":2}', "NaN", "/*", "\x00", "\xff", "\xed\xa0\x80", "\xef\xbb\xbf", "01", "-0", '"kind":"Pod"', "1.0", "1e3", "0.1",
)  # fmt: skip
_YAML_TOKENS = (
    "a", ": ", "- ", "\n", "\n  ", "\n    ", "? ", "&a ", "*a", "!!binary ", "!!int ", "!!set ", "!!float ", "!a ", "!<", "|", ">", "|+2", "-\n", "'", '"', "{", "}", "[", "]", ",", "#", "---\n", "...\n",
    "%YAML 1.1\n", "%TAG ! a\n", "<<", "<<: *a", "~", "null", "yes", "off", "0x1f", "017", "0o7", "0b1", "1_000", "1:30", ".inf", "-.INF", ".nan", "1e3", "1.", "2030-01-01", "9" * 400, "\t", "\xc3\xa9",
    "\xff", "\x00", "\\x", "\\ud800", "\xef\xbb\xbf", "\xe2\x80\xa8", "=", "- - - ", "? ? ", "a: b\n", "a: &a {}\n", "- *a\n", "\r",
)  # fmt: skip


def _tokens(tokens):
    return lambda random: (
        texts.join_tokens(random, tokens, maximum=20).encode("latin-1", "replace").decode("latin-1")
    )


def _any_tree(random):
    if random.random() < 0.3:
        return hostile_bodies.mutated(object_of(random, *random.choice(KINDS)), random)
    tree = {"a": hostile_bodies.odd_value(random)}
    for _ in range(random.choice((0, 2, 10))):
        tree = hostile_bodies.mutated(tree, random)
    return tree


def _bomb_of(media_type):
    return lambda random: hostile_bodies.bomb_of(media_type, random).decode("latin-1")


def _one_of(*makers):
    return lambda random: random.choice(makers)(random)


def _json_text(random):
    return hostile_bodies.scramble(orjson.dumps(_any_tree(random)), random).decode("latin-1")


def _yaml_text(random):
    return hostile_bodies.scramble(yaml_codec.dump(_any_tree(random)), random).decode("latin-1")


def _protobuf_text(random):
    version, kind = random.choice(KINDS)
    try:
        data = envelope.encode(object_of(random, version, kind, odd=0.0))
    except ProtobufError:
        data = b"k8s\x00\n\x0b\n\x02v1\x12\x05Event\x12\x00"
    return hostile_bodies.scramble(data, random).decode("latin-1")


def _read(media_type):
    def check(text):
        data = text.encode("latin-1")
        try:
            parsed = parse(data, media_type)
        except UnreadableBody as error:
            return f"refused: {error}"
        _check_is_json(parsed.tree)
        return f"read: {type(parsed.tree).__name__} {bool(parsed.complaints)}"

    return check


def _check_is_json(tree):
    """Check that a decoded body can be stored: it must be expressible in JSON."""
    try:
        text = orjson.dumps(tree)
    except TypeError as error:
        raise Fault(f"a body becomes what JSON cannot say: {error}") from None
    if not _is_equal(orjson.loads(text), tree):
        raise Fault("a body becomes something else when it is stored")


def _is_equal(one, other):
    """Equal, and of the same classes."""
    if isinstance(one, dict):
        return (
            isinstance(other, dict)
            and one.keys() == other.keys()
            and all(_is_equal(one[key], other[key]) for key in one)
        )
    if isinstance(one, list):
        return isinstance(other, list) and len(one) == len(other) and all(map(_is_equal, one, other))
    if isinstance(one, float) and math.isnan(one):
        return isinstance(other, float)
    return isinstance(one, bool) is isinstance(other, bool) and one == other


def _without_null(tree):
    """Return a tree without the members that are null, as upstream's JSON has them for a zero time.

    A tree decoded from JSON has no such member: null there is absent, and is not written.
    """
    if isinstance(tree, dict):
        return {key: _without_null(value) for key, value in tree.items() if value is not None}
    return list(map(_without_null, tree)) if isinstance(tree, list) else tree


def _write_yaml(tree):
    if not _is_equal(yaml_decode.load(yaml_codec.dump(tree)).tree, tree):
        raise Fault("YAML that was written is read as something else")
    return "written"


def _protobuf(text):
    data = text.encode("latin-1")
    try:
        tree = parse(data, PROTOBUF).tree
    except UnreadableBody as error:
        return f"refused: {error}"
    _check_is_json(tree)
    try:
        again = envelope.decode(envelope.encode(tree))
    except ProtobufError as error:
        return f"not written: {error}"
    if not _is_equal(_without_null(again), _without_null(tree)):
        raise Fault("protobuf that was read is written as something else")
    return f"read: {tree['kind']}"


def _media(text):
    """Return any media type with the body of any."""
    media_type, _, body = text.partition("\n")
    try:
        return f"read: {type(parse(body.encode('latin-1'), media_type).tree).__name__}"
    except (UnreadableBody, status.ApiError) as error:
        return f"refused: {error}"


def _make_media(random):
    media_type = random.choice((*texts.MEDIA_TYPES, "", "application/json;charset=x", "APPLICATION/JSON"))
    return f"{media_type}\n{random.choice((_json_text, _yaml_text, _protobuf_text))(random)}"


TARGETS = (
    Target(
        name="json",
        generate=_one_of(
            _tokens(_JSON_TOKENS), _tokens(_JSON_TOKENS), _json_text, _json_text, _bomb_of(JSON)
        ),
        check=_read(JSON),
        mutate=mutated_text,
        examples=120,
    ),
    Target(
        name="yaml",
        generate=_one_of(
            _tokens(_YAML_TOKENS),
            _tokens(_YAML_TOKENS),
            _tokens(_YAML_TOKENS),
            _yaml_text,
            _yaml_text,
            _bomb_of(YAML),
        ),
        check=_read(YAML),
        mutate=mutated_text,
        examples=200,
    ),
    Target(
        name="yaml-written",
        generate=_any_tree,
        check=_write_yaml,
        mutate=hostile_bodies.mutated,
        examples=200,
    ),
    Target(
        name="protobuf",
        generate=_one_of(_protobuf_text, _protobuf_text, _protobuf_text, _bomb_of(PROTOBUF)),
        check=_protobuf,
        mutate=mutated_text,
    ),
    Target(name="media", generate=_make_media, check=_media, mutate=mutated_text, examples=200),
)
