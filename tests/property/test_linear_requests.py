"""Queries, continue tokens, protobuf, YAML of megabytes, and one long text beside many items take linear time."""

import base64

import orjson
import pytest

from mockube.apimachinery import gotext, uri
from mockube.apimachinery.patch import strategic
from mockube.apimachinery.patch.errors import PatchError
from mockube.apimachinery.schema.builtin import load
from mockube.apimachinery.status import ApiError
from mockube.apiserver.patch import json_patch
from mockube.apiserver.patch.apply import FieldManager, VersionConverter
from mockube.apiserver.patch.apply.atoms import atom_of_type
from mockube.apiserver.schema.decode import Decoder
from mockube.apiserver.storage import continue_token
from mockube.apiserver.storage.continue_token import ContinueToken
from mockube.apiserver.wire import yaml_codec
from mockube.apiserver.wire.parse import parse
from mockube.apiserver.wire.protobuf import envelope
from mockube.apiserver.wire.protobuf.varint import with_length
from tests.support.hostile.doubling import check_linear, size_of_run

pytestmark = pytest.mark.slow

POD = load().kind("v1", "Pod")
BASE = {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "x", "uid": "u"}}
MANAGER = FieldManager(
    kind="Pod",
    versions=VersionConverter(own="v1", atoms={"v1": atom_of_type(POD)}),
    empty={"kind": "Pod", "apiVersion": "v1", "metadata": {}},
)
LENIENT = {"negligible": 0.01, "too_long": 2.0}
YAML = "application/yaml"
PROTOBUF = "application/vnd.kubernetes.protobuf"


def refused_or_not(run):
    def attempt(value):
        try:
            run(value)
        except (ValueError, PatchError, ApiError) as error:
            str(error)

    return attempt


def parametrize_make(of):
    return pytest.mark.parametrize("make", [pytest.param(make, id=name) for name, make in of.items()])


# --- queries

