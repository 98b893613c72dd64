import pytest

from mockube.apiserver.wire.protobuf import tables
from mockube.apiserver.wire.protobuf.envelope import (
    MAGIC,
    decode,
    encode,
    encode_item,
    encode_list,
    is_protobuf,
    watch_frame,
)
from mockube.apiserver.wire.protobuf.varint import ProtobufError, UnknownKind
from tests.support.server.watch_frames import watch_events

NAMESPACE = {"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": "a"}, "spec": {}, "status": {}}
METADATA = b'\x0a\x01a\x12\x00\x1a\x00"\x00*\x002\x008\x00B\x00'
ENCODED = (
    b"k8s\x00"
    b"\x0a\x0f\x0a\x02v1\x12\x09Namespace"
    b"\x12\x19\x0a\x11" + METADATA + b"\x12\x00\x1a\x02\x0a\x00"
    b"\x1a\x00\x22\x00"
)
KINDS = [
    pytest.param(version, kind, id=f"{version} {kind}")
    for version, kinds in tables._table().kinds.items()
    for kind in kinds
]


def test_object_round_trips():
    assert encode(NAMESPACE) == ENCODED
    assert decode(ENCODED) == NAMESPACE
    assert list(decode(ENCODED)) == list(NAMESPACE)


LISTS = [
    pytest.param(version, kind, id=f"{version} {kind}")
    for version, kinds in tables._table().kinds.items()
    for kind in kinds
    if (message := kinds.get(f"{kind}List"))
    and "items" in {field.name for field in tables.fields_of(message)}
]


@pytest.mark.parametrize(("version", "kind"), LISTS)
def test_list_of_encoded_items_equals_encoded_list(version, kind):
    head = {"kind": f"{kind}List", "apiVersion": version, "metadata": {"resourceVersion": "7"}}
    items = [{"kind": kind, "apiVersion": version, "metadata": {"name": name}} for name in "ab"]
    assert b"".join(encode_list(head, [*map(encode_item, items)])) == encode(head | {"items": items})
    assert b"".join(encode_list(head, [])) == encode(head | {"items": []})


def test_stored_protobuf_is_distinguished_from_json():
    assert is_protobuf(ENCODED)
    assert not is_protobuf(b'{"kind":"Namespace"}')


@pytest.mark.parametrize(("version", "kind"), KINDS)
def test_every_kind_round_trips(version, kind):
    """The test also compiles every message that is always present, in both directions."""
    shown = decode(encode({"kind": kind, "apiVersion": version}))
    assert (shown["kind"], shown["apiVersion"]) == (kind, version)
    assert decode(encode(shown)) == shown


def test_client_may_omit_kind():
    bare = MAGIC + b"\x12\x13\x0a\x11" + METADATA
    assert decode(bare, api_version="v1", kind="Namespace") == NAMESPACE
    with pytest.raises(UnknownKind):
        decode(bare)


def test_kind_of_envelope_overrides_expected_kind():
    assert decode(ENCODED, api_version="v1", kind="Pod")["kind"] == "Namespace"


@pytest.mark.parametrize(
    ("version", "kind"),
    [
        pytest.param("apps/v1", "DeleteOptions", id="of a group"),
        pytest.param("example.com/v1", "DeleteOptions", id="of custom resources"),
        pytest.param("v1", "Status", id="a Status"),
        pytest.param("policy/v1", "Eviction", id="an Eviction"),
        pytest.param("autoscaling/v1", "Scale", id="a Scale"),
        pytest.param("authentication.k8s.io/v1", "TokenRequest", id="a TokenRequest"),
        pytest.param("authorization.k8s.io/v1", "SubjectAccessReview", id="a review"),
        pytest.param("meta.k8s.io/v1", "PartialObjectMetadataList", id="partial metadata"),
    ],
)
def test_kinds_without_resource_are_known(version, kind):
    assert tables.message_of(version, kind).endswith(f".{kind}")


@pytest.mark.parametrize(
    ("version", "kind"),
    [
        pytest.param("meta.k8s.io/v1", "Table", id="Table has no message"),
        pytest.param("example.com/v1", "Widget", id="custom resource"),
        pytest.param("v1", "PodSpec", id="type that is not a kind"),
    ],
)
def test_unknown_kind_is_named(version, kind):
    with pytest.raises(UnknownKind, match=f'no protobuf message for kind "{kind}" of version "{version}"'):
        encode({"kind": kind, "apiVersion": version})


@pytest.mark.parametrize(
    ("data", "message"),
    [
        pytest.param(b"", "empty data", id="empty"),
        pytest.param(b"k8s\x00", "empty body", id="magic number only"),
        pytest.param(b"{}", r"expected prefix \[107 56 115 0\]", id="wrong magic number"),
        pytest.param(ENCODED[:-8], "unexpected EOF", id="cut short"),
        pytest.param(ENCODED.replace(b"\x01a", b"\x01\xff"), "invalid UTF-8", id="invalid UTF-8"),
    ],
)
def test_envelope_without_object_is_refused(data, message):
    with pytest.raises(ProtobufError, match=message):
        decode(data)


def test_lone_surrogate_is_refused():
    with pytest.raises(ProtobufError, match="invalid UTF-8"):
        encode({"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": "\ud800"}})


def test_watch_is_a_sequence_of_frames():
    stream = watch_frame("ADDED", ENCODED) + watch_frame("DELETED", ENCODED)
    assert stream.startswith(b"\x00\x00\x00\x3f\x0a\x05ADDED\x12\x36\x0a\x34k8s\x00")
    assert list(watch_events(stream)) == [("ADDED", NAMESPACE), ("DELETED", NAMESPACE)]


def test_truncated_frame_is_refused():
    with pytest.raises(ProtobufError, match="unexpected EOF"):
        list(watch_events(watch_frame("ADDED", ENCODED)[:-1]))
