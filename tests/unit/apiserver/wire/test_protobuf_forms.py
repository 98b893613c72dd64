import pytest

from mockube.apiserver.wire.protobuf.decode import decoder
from mockube.apiserver.wire.protobuf.encode import encoder
from mockube.apiserver.wire.protobuf.forms import format_duration, parse_duration
from mockube.apiserver.wire.protobuf.tables import MAX_DEPTH
from mockube.apiserver.wire.protobuf.varint import ProtobufError


def read(message, payload):
    return decoder(message)(payload, MAX_DEPTH)


def write(message, value):
    return encoder(message)(value, MAX_DEPTH)


@pytest.mark.parametrize(
    ("message", "json", "payload"),
    [
        pytest.param("meta.v1.Time", None, b"", id="unset time"),
        pytest.param(
            "meta.v1.Time", "2026-11-20T08:08:16Z", b"\x08\xf0\xff\xff\xd7\x06\x10\x00", id="a time"
        ),
        pytest.param("meta.v1.Time", "1970-01-01T00:00:00Z", b"\x08\x00\x10\x00", id="1970 is a time"),
        pytest.param("meta.v1.MicroTime", None, b"", id="unset micro time"),
        pytest.param(
            "meta.v1.MicroTime", "1970-01-01T00:00:01.000002Z", b"\x08\x01\x10\xd0\x0f", id="a micro time"
        ),
        pytest.param("meta.v1.Duration", "0s", b"\x08\x00", id="no time at all"),
        pytest.param("meta.v1.Duration", "1m30s", b"\x08\x80\x88\xac\xa3\xcf\x02", id="a duration"),
        pytest.param("resource.Quantity", "100m", b"\x0a\x04100m", id="a quantity"),
        pytest.param("intstr.IntOrString", 80, b"\x08\x00\x10\x50\x1a\x00", id="a number"),
        pytest.param("intstr.IntOrString", "http", b"\x08\x01\x10\x00\x1a\x04http", id="a string"),
        pytest.param("runtime.RawExtension", None, b"", id="unset extension"),
        pytest.param("runtime.RawExtension", {"b": [1, None]}, b'\x0a\x0e{"b":[1,null]}', id="an extension"),
        pytest.param("meta.v1.FieldsV1", {"f:a": {}}, b'\x0a\x0a{"f:a":{}}', id="fields"),
        pytest.param("meta.v1.Verbs", [], b"", id="no verbs"),
        pytest.param("meta.v1.Verbs", ["get", "list"], b"\x0a\x03get\x0a\x04list", id="verbs"),
        pytest.param("apiextensions.v1.JSON", False, b"\x0a\x05false", id="any JSON"),
        pytest.param("apiextensions.v1.JSONSchemaPropsOrBool", False, b"\x08\x00", id="no schema"),
        pytest.param("apiextensions.v1.JSONSchemaPropsOrBool", True, b"\x08\x01", id="any schema"),
        pytest.param("apiextensions.v1.JSONSchemaPropsOrStringArray", ["a"], b"\x12\x01a", id="names"),
    ],
)
def test_special_forms_round_trip(message, json, payload):
    assert read(message, payload) == json
    assert write(message, json) == payload


@pytest.mark.parametrize(
    ("message", "json"),
    [
        pytest.param("apiextensions.v1.JSONSchemaPropsOrBool", {"type": "string"}, id="a schema, not a bool"),
        pytest.param(
            "apiextensions.v1.JSONSchemaPropsOrArray", {"type": "string"}, id="a schema, not a list"
        ),
        pytest.param("apiextensions.v1.JSONSchemaPropsOrArray", [{"type": "string"}], id="a list of schemas"),
    ],
)
def test_schemas_round_trip(message, json):
    assert read(message, write(message, json)) == json


@pytest.mark.parametrize(
    ("message", "payload", "json"),
    [
        pytest.param(
            "meta.v1.Time", b"\x08\x01\x10\xff\x93\xeb\xdc\x03", "1970-01-01T00:00:01Z", id="fractions"
        ),
        pytest.param(
            "meta.v1.Time", b"\x08\x80\x92\xb8\xc3\x98\xfe\xff\xff\xff\x01", None, id="Go's zero time"
        ),
        pytest.param("meta.v1.MicroTime", b"\x10\xcf\x0f", "1970-01-01T00:00:00.000001Z", id="nanoseconds"),
        pytest.param("resource.Quantity", b"", "0", id="unset quantity"),
    ],
)
def test_special_forms_decode_as_server_does(message, payload, json):
    assert read(message, payload) == json


@pytest.mark.parametrize(
    ("message", "json", "payload"),
    [
        pytest.param(
            "meta.v1.Time", "2026-11-20T10:08:16+02:00", b"\x08\xf0\xff\xff\xd7\x06\x10\x00", id="a zone"
        ),
        pytest.param("meta.v1.Time", "1970-01-01T00:00:01.9Z", b"\x08\x01\x10\x00", id="fractions"),
        pytest.param("meta.v1.Time", "0001-01-01T00:00:00Z", b"", id="Go's zero time"),
        pytest.param("resource.Quantity", None, b"\x0a\x010", id="unset quantity"),
        pytest.param("resource.Quantity", 2, b"\x0a\x012", id="a bare number"),
    ],
)
def test_special_forms_encode_as_server_does(message, json, payload):
    assert write(message, json) == payload


@pytest.mark.parametrize(
    ("message", "json"),
    [
        pytest.param("meta.v1.Time", "yesterday", id="no time"),
        pytest.param("meta.v1.Time", "2026-11-20T08:08:16", id="no zone"),
        pytest.param("meta.v1.Time", 5, id="a number for a time"),
        pytest.param("meta.v1.Duration", "1 hour", id="no duration"),
        pytest.param("resource.Quantity", [], id="no quantity"),
        pytest.param("intstr.IntOrString", 1.5, id="neither int nor string"),
        pytest.param("meta.v1.Verbs", "get", id="a string for a list"),
    ],
)
def test_invalid_special_form_is_refused(message, json):
    with pytest.raises(ProtobufError):
        write(message, json)


def test_time_beyond_calendar_is_refused():
    with pytest.raises(ProtobufError, match="no such time"):
        read("meta.v1.Time", b"\x08" + b"\xff" * 8 + b"\x7f")


@pytest.mark.parametrize(
    ("nanoseconds", "text"),
    [
        pytest.param(1, "1ns", id="nanoseconds"),
        pytest.param(1_500, "1.5µs", id="microseconds"),
        pytest.param(2_000_000, "2ms", id="milliseconds"),
        pytest.param(10**9, "1s", id="a second"),
        pytest.param(60 * 10**9, "1m0s", id="a minute"),
        pytest.param(-5_400 * 10**9, "-1h30m0s", id="before"),
        pytest.param(2**63 - 1, "2562047h47m16.854775807s", id="the longest"),
    ],
)
def test_durations_are_parsed(nanoseconds, text):
    assert format_duration(nanoseconds) == text
    assert parse_duration(text) == nanoseconds


@pytest.mark.parametrize(
    ("text", "nanoseconds"),
    [("0", 0), ("+1.5h", 5_400 * 10**9), (".5s", 5 * 10**8), ("1us", 1_000), ("1s1s", 2 * 10**9)],
)
def test_durations_in_human_form_are_parsed(text, nanoseconds):
    assert parse_duration(text) == nanoseconds


@pytest.mark.parametrize("text", ["", "5", "s", ".s", "1d", "1s ", "--1s"])
def test_invalid_duration_is_refused(text):
    with pytest.raises(ProtobufError, match=r"time: .* duration"):
        parse_duration(text)
