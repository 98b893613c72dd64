"""Hostile bodies: trees with wrong values, text that is nearly JSON, YAML or protobuf,
and bombs that are small to send and large in memory.
"""

import orjson

from mockube.apiserver.wire.protobuf import envelope

MEGA = 1 << 20
JSON, YAML, PROTOBUF = "application/json", "application/yaml", "application/vnd.kubernetes.protobuf"

_ODD_TEXTS = (
    "", " ", ".", "..", "/", "\x00", "\u2028", "\ud7ff", "\U0010ffff", "é", "\r\nX: y", "%00", "a" * 254, "-1", "1e9", "NaN",
    "9" * 5000, "1e999999999", "0x10", "${ns}", "{}", "null", "2030-13-45T99:99:99Z", "0001-01-01T00:00:00Z",
    "9999-12-31T23:59:59.999999999Z", "1Gi1", "-" * 63, "a=b", "a in (", "!", "*", "$patch", "self.x", "10.0.0.1/99", "::1",
)  # fmt: skip
_ODD_NUMBERS = (
    0,
    -1,
    1,
    2**31,
    2**32,
    -(2**31) - 1,
    2**53 + 1,
    2**63 - 1,
    -(2**63),
    2**64 - 1,
    0.5,
    -0.0,
    1e308,
    5e-324,
)
_ODD_KEYS = (
    "", "$patch", "$retainKeys", "$deleteFromPrimitiveList/x", "$setElementOrder/containers", "metadata", "kind", "a/b/c",
    "\x00", "f:spec", "k:{", "apiVersion", "~1", "a" * 400,
)  # fmt: skip


def odd_text(random):
    return random.choice(_ODD_TEXTS)


def odd_value(random):
    """Return any value except an expected one."""
    return random.choice((
        None, True, False, [], {}, [[]], [None], [{}], [[[[[]]]]], {"": ""}, {"a": None}, [1, "a", None, {}],
        {"$patch": "delete"}, [{"$patch": "replace"}], [{"name": None}], [{"name": []}], {"name": {"name": {}}},
        random.choice(_ODD_NUMBERS), odd_text(random), {random.choice(_ODD_KEYS): odd_text(random)},
    ))  # fmt: skip


# --- trees


def mutated(tree, random, *, changes=None):
    """Return the tree with a few places of it changed."""
    for _ in range(changes or random.choice((1, 1, 1, 2, 5))):
        tree = _changed(tree, _any_path(tree, random), random)
    return tree


def _any_path(tree, random):
    """Return a random path from the root."""
    path = []
    while isinstance(tree, dict | list) and tree and (not path or random.random() < 0.8):
        step = random.choice(list(tree)) if isinstance(tree, dict) else random.randrange(len(tree))
        path.append(step)
        tree = tree[step]
    return path


def _changed(tree, path, random):
    if not path:
        return odd_value(random)
    step, *rest = path
    copy = dict(tree) if isinstance(tree, dict) else list(tree)
    if rest:
        copy[step] = _changed(tree[step], rest, random)
        return copy
    return random.choice((_replace, _replace, _drop, _duplicate, _move))(copy, step, random)


def _replace(tree, step, random):
    tree[step] = odd_value(random)
    return tree


def _drop(tree, step, _random):
    del tree[step]
    return tree


