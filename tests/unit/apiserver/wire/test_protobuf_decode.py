import orjson
import pytest

from mockube.apiserver.wire.protobuf.decode import decoder
from mockube.apiserver.wire.protobuf.tables import MAX_DEPTH
from mockube.apiserver.wire.protobuf.varint import (
    FIXED64,
    LENGTH,
    VARINT,
    ProtobufError,
    tag_of,
    varint,
    with_length,
)


def field(number, payload):
    return varint(tag_of(number, LENGTH)) + with_length(payload)


def number(of, value):
    return varint(tag_of(of, VARINT)) + varint(value % 2**64)


def read(message, payload, depth=MAX_DEPTH):
    return decoder(message)(payload, depth)


@pytest.mark.parametrize(
    ("message", "payload", "json"),
    [
        pytest.param("core.v1.EnvVar", field(1, b"A") + field(2, b""), {"name": "A"}, id="empty string is omitted"),
        pytest.param("core.v1.EnvVar", b"", {"name": ""}, id="zero value without omitempty is kept"),
        pytest.param("core.v1.Toleration", number(5, 0), {"tolerationSeconds": 0}, id="zero behind a pointer is kept"),
        pytest.param("core.v1.Toleration", b"", {}, id="nil pointer is omitted"),
        pytest.param("apps.v1.DeploymentSpec", b"", {
            "selector": None, "template": {"metadata": {}, "spec": {"containers": None}}, "strategy": {},
        }, id="nil is null without omitempty"),
        pytest.param("core.v1.ConfigMapList", b"", {"metadata": {}, "items": []}, id="items of an empty list object"),
        pytest.param("core.v1.ServiceStatus", b"", {"loadBalancer": {}}, id="structs are never omitted"),
        pytest.param("meta.v1.ObjectMeta", field(8, b""), {}, id="zero time with omitzero is omitted"),
        pytest.param("core.v1.PodCondition", field(3, b""), {
            "type": "", "status": "", "lastProbeTime": None, "lastTransitionTime": None,
        }, id="zero time is null"),
        pytest.param("core.v1.Secret", field(2, field(1, b"b") + field(2, b"\x01")) + field(2, field(1, b"a")), {
            "metadata": {}, "data": {"a": "", "b": "AQ=="},
        }, id="a map is in order, its bytes in base64"),
        pytest.param("core.v1.RangeAllocation", b"", {"metadata": {}, "range": "", "data": None}, id="no bytes"),
        pytest.param("core.v1.RangeAllocation", field(3, b""), {
            "metadata": {}, "range": "", "data": "",
        }, id="empty bytes"),
        pytest.param("core.v1.Volume", field(2, field(2, field(1, b""))) + field(1, b"v"), {
            "name": "v", "emptyDir": {},
        }, id="fields of an inlined struct"),
        pytest.param("core.v1.PodSpec", field(3, b"Never") + field(20, field(1, b"i")), {
            "initContainers": [{"name": "i", "resources": {}}], "containers": None, "restartPolicy": "Never",
        }, id="members have the order of the JSON form"),
        pytest.param("apps.v1.StatefulSetSpec", field(4, b""), {
            "selector": None, "template": {"metadata": {}, "spec": {"containers": None}}, "volumeClaimTemplates": [
                {"kind": "PersistentVolumeClaim", "apiVersion": "v1", "metadata": {}, "spec": {"resources": {}}, "status": {}}
            ], "serviceName": "", "updateStrategy": {},
        }, id="claim template has kind and version"),
        pytest.param("core.v1.ContainerStateTerminated", number(1, -1), {
            "exitCode": -1, "startedAt": None, "finishedAt": None,
        }, id="a negative number"),
        pytest.param("core.v1.PodSecurityContext", number(4, 1) + number(4, 2) + field(4, b"\x03\x80\x01"), {
            "supplementalGroups": [1, 2, 3, 128],
        }, id="numbers one by one and packed"),
        pytest.param("core.v1.Pod", field(2, field(10, b"n")) + field(2, field(16, b"h")), {
            "metadata": {}, "spec": {"containers": None, "nodeName": "n", "hostname": "h"}, "status": {},
        }, id="a message in parts is one message"),
        pytest.param("core.v1.EnvVar", field(1, b"A") + field(99, b"?") + number(98, 7), {
            "name": "A",
        }, id="unknown fields are skipped"),
    ],
)  # fmt: skip
def test_protobuf_decodes_to_json_of_go(message, payload, json):
    assert orjson.dumps(read(message, payload)) == orjson.dumps(json)


@pytest.mark.parametrize(
    ("payload", "shown"),
    [
        pytest.param(b"\x00\x00\x00\x00\x00\x00\xf8\x3f", b"1.5", id="a fraction"),
        pytest.param(b"\x00\x00\x00\x00\x00\x00\x24\x40", b"10", id="integral double without fraction"),
    ],
)
def test_doubles_are_decoded(payload, shown):
    tree = read("apiextensions.v1.JSONSchemaProps", varint(tag_of(9, FIXED64)) + payload)
    assert orjson.dumps(tree) == b'{"maximum":' + shown + b"}"


@pytest.mark.parametrize(
    ("message", "payload", "error"),
    [
        pytest.param("core.v1.EnvVar", b"\x0a\x05abc", "unexpected EOF", id="a string cut short"),
        pytest.param(
            "core.v1.EnvVar", number(1, 7), "wrong wireType = 0 for field name", id="a number for a string"
        ),
        pytest.param("core.v1.EnvVar", varint(tag_of(9, 3)), "illegal wireType 3", id="a group"),
        pytest.param("core.v1.EnvVar", b"\x02\x00", "illegal tag 0", id="field number 0"),
        pytest.param("runtime.RawExtension", field(1, b"{"), "invalid JSON", id="JSON cut short"),
        pytest.param(
            "apiextensions.v1.JSONSchemaProps",
            varint(tag_of(9, FIXED64)) + b"\x00" * 6 + b"\xf8\x7f",
            "unsupported value",
            id="not a number",
        ),
    ],
)
def test_malformed_protobuf_is_refused(message, payload, error):
    with pytest.raises(ProtobufError, match=error):
        read(message, payload)


def test_decoding_depth_is_limited():
    """The field `not` of a schema is a schema, so messages can be nested to any depth."""
    payload = b""
    for _ in range(MAX_DEPTH - 1):
        payload = field(28, payload)
    assert "not" in read("apiextensions.v1.JSONSchemaProps", payload)
    with pytest.raises(ProtobufError, match="nested too deeply"):
        read("apiextensions.v1.JSONSchemaProps", field(28, payload))


def test_decoded_trees_share_no_mutable_values():
    payload = field(1, field(1, b"p"))
    first, second = read("core.v1.Pod", payload), read("core.v1.Pod", payload)
    first["metadata"]["name"] = "changed"
    first["status"]["phase"] = "Running"
    assert second == {"metadata": {"name": "p"}, "spec": {"containers": None}, "status": {}}
    assert read("core.v1.Pod", payload) == second
