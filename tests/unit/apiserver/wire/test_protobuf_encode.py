import pytest

from mockube.apiserver.wire.protobuf.encode import encoder
from mockube.apiserver.wire.protobuf.tables import MAX_DEPTH
from mockube.apiserver.wire.protobuf.varint import ProtobufError


def write(message, value):
    return encoder(message)(value, MAX_DEPTH)


@pytest.mark.parametrize(
    ("message", "json", "payload"),
    [
        pytest.param("core.v1.EnvVar", {}, b"\x0a\x00\x12\x00", id="empty strings are written"),
        pytest.param("core.v1.Toleration", {"tolerationSeconds": 0}, b"\x0a\x00\x12\x00\x1a\x00\x22\x00\x28\x00", id="zero behind a pointer is written"),
        pytest.param("core.v1.Toleration", {"tolerationSeconds": None}, b"\x0a\x00\x12\x00\x1a\x00\x22\x00", id="null is omitted"),
        pytest.param("core.v1.ServiceStatus", {}, b"\x0a\x00", id="an empty struct is written"),
        pytest.param("core.v1.ServiceStatus", {"conditions": []}, b"\x0a\x00", id="empty list is omitted"),
        pytest.param("core.v1.EnvVar", {"value": "b", "name": "a"}, b"\x0a\x01a\x12\x01b", id="field numbers are in order"),
        pytest.param("core.v1.EnvVar", {"name": "a", "kind": "EnvVar", "?": 1}, b"\x0a\x01a\x12\x00", id="unknown fields are skipped"),
        pytest.param("core.v1.NodeSelectorTerm", None, b"", id="null for a struct is its zero"),
        pytest.param("meta.v1.LabelSelector", {"matchLabels": {"b": "2", "a": "1"}}, b"\x0a\x06\x0a\x01a\x12\x011\x0a\x06\x0a\x01b\x12\x012", id="map keys are in order"),
        pytest.param("core.v1.HTTPGetAction", {"port": 80}, b"\x0a\x00\x12\x06\x08\x00\x10\x50\x1a\x00\x1a\x00\x22\x00", id="a form"),
        pytest.param("core.v1.Volume", {"name": "v", "emptyDir": {}}, b"\x0a\x01v\x12\x04\x12\x02\x0a\x00", id="inlined fields are gathered"),
        pytest.param("core.v1.ContainerRestartRuleOnExitCodes", {"values": [-1, 2]}, b"\x0a\x00\x10" + b"\xff" * 9 + b"\x01\x10\x02", id="numbers one by one"),
    ],
)  # fmt: skip
def test_json_encodes_to_protobuf_of_go(message, json, payload):
    assert write(message, json) == payload


def test_bytes_in_map_may_be_null():
    written = write("core.v1.Secret", {"data": {"a": "AQ==", "b": None}})
    assert b"\x12\x06\x0a\x01a\x12\x01\x01" in written
    assert b"\x12\x03\x0a\x01b" in written


@pytest.mark.parametrize(
    ("message", "json", "error"),
    [
        pytest.param("core.v1.EnvVar", {"name": 1}, "cannot write int as string", id="a number for a string"),
        pytest.param("core.v1.EnvVar", "x", "cannot write str as dict", id="a string for a message"),
        pytest.param("core.v1.PodSpec", {"containers": {}}, "cannot write dict as list", id="a map for a list"),
        pytest.param("core.v1.PodSpec", {"nodeSelector": []}, "cannot write list as dict", id="a list for a map"),
        pytest.param("core.v1.PodSpec", {"hostNetwork": 1}, "cannot write int as bool", id="a number for a bool"),
        pytest.param("core.v1.PodSpec", {"priority": True}, "cannot write bool as int32", id="a bool for a number"),
        pytest.param("core.v1.PodSpec", {"priority": 2**31}, "cannot write int as int32", id="too large"),
        pytest.param("core.v1.Secret", {"data": {"a": "?"}}, "illegal base64", id="no base64"),
        pytest.param("core.v1.Secret", {"data": {"a": "é"}}, "illegal base64", id="no ASCII"),
        pytest.param("core.v1.Secret", {"data": {"a": 1}}, "cannot write int as bytes", id="a number for bytes"),
        pytest.param("apiextensions.v1.JSONSchemaProps", {"maximum": "1"}, "cannot write str as double", id="a string for a number"),
    ],
)  # fmt: skip
def test_unencodable_json_is_refused(message, json, error):
    with pytest.raises(ProtobufError, match=error):
        write(message, json)


def test_deeply_nested_json_is_refused():
    value = []
    for _ in range(1_000):
        value = [value]
    with pytest.raises(ProtobufError, match="cannot write JSON within protobuf"):
        write("runtime.RawExtension", value)


def test_encoding_depth_is_limited():
    schema = {}
    for _ in range(MAX_DEPTH - 1):
        schema = {"not": schema}
    assert write("apiextensions.v1.JSONSchemaProps", schema)
    with pytest.raises(ProtobufError, match="nested too deeply"):
        write("apiextensions.v1.JSONSchemaProps", {"not": schema})