def _duplicate(tree, step, random):
    """Duplicate it: under another key, or as other items; a large one not again."""
    if isinstance(tree, dict):
        key = random.choice(_ODD_KEYS)
        if _size(tree[step]) <= MEGA:
            tree[key] = tree[step]
    else:
        count = random.choice((1, 3, 500))
        tree += [tree[step]] * min(count, MEGA // _size(tree[step]))
    return tree


def _size(tree):
    """Return about how many bytes of JSON a tree has, counted to a little more than MEGA."""
    size, waiting = 0, [tree]
    while waiting and size <= MEGA:
        value = waiting.pop()
        size += 2 + (len(value) if isinstance(value, str) else 0)
        if isinstance(value, dict | list):
            waiting += value.values() if isinstance(value, dict) else value
    return size


def _move(tree, step, _random):
    """Wrap it in a list or a map."""
    tree[step] = {"items": [tree[step]]} if isinstance(tree, dict) else [tree[step]]
    return tree


# --- bytes


def scramble(data, random):
    """Return bytes with a few of them changed, removed or doubled."""
    scrambled_bytes = bytearray(data)
    for _ in range(random.choice((1, 1, 3, 20))):
        position = random.randrange(len(scrambled_bytes) + 1)
        end = min(len(scrambled_bytes), position + random.choice((1, 1, 4, 100)))
        scrambled_bytes[position:end] = random.choice((
            b"", b"\xff", b"\x00", b"\xed\xa0\x80", b"\xc0\xaf", bytes(scrambled_bytes[position:end]) * 2, random.randbytes(3),
            b"{", b"]", b'"', b"\\ud800", b"NaN", b"-Infinity", b"1e400", b"9" * 5000, b"\xef\xbb\xbf", b",,", b"//",
        ))  # fmt: skip
    return bytes(scrambled_bytes)


def bomb(random):
    """Return a media type and a body that is larger than it seems."""
    return random.choice(_BOMBS)(random)


def _deep(random):
    depth = random.choice((100, 1_000, 10_001, 200_000))
    opened, closed = random.choice(((b"[", b"]"), (b'{"a":', b"}"), (b'{"spec":[', b"]}")))
    text = opened * depth + (b"1" + closed * depth) * random.choice((0, 1))
    return random.choice((JSON, YAML, "application/merge-patch+json", "application/apply-patch+yaml")), text


def _aliases(random):
    width, levels = random.choice(((9, 9), (2, 30), (1000, 3)))
    lines = [b"kind: ConfigMap", b"apiVersion: v1", b"metadata: {name: bomb}", b"a0: &a0 [x]"]
    lines += [
        b"a%d: &a%d [%s]" % (level, level, b",".join([b"*a%d" % (level - 1)] * width))
        for level in range(1, levels)
    ]
    return YAML, b"\n".join(lines)


_ODD_YAML = (
    b"a: &a\n  <<: *a\n", b"&a [*a]", b"&a {k: *a}", b"<<: [1, 2]", b"? [a, b]\n: c", b"? {a: b}\n: c", b"!!python/object:os.system x",
    b"!!binary x", b"!!set {a, b}", b"!!timestamp x", b"!!int x", b"!!float x", b"!!bool x", b"!!null x", b"!x y", b"%YAML 9.9\n---\na",
    b"--- a\n--- b", b"- - - - -", b"*nowhere", b"\t", b"a: b: c", b"[", b"{", b"a: 'b", b"a: |\n b\n\x07", b"\xff\xfe", b"a: 0x", b"a: 0o9",
    b"a: 0b", b"a: 1__2", b"a: 09", b"a: -_", b"a: +.inf", b"a: 1e99999", b"0x1: 1\n1: 2", b"~: 1", b".nan: 1", b"a: 1:2:3", b"a: 08_",
    b"= : =", b"a: =", b"a: !!int '1'", b"a: !!str {}", b"a: !!map []", b"a: !!seq {}", b"a: !!int 0x_", b"a: !!int ''", b"a: !!float ''",
    b"a: " + b"9" * 5000, b"a: 0x" + b"f" * 5000, b"a: 0b" + b"1" * 5000, b"? " + b"9" * 5000 + b"\n: 1",
)  # fmt: skip


def _odd_yaml(random):
    """As it is, or below an object's metadata."""
    text = random.choice(_ODD_YAML)
    if random.random() < 0.5:
        text = (
            b"kind: ConfigMap\napiVersion: v1\nmetadata:\n  name: odd\n  annotations:\n    "
            + text.replace(b"\n", b"\n    ")
        )
    return random.choice((YAML, "application/apply-patch+yaml")), text


_ODD_JSON = (
    b"", b" ", b"null", b"true", b"1", b'"a"', b"[]", b"{}", b"\x00", b"\xef\xbb\xbf{}", b"{}{}", b'{"a":1,"a":2}', b'{"kind":null}',
    b'{"kind":1,"apiVersion":[]}', b'{"kind":{},"apiVersion":"v1"}', b'{"kind":"ConfigMap","apiVersion":"v1","metadata":null}',
    b'{"metadata":[]}', b'{"metadata":"x"}', b'{"metadata":{"name":{}}}', b'{"a":"\\ud800"}', b'{"\\udfff":1}', b'{"a":' + b"9" * 5000 + b"}",
    b'{"a":1e' + b"9" * 400 + b"}", b'{"a":-}', b'{"a":01}', b'{"a":.5}', b"{'a':1}", b'{"a":"\x01"}', b'{"kind":"Status"}', b'{"kind":"List","items":[{}]}',
    b'{"kind":"\xff"}', b'{"metadata":{"annotations":{"a":"\\ud800"}}}', b'{"metadata":{"generateName":"\\u0000"}}',
)  # fmt: skip


def _odd_json(random):
    kinds = (
        JSON,
        JSON,
        "application/merge-patch+json",
        "application/json-patch+json",
        "application/strategic-merge-patch+json",
        "text/plain",
        "",
    )
    return random.choice(kinds), random.choice(_ODD_JSON)


def _large(random):
    """Too large to be stored: a stored object stays for a while, and would hide a memory leak."""
    size = random.choice((MEGA + 1, 3 * MEGA - 200, 3 * MEGA + 1))
    tree = {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "large"}}
    place = random.choice(("data", "name", "label", "key", "unknown"))
    filler = f"x{random.random()}".ljust(size, "x")
    if place == "data":
        tree["data"] = {"a": filler}
    elif place == "name":
        tree["metadata"]["name"] = filler
    elif place == "label":
        tree["metadata"]["labels"] = {"a": filler}
    else:
        tree |= {"data": {filler: ""}} if place == "key" else {filler: 1}
    return JSON, orjson.dumps(tree)


