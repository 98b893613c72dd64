"""Invalid ConfigMaps in a store of Kubernetes objects, as another program could have written them."""

import orjson

from mockube.apiserver.wire.protobuf import envelope


def text(metadata=None, **fields):
    config_map = {
        "kind": "ConfigMap",
        "apiVersion": "v1",
        "metadata": {"name": "bad", "namespace": "default", "uid": "u"},
    }
    config_map["metadata"] |= metadata or {}
    return orjson.dumps(config_map | fields)


_PROTOBUF = envelope.encode(
    {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "bad", "namespace": "default", "uid": "u"}}
)

VALUES = {
    "nothing": b"",
    "no JSON": b"not json",
    "JSON that is cut off": text()[:-5],
    "a number": b"7",
    "a text": b'"text"',
    "a list": b"[]",
    "null": b"null",
    "no metadata": b'{"kind":"ConfigMap","apiVersion":"v1"}',
    "metadata that is a text": b'{"kind":"ConfigMap","apiVersion":"v1","metadata":"x"}',
    "metadata that is null": b'{"kind":"ConfigMap","apiVersion":"v1","metadata":null}',
    "labels that are a list": text({"labels": ["a"]}),
    "a label that is a number": text({"labels": {"a": 1}}),
    "annotations that are a text": text({"annotations": "x"}),
    "finalizers that are an object": text({"finalizers": {}}),
    "owners that are texts": text({"ownerReferences": ["x"]}),
    "managed fields that are a text": text({"managedFields": "x"}),
    "a generation that is a text": text({"generation": "x"}),
    "a time of deletion that is a number": text({"deletionTimestamp": 1}),
    "invalid UTF-8": text().replace(b'"u"}', b'"u"},"data":{"a":"\xff\xfe"}'),
    "another kind": text(kind="Secret"),
    "protobuf that is cut off": _PROTOBUF[:-3],
    "protobuf of noise": _PROTOBUF[:4] + bytes(range(256)),
    "very deep": b'{"a":' * 5000 + b"1" + b"}" * 5000,
}
"""Values by what is wrong with them."""

MISSHAPEN = {
    "data that is a list": text(data=["x"]),
    "data that is a number": text(data=7),
    "fields that cannot be": text(data={"a": {"b": [1]}}, binaryData="x", immutable="yes"),
}
"""Values with valid metadata and invalid fields."""
