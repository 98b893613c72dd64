"""Decoders, selectors and patches take linear time: twice the input takes at most 2.5 times as long."""

import orjson
import pytest

from mockube.apimachinery import durations, jsonpath, quantity, timestamps
from mockube.apimachinery.labels.parser import parse as parse_selector
from mockube.apimachinery.patch import json_merge, strategic
from mockube.apimachinery.patch.errors import PatchError
from mockube.apimachinery.schema.builtin import load
from mockube.apiserver import fields
from mockube.apiserver.patch import json_patch
from mockube.apiserver.patch.apply import FieldManager, VersionConverter
from mockube.apiserver.patch.apply.atoms import atom_of_type
from mockube.apiserver.schema import decoder_errors, document
from mockube.apiserver.schema.decode import Decoder
from mockube.apiserver.wire.parse import parse
from mockube.kubelet.node_pools.reading import read_pools
from tests.support.hostile.doubling import check_linear, size_of_run

pytestmark = pytest.mark.slow

POD, CONFIG_MAP = (load().kind("v1", kind) for kind in ("Pod", "ConfigMap"))
BASE = {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "x", "uid": "u"}}
MANAGER = FieldManager(
    kind="Pod",
    versions=VersionConverter(own="v1", atoms={"v1": atom_of_type(POD)}),
    empty={"kind": "Pod", "apiVersion": "v1", "metadata": {}},
)
WRITE = {"manager": "m", "time": "2026-01-01T00:00:00Z"}
LENIENT = {"negligible": 0.01, "too_long": 2.0}


def refused_or_not(run):
    def attempt(value):
        try:
            run(value)
        except (ValueError, PatchError) as error:
            str(error)

    return attempt


TEXTS = {
    durations.parse_duration: ("1ns", "0.0s", "9", "1h", "s", ".", "1."),
    quantity.parse: ("1", "0", ".", "e", "K", "1."),
    parse_selector: ("a=b,", "a in (b),", "!a,", "a", "(", "a in (b,", "=", ",", "a in (", "! "),
    fields.parse: ("a=b,", "a", "\\", ",", "=", "!", "a!=b,", "\\,"),
    timestamps.parse_time: ("1", "2026-01-01T00:00:00Z", "Z", ":"),
    read_pools: ("cpu=4,", "1,", "name=a:1,", "a=", ":", "9", "[", "[{count: 1},", "- count: 1\n"),
    jsonpath.parse: (
        ".a",
        "[0]",
        "[*]",
        "['a']",
        "[?(@.a==1)]",
        "[?(@",
        "[?(@ ",
        "['\\'",
        "[ ",
        "\\",
        "[?(@==",
    ),
}


