"""Messages of Protocol Buffers in expressions, as cel-go 0.29 checks and creates them."""

import pytest

from mockube.apimachinery.cel.environment import Environment
from mockube.apimachinery.cel.source import Issues
from mockube.apimachinery.cel.values import CelError

ENVIRONMENT = Environment({})


def evaluate(text):
    return ENVIRONMENT.compile(text).program.evaluate({})[0]


@pytest.mark.parametrize(
    "text",
    [
        "google.protobuf.Int32Value{value: 1} == 1",
        "google.protobuf.Int64Value{} == 0",
        "google.protobuf.UInt32Value{value: 1u} == 1u",
        "google.protobuf.StringValue{value: 'a'} == 'a'",
        "google.protobuf.BoolValue{value: true}",
        "google.protobuf.BytesValue{value: b'a'} == b'a'",
        "google.protobuf.FloatValue{value: 0.1} != 0.1",
        "google.protobuf.FloatValue{value: 1e300} > 1e300",
        "google.protobuf.DoubleValue{value: 0.1} == 0.1",
        "google.protobuf.Timestamp{seconds: 1, nanos: 2} == timestamp('1970-01-01T00:00:01.000000002Z')",
        "google.protobuf.Duration{seconds: 1} == duration('1s')",
        "google.protobuf.Struct{fields: {'a': 1}} == {'a': 1.0}",
        "google.protobuf.Struct{fields: {'a': 9007199254740993}} == {'a': '9007199254740993'}",
        "google.protobuf.ListValue{values: [b'a']} == ['YQ==']",
        "google.protobuf.ListValue{values: [duration('1s')]} == ['1s']",
        "google.protobuf.ListValue{values: [true, false]} == [true, false]",
        "google.protobuf.Value{} == null",
        "google.protobuf.Value{number_value: 1.0} == 1.0",
        "google.protobuf.Empty{} == google.protobuf.Empty{}",
        ".google.protobuf.Int32Value{?value: optional.of(1)} == 1",
    ],
)
def test_message_has_a_value_of_cel(text):
    assert evaluate(text) is True


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("google.protobuf.Int32Value{value: 'a'}", "expected type of field 'value' is 'int' but provided type is 'string'"),
        ("google.protobuf.Int32Value{x: 1}", "undefined field 'x'"),
        ("google.protobuf.Timestamp{value: 1}", "undefined field 'value'"),
        ("google.protobuf.Nothing{}", "undeclared reference to 'google.protobuf.Nothing' (in container '')"),
        ("int{}", "'int' is not a message type"),
    ],
)  # fmt: skip
def test_malformed_message_is_refused(text, problem):
    with pytest.raises(Issues) as refused:
        ENVIRONMENT.check(text)
    assert refused.value.issues[0].message == problem


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("google.protobuf.Int32Value{value: [2147483647][0] + 1}", "google.protobuf.Int32Value.value value type: integer overflow"),
        ("google.protobuf.Int64Value{value: dyn('a')}", "google.protobuf.Int64Value.value value type: unsupported type conversion"),
        ("google.protobuf.Struct{fields: dyn({1: 2})}", "google.protobuf.Struct.fields value type: unsupported type conversion"),
        ("google.protobuf.Any{type_url: 'x'}", "any.UnmarshalNew() failed during type conversion"),
    ],
)  # fmt: skip
def test_value_that_a_message_cannot_have_is_an_error(text, problem):
    with pytest.raises(CelError, match=problem.replace("(", r"\(").replace(")", r"\)")):
        evaluate(text)