QUERIES = {
    "invalid UTF-8": lambda size: "a=" + "%ff" * (size // 3),
    "invalid UTF-8 in text": lambda size: "a=" + "b%ff" * (size // 4),
    "escaped letters": lambda size: "a=" + "%c3%a9" * (size // 6),
    "wrong escapes": lambda size: "a=" + "%2g" * (size // 3),
    "wrong escape at the end": lambda size: "a=" + "%2f" * (size // 3) + "%",
    "backslashes": lambda size: "a=" + "\\" * size,
    "pairs": lambda size: "a&" * (size // 2),
    "equals signs": lambda size: "=" * size,
}


@parametrize_make(QUERIES)
def test_queries_take_linear_time(make):
    check_linear(make, uri.parse_query, 1_000_000, **LENIENT)


# --- continue tokens


def token(start):
    return continue_token.encode(ContinueToken(7, start))


TOKENS = {
    "long": lambda size: token("a" * size),
    "steps": lambda size: token("a/" * size + "a"),
    "steps back": lambda size: token("a/../" * size),
    "dots": lambda size: token("./" * size),
    "slashes": lambda size: token("/" * size),
    "no base64": lambda size: "a" * size + "!",
    "padding": lambda size: "=" * size,
    "no JSON": lambda size: base64.urlsafe_b64encode(b"a" * size).decode(),
    "deep": lambda size: base64.urlsafe_b64encode(b"[" * size).decode(),
    "digits": lambda size: base64.urlsafe_b64encode(b'{"rv":' + b"1" * size + b"}").decode(),
    "version": lambda size: base64.urlsafe_b64encode(b'{"v":"' + b"v" * size + b'"}').decode(),
}


@parametrize_make(TOKENS)
def test_continue_tokens_take_linear_time(make):
    check_linear(make, refused_or_not(continue_token.decode), 100_000, **LENIENT)


# --- protobuf


def pod(**spec):
    return {**BASE, "spec": spec}


def definition(schema):
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    return {
        "kind": "CustomResourceDefinition",
        "apiVersion": "apiextensions.k8s.io/v1",
        "metadata": {"name": "x"},
        "spec": {
            "group": "g",
            "names": {"plural": "x", "kind": "X"},
            "scope": "Cluster",
            "versions": [version],
        },
    }


def nested_schema(depth, of):
    for _ in range(depth):
        of = {"type": "object", "properties": {"a": of}}
    return of


TREES = {
    "containers": lambda size: pod(containers=[{"name": f"c{at}", "image": "i"} for at in range(size)]),
    "variables": lambda size: pod(
        containers=[{"name": "c", "env": [{"name": f"k{at}", "value": "v"} for at in range(size)]}]
    ),
    "volumes of lists": lambda size: pod(
        containers=[],
        volumes=[
            {"name": f"v{at}", "configMap": {"name": "m", "items": [{"key": "k", "path": "p"}] * 10}}
            for at in range(size // 10)
        ],
    ),
    "labels": lambda size: {**BASE, "metadata": {"labels": {f"k{at}": "v" for at in range(size)}}},
    "quantities": lambda size: pod(
        containers=[{"name": "c", "resources": {"limits": {f"k{at}": f"{at}m" for at in range(size)}}}]
    ),
    "times": lambda size: {
        **BASE,
        "metadata": {"managedFields": [{"time": "2026-01-01T00:00:00Z", "manager": f"m{at}"} for at in range(size)]},
    },
    "properties": lambda size: definition(
        {"type": "object", "properties": {f"k{at}": {"type": "string"} for at in range(size)}}
    ),
    "deep properties": lambda size: definition(
        nested_schema(30, {"type": "object", "properties": {f"k{at}": {"type": "string"} for at in range(size)}})
    ),
    "one of many": lambda size: definition({"type": "object", "oneOf": [{"type": "string"}] * size}),
    "one long text": lambda size: {
        **BASE,
        "metadata": {"annotations": {"a": "x" * 30 * size}},
        "spec": {"containers": [{"name": f"c{at}"} for at in range(size)]},
    },
}  # fmt: skip


@parametrize_make(TREES)
def test_protobuf_decoding_takes_linear_time(make):
    def with_encoding(tree):
        return tree, envelope.encode(tree)

    def run(given):
        tree, data = given
        envelope.encode(tree)
        parse(data, PROTOBUF)

    check_linear(lambda size: with_encoding(make(size)), run, size_of_run(10_000, 60_000), **LENIENT)


def field(number, payload):
    return bytes([number << 3 | 2]) + with_length(payload)


def message(payload, *, api_version="v1", kind="Pod"):
    named = field(1, api_version.encode()) + field(2, kind.encode())
    return b"k8s\0" + field(1, named) + field(2, payload)


def nested_message(size):
    payload = b""
    while len(payload) < size:
        payload = field(2, payload)
    return payload


MESSAGES = {
    "metadata in parts": lambda size: field(1, field(1, b"x")) * size,
    "a container in parts": lambda size: field(2, field(2, field(1, b"c")) * size),
    "empty messages": lambda size: field(2, b"") * size,
    "unknown fields": lambda size: b"\xf8\x07\x01" * size,
    "unknown texts": lambda size: field(15, b"a") * size,
    "unknown groups": lambda size: b"\x7b\x7c" * size,
    "open groups": lambda size: b"\x7b" * size,
    "one group in another": lambda size: b"\x7b" * size + b"\x7c" * size,
    "long numbers": lambda size: b"\xf8\x07" + b"\xff" * size,
    "a name again and again": lambda size: field(1, field(1, b"name") * size),
    "equal labels": lambda size: field(1, field(11, field(1, b"k") + field(2, b"v")) * size),
    "no UTF-8": lambda size: field(1, field(1, b"\xff" * size)),
    "deep": nested_message,
}


@parametrize_make(MESSAGES)
def test_malformed_protobuf_takes_linear_time(make):
    check_linear(
        lambda size: message(make(size)),
        refused_or_not(lambda data: parse(data, PROTOBUF)),
        size_of_run(40_000, 500_000),
        **LENIENT,
    )


# --- one long text beside many items

LONG = {
    "containers": lambda size: {
        "spec": {"containers": [{"name": f"c{at}", "image": "i"} for at in range(size)]}
    },
    "wrong items": lambda size: {"spec": {"containers": [7] * size}},
    "unknown fields": lambda size: {
        "spec": {"containers": [{"name": "c", f"u{at}": 1} for at in range(size)]}
    },
    "duplicates": lambda size: {"spec": {"tolerations": [{"key": "k"}] * size}},
    "labels": lambda size: {"metadata": {"labels": {f"k{at}": "v" for at in range(size)}}},
}


def with_text(made, size):
    metadata = {
        **BASE["metadata"],
        **made.get("metadata", {}),
        "annotations": {"a": "x\n\u2028é" * 20 * size},
    }
    return {**BASE, **made, "metadata": metadata}


LONG_WAYS = {
    "json": lambda tree: Decoder().decode(
        POD, parse(orjson.dumps(tree), "application/json").tree, text=orjson.dumps(tree)
    ),
    "yaml": lambda tree: parse(yaml_codec.dump(tree), YAML),
    "create": lambda tree: MANAGER.create(tree, manager="m", time="2026-01-01T00:00:00Z"),
    "strategic": lambda tree: strategic.apply(tree, tree, POD),
    "json patch": lambda tree: json_patch.apply(
        tree, [{"op": "test", "path": "/metadata/name", "value": "x"}] * min(len(str(tree)) // 100, 10_000)
    ),
    "quote": lambda tree: gotext.quote(tree["metadata"]["annotations"]["a"]),
}


@parametrize_make(LONG)
@pytest.mark.parametrize("way", [pytest.param(way, id=name) for name, way in LONG_WAYS.items()])
def test_long_text_with_many_items_takes_linear_time(make, way):
    check_linear(
        lambda size: with_text(make(size), size), refused_or_not(way), size_of_run(2_000, 7_000), **LENIENT
    )


# --- YAML of up to half of the largest body, or with the full size of all of it: 3 MiB

LINES = {
    "mapping": lambda at: f"k{at}: v\n",
    "list": lambda _: "- v\n",
    "nested": lambda at: f"k{at}:\n  a:\n  - b: [c, {{d: e}}]\n",
    "numbers": lambda at: f"k{at}: 1.5e3\n",
    "texts": lambda at: f'k{at}: "a\\u00e9\\n"\n',
    "blocks": lambda at: f"k{at}: |\n  a\n  b\n",
    "folded": lambda at: f"k{at}: >-\n  a\n\n  b\n",
    "comments": lambda _: "# a comment\n",
    "blank": lambda _: "\n",
    "anchors": lambda at: f"k{at}: &a{at} v\n",
    "aliases": lambda at: "a: &a v\n" if at == 0 else f"k{at}: *a\n",
    "merges": lambda at: "a: &a {b: c}\n" if at == 0 else f"k{at}: {{<<: *a}}\n",
    "equal keys": lambda _: "k: v\n",
    "tags": lambda at: f"k{at}: !!str 1\n",
    "question marks": lambda at: f"? k{at}\n: v\n",
    "documents": lambda _: "---\n",
    "plain over many lines": lambda at: "k: v\n" if at == 0 else "  v\n",
    "not closed": lambda _: "[",
    "tabs": lambda _: "\t",
    "words": lambda _: "a ",
}


def yaml_of(line, size):
    parts, length, at = [], 0, 0
    while length < size:
        parts.append(line(at))
        length, at = length + len(parts[-1]), at + 1
    return "".join(parts).encode()


@pytest.mark.timeout(600)
@pytest.mark.parametrize("line", [pytest.param(line, id=name) for name, line in LINES.items()])
def test_yaml_of_large_body_takes_linear_time(line):
    run = refused_or_not(lambda data: parse(data, YAML))
    size = size_of_run(3 << 18, 3 << 19)
    check_linear(lambda size: yaml_of(line, size), run, size, negligible=0.05, too_long=2.0, rounds=6)