def _many_entries(random):
    count = random.choice((1_000, 100_000))
    metadata = {"name": "many"} | random.choice((
        {"labels": {f"k{index}": "" for index in range(count)}},
        {"finalizers": [f"example.com/f{index}" for index in range(count)]},
        {"ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": f"u{index}"} for index in range(count)]},
        {"managedFields": [{"manager": f"m{index}"} for index in range(count)]},
    ))  # fmt: skip
    return JSON, orjson.dumps({"kind": "ConfigMap", "apiVersion": "v1", "metadata": metadata})


def _doubling_patch(random):
    """Each copy copies all copies before it."""
    steps = [{"op": "add", "path": "/data", "value": {"a": "x" * 1000}}]
    steps += [
        {"op": "copy", "from": "/data", "path": f"/data/k{index}"}
        for index in range(random.choice((12, 40, 12_000)))
    ]
    return "application/json-patch+json", orjson.dumps(steps)


def _odd_protobuf(random):
    bodies = (
        b"", b"k8s", b"k8s\x00", b"k8s\x00\xff", b"k8s\x00\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f", b"k8s\x00" + b"\x0b" * 5000,
        b"k8s\x00" + b"\xff" * 5000, b"k8s\x00\x12\x05\x0a\x03\x0a\x01\x0a", b"k8s\x00\x0a\x04\x0a\x02v1\x12\x00", b"k8s\x00" + random.randbytes(200),
        b"k8s\x00" + b"\x12\x80\x80\x80\x01" * 100,
    )  # fmt: skip
    return PROTOBUF, random.choice(bodies)


_BOMBS = (
    _deep,
    _aliases,
    _odd_yaml,
    _odd_yaml,
    _odd_json,
    _odd_json,
    _odd_json,
    _large,
    _many_entries,
    _doubling_patch,
    _odd_protobuf,
    _odd_protobuf,
)


_BOMBS_OF = {
    JSON: (_odd_json, _odd_json, _many_entries, _large),
    YAML: (_odd_yaml, _odd_yaml, _aliases),
    PROTOBUF: (_odd_protobuf,),
}


def bomb_of(media_type, random):
    """Return a body that is larger than it seems, in JSON, YAML or protobuf."""
    return random.choice(_BOMBS_OF[media_type])(random)[1]


def encoded(tree, random):
    """Return a media type and a body: a tree in some format, randomly damaged."""
    format_ = random.choice((JSON, JSON, JSON, YAML, PROTOBUF))
    data = orjson.dumps(tree, option=orjson.OPT_NON_STR_KEYS)
    if format_ == PROTOBUF and isinstance(tree, dict):
        try:
            data = envelope.encode(tree)
        except (ValueError, TypeError, KeyError, AttributeError, OverflowError):  # kept as JSON
            format_ = JSON
    return format_, scramble(data, random) if random.random() < 0.4 else data
