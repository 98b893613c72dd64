"""Protobuf properties of all trees and all bytes.

Trees are generated from the message table in the form that Go decodes to, so that they round-trip.
"""

import contextlib

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mockube.apiserver.wire.protobuf.decode import decoder
from mockube.apiserver.wire.protobuf.encode import encoder
from mockube.apiserver.wire.protobuf.envelope import MAGIC, decode, encode
from mockube.apiserver.wire.protobuf.tables import MAX_DEPTH, fields_of
from mockube.apiserver.wire.protobuf.varint import ProtobufError, with_length
from tests.support.server.watch_frames import watch_events

MESSAGES = [
    "certificates.v1.CertificateSigningRequestSpec",
    "core.v1.Container",
    "core.v1.ContainerStatus",
    "core.v1.PersistentVolumeSpec",
    "core.v1.Secret",
    "core.v1.Volume",
    "events.v1.Event",
    "meta.v1.ObjectMeta",
    "networking.v1.IngressRule",
    "resource.v1.Device",
]
DEPTH = 2
"""The depth at which optional messages are omitted."""

TEXT = st.text(max_size=5)
NUMBERS = st.integers(-(2**31), 2**31 - 1)
ANY_JSON = st.recursive(
    NUMBERS | TEXT | st.booleans(), lambda inner: st.lists(inner, max_size=2), max_leaves=3
)
SCALARS = {
    "string": TEXT,
    "bool": st.booleans(),
    "int32": NUMBERS,
    "int64": st.integers(-(2**63), 2**63 - 1),
    "bytes": st.sampled_from(["", "AA==", "AQID"]),
}
FORMED = {
    "meta.v1.Time": st.sampled_from(["1969-12-31T23:59:59Z", "2026-11-20T08:08:16Z", "9999-12-31T23:59:59Z"]),
    "meta.v1.MicroTime": st.sampled_from(["1969-12-31T23:59:59.999999Z", "2026-11-20T08:08:16.000000Z"]),
    "meta.v1.FieldsV1": ANY_JSON,
    "resource.Quantity": st.sampled_from(["0", "100m", "1Gi"]),
    "intstr.IntOrString": NUMBERS | TEXT,
    "runtime.RawExtension": ANY_JSON,
    "certificates.v1.ExtraValue": st.lists(TEXT, max_size=2),
}


OBJECTS = [
    encode(tree)
    for tree in (
        {
            "kind": "Pod",
            "apiVersion": "v1",
            "metadata": {"name": "p", "creationTimestamp": "2026-11-20T08:08:16Z", "labels": {"a": "b"}},
            "spec": {
                "volumes": [{"name": "v", "secret": {"secretName": "s", "defaultMode": 420}}],
                "containers": [{"name": "c", "resources": {"limits": {"cpu": "1"}}}],
                "securityContext": {"supplementalGroups": [1, 300]},
            },
        },
        {
            "kind": "CustomResourceDefinition",
            "apiVersion": "apiextensions.k8s.io/v1",
            "spec": {
                "versions": [
                    {
                        "name": "v1",
                        "schema": {
                            "openAPIV3Schema": {
                                "properties": {"a": {"default": {"b": 1}, "maximum": 1.5, "items": [{}, {}]}},
                                "additionalProperties": True,
                            }
                        },
                    }
                ]
            },
        },
        {
            "kind": "ControllerRevision",
            "apiVersion": "apps/v1",
            "metadata": {"managedFields": [{"fieldsV1": {"f:data": {}}}]},
            "data": {"spec": ["a"]},
            "revision": 3,
        },
    )
]


@st.composite
def trees(draw, message, depth=0):
    tree = {}
    for field in fields_of(message):
        if field.json_option == "inline":
            tree |= draw(trees(field.element_type, depth))
            continue
        value = draw(members(field, depth))
        if value is not None or field.json_option == "always":
            tree[field.name] = value
    return tree


def members(field, depth):
    """Generate values of a field; None stands for nil, or for a zero that JSON omits."""
    value = values(field, depth)
    if field.is_repeated:
        return st.none() | st.lists(value, min_size=1, max_size=2)
    if field.is_map:
        return st.none() | st.dictionaries(TEXT, value, min_size=1, max_size=2).map(sorted_by_key)
    if field.optional:
        return st.none() | value
    if field.element_type in SCALARS and field.json_option == "omitempty":
        return value.map(lambda drawn: drawn or None)
    return st.none() | value if field.element_type == "bytes" else value


def sorted_by_key(entries):
    return dict(sorted(entries.items()))


def values(field, depth):
    if field.element_type in SCALARS | FORMED:
        return (SCALARS | FORMED)[field.element_type]
    too_deep = depth == DEPTH and (field.is_repeated or field.is_map or field.optional)
    return st.nothing() if too_deep else trees(field.element_type, depth + 1)


@pytest.mark.thorough
@given(st.data(), st.sampled_from(MESSAGES))
def test_any_tree_round_trips(data, message):
    tree = data.draw(trees(message))
    payload = encoder(message)(tree, MAX_DEPTH)
    assert orjson.dumps(decoder(message)(payload, MAX_DEPTH)) == orjson.dumps(tree)


@given(st.sampled_from(OBJECTS), st.data())
def test_any_bytes_are_decoded_or_refused(encoded, data):
    """Truncated or changed bytes are decoded to JSON or raise ProtobufError."""
    start = data.draw(st.integers(len(MAGIC), len(encoded)))
    end = data.draw(st.integers(start, len(encoded)))
    changed = encoded[:start] + data.draw(st.binary(max_size=8)) + encoded[end:]
    with contextlib.suppress(ProtobufError):
        assert orjson.dumps(decode(changed))


@given(st.binary(max_size=64))
def test_generated_bytes_are_decoded_or_refused(payload):
    for version, kind in (("v1", "Pod"), ("apiextensions.k8s.io/v1", "CustomResourceDefinition")):
        with contextlib.suppress(ProtobufError):
            assert orjson.dumps(
                decode(MAGIC + b"\x12" + with_length(payload), api_version=version, kind=kind)
            )


@given(st.binary(max_size=64))
def test_generated_frames_are_decoded_or_refused(stream):
    with contextlib.suppress(ProtobufError):
        assert all(orjson.dumps(tree) for _, tree in watch_events(stream))