@pytest.mark.parametrize(("read", "part"), [(read, part) for read, parts in TEXTS.items() for part in parts])
def test_text_decoding_takes_linear_time(read, part):
    check_linear(lambda size: part * (size // len(part)), refused_or_not(read), 40_000, **LENIENT)


@pytest.mark.parametrize("shape", ["{}", "{}Ki", "0.{}", "0.{}Ki", "1e-{}", "{}e3"])
@pytest.mark.parametrize("digit", "019")
def test_quantity_decoding_takes_linear_time(shape, digit):
    check_linear(
        lambda size: shape.format(digit * size),
        refused_or_not(lambda text: str(quantity.parse(text))),
        100_000,
        **LENIENT,
    )


BODIES = {
    "list": lambda size: b'{"a":[' + b",".join([b"1"] * size) + b"]}",
    "objects": lambda size: b'{"a":[' + b",".join([b"{}"] * size) + b"]}",
    "map": lambda size: b'{"a":{' + b",".join(b'"k%d":""' % at for at in range(size)) + b"}}",
    "unknown fields": lambda size: (
        b'{"metadata":{' + b",".join(b'"k%d":1' % at for at in range(size)) + b"}}"
    ),
    "long key over much": lambda size: (
        b'{"data":{"' + b"k" * 20 * size + b'":[' + b",".join([b'{"b":1,"b":1}'] * size) + b"]}}"
    ),
    "duplicates": lambda size: b"{" + b",".join([b'"metadata":{"name":"x"}'] * size) + b"}",
    "digits": lambda size: b'{"a":' + b"1" * size + b"}",
    "fraction": lambda size: b'{"a":1.' + b"1" * size + b"}",
    "colons": lambda size: b'{"a":"' + rb"::\u003a" * size + b'","b":1,"b":2}',
    "no end": lambda size: b'{"a":[' + b",".join([b"1"] * size) + b"}",
    "deep": lambda size: b'{"a":' * size,
    "surrogates": lambda size: b'{"a":"' + rb"\ud800" * size + b'"}',
    "no UTF-8": lambda size: b'{"a":"' + b"\xff" * size + b'"}',
}


def decode(of):
    def run(body):
        tree = parse(body, "application/json").tree
        if of is decoder_errors.UNTYPED:
            decoder_errors.find(of, document.parse(body))
        else:
            Decoder().decode(of, tree, text=body)

    return refused_or_not(run)


@pytest.mark.parametrize("of", [POD, CONFIG_MAP, decoder_errors.UNTYPED], ids=repr)
@pytest.mark.parametrize("make", [pytest.param(make, id=name) for name, make in BODIES.items()])
def test_json_decoding_takes_linear_time(make, of):
    check_linear(make, decode(of), size_of_run(8_000, 100_000), **LENIENT)


OBJECTS = {
    "labels": lambda size: {"metadata": {"labels": {f"k{at}": "v" for at in range(size)}}},
    "finalizers": lambda size: {"metadata": {"finalizers": [f"k{at}" for at in range(size)]}},
    "owners": lambda size: {"metadata": {"ownerReferences": [{"uid": f"k{at}"} for at in range(size)]}},
    "containers": lambda size: {
        "spec": {"containers": [{"name": f"k{at}", "image": "x"} for at in range(size)]}
    },
    "variables": lambda size: {
        "spec": {"containers": [{"name": "c", "env": [{"name": f"k{at}"} for at in range(size)]}]}
    },
    "tolerations": lambda size: {"spec": {"tolerations": [{"key": f"k{at}"} for at in range(size)]}},
    "equal containers": lambda size: {"spec": {"containers": [{"name": "c", "image": "x"}] * size}},
    "wrong containers": lambda size: {"spec": {"containers": [[]] * size}},
    "wrong finalizers": lambda size: {"metadata": {"finalizers": [{}] * size}},
}


def full_object(make, size):
    made = make(size)
    return {**BASE, **made, "metadata": {**BASE["metadata"], **made.get("metadata", {})}}


def apply_twice(tree):
    first = MANAGER.apply(BASE, tree, force=True, **WRITE)
    MANAGER.apply(first, BASE, force=True, **WRITE)


WAYS = {
    "merge": lambda tree: json_merge.apply(BASE, tree),
    "merge into the same": lambda tree: json_merge.apply(tree, orjson.loads(orjson.dumps(tree))),
    "strategic": lambda tree: strategic.apply(BASE, tree, POD),
    "strategic into the same": lambda tree: strategic.apply(tree, tree, POD),
    "create": lambda tree: MANAGER.create(tree, **WRITE),
    "update": lambda tree: MANAGER.update(BASE, tree, **WRITE),
    "apply": apply_twice,
}


@pytest.mark.parametrize("way", [pytest.param(way, id=name) for name, way in WAYS.items()])
@pytest.mark.parametrize("make", [pytest.param(make, id=name) for name, make in OBJECTS.items()])
def test_patches_take_linear_time(make, way):
    check_linear(
        lambda size: full_object(make, size), refused_or_not(way), size_of_run(1_500, 30_000), **LENIENT
    )


JSON_PATCHES = {
    "insert": lambda size: ({"a": []}, [{"op": "add", "path": "/a/0", "value": 1}] * size),
    "remove": lambda size: ({"a": [1] * size}, [{"op": "remove", "path": "/a/0"}] * size),
    "test": lambda size: ({"a": [1] * size}, [{"op": "test", "path": "/a", "value": [1] * 10}] * size),
    "copy": lambda size: (
        {"a": [1]},
        [{"op": "copy", "from": "/a", "path": f"/b{at}"} for at in range(size)],
    ),
    "long path": lambda size: ({"a": {}}, [{"op": "add", "path": "/a/" + "k" * size, "value": 1}] * 10),
    "many steps": lambda size: ({"a": {}}, [{"op": "test", "path": "/a" * size, "value": None}] * 3),
}


@pytest.mark.parametrize("make", [pytest.param(make, id=name) for name, make in JSON_PATCHES.items()])
def test_json_patches_take_linear_time(make):
    check_linear(
        make, refused_or_not(lambda given: json_patch.apply(*given)), size_of_run(2_500, 5_000), **LENIENT
    )
