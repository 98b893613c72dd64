"""Errors of webhooks' responses; the messages are those of kube-apiserver 1.36 for a conversion webhook."""

import msgspec
import orjson
import pytest

from mockube.apiserver.customresources import conversion_review
from mockube.apiserver.customresources.conversion_review import ConversionFailed
from mockube.apiserver.wire.review_decode import status_message

THING = {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "x"}}
CONVERTED = THING | {"apiVersion": "example.com/v2"}
TYPE_META = (
    r'value of type struct { APIVersion string "json:\"apiVersion,omitempty\""; '
    r'Kind string "json:\"kind,omitempty\"" }'
)
NO_TYPE = "couldn't get version/kind; json parse error: "
FIELD = "json: cannot unmarshal {} into Go struct field {} of type {}"
EXPECTED = "expected webhook response of apiextensions.k8s.io/v1, Kind=ConversionReview, got "
TEXTS = {
    b"": f"{EXPECTED}/, Kind=",
    b"  \n": f"{EXPECTED}/, Kind=",
    b"null": f"{EXPECTED}/, Kind=",
    b"5": f"{NO_TYPE}json: cannot unmarshal number into Go {TYPE_META}",
    b"hello": f"{NO_TYPE}json: cannot unmarshal string into Go {TYPE_META}",
    b"[]": f"{NO_TYPE}json: cannot unmarshal array into Go {TYPE_META}",
    b"[": "yaml: line 1: did not find expected node content",
    b"{": f"{NO_TYPE}unexpected end of JSON input",
    b"a:\n\t- b": "yaml: line 2: found character that cannot start any token",
    b"\x00\x01\xff": "yaml: control characters are not allowed",
    b'{"kind": 5}': f"{NO_TYPE}json: cannot unmarshal number into Go struct field .kind of type string",
    b'{"apiVersion": "a/b/c"}': "unexpected GroupVersion string: a/b/c",
    b"kind: ConversionReview\napiVersion: apiextensions.k8s.io/v1": "no response provided",
}
REVIEWS = [
    ({"response": "a"}, FIELD.format("string", "ConversionReview.response", "v1.ConversionResponse")),
    ({"kind": ""}, f"{EXPECTED}apiextensions.k8s.io/v1, Kind="),
    ({"apiVersion": ""}, f"{EXPECTED}/, Kind=ConversionReview"),
    (
        {"kind": "List", "apiVersion": "v1"},
        'no kind "List" is registered for version "v1" in scheme "pkg/runtime/scheme.go:111"',
    ),
    (
        {"kind": "Status", "apiVersion": "v1"},
        "converting (v1.Status) to (v1.ConversionReview): unknown conversion",
    ),
]
RESPONSES = [
    ({"uid": 1}, FIELD.format("number", "ConversionResponse.response.uid", "types.UID")),
    ({"uid": None}, 'expected response.uid="1", got ""'),
    (
        {"convertedObjects": "a"},
        FIELD.format("string", "ConversionResponse.response.convertedObjects", "[]runtime.RawExtension"),
    ),
    ({"result": "Success"}, FIELD.format("string", "ConversionResponse.response.result", "v1.Status")),
    ({"result": None}, "response.result.status was '', not 'Success'"),
    ({"result": {"code": 1.5}}, FIELD.format("number 1.5", "Status.response.result.code", "int32")),
    ({"result": {"code": 2**31}}, FIELD.format("number 2147483648", "Status.response.result.code", "int32")),
    (
        {"result": {"details": {"causes": [{"reason": 1}]}}},
        FIELD.format("number", "StatusCause.response.result.details.causes.reason", "v1.CauseType"),
    ),
]


def problem(body):
    with pytest.raises(ConversionFailed) as failed:
        conversion_review.read(body, [THING], "example.com/v2", "1", "v1")
    prefix = "conversion webhook for example.com/v1, Kind=Thing failed: "
    assert str(failed.value).startswith(prefix)
    return str(failed.value).removeprefix(prefix)


def review(fields=None, **changes):
    success = {"uid": "1", "result": {"status": "Success"}, "convertedObjects": [CONVERTED]}
    kind = {"kind": "ConversionReview", "apiVersion": "apiextensions.k8s.io/v1"}
    return orjson.dumps(kind | {"response": success | (fields or {})} | changes)


@pytest.mark.parametrize("body", TEXTS)
def test_text_that_is_no_review_has_error_of_go(body):
    assert problem(body) == TEXTS[body]


@pytest.mark.parametrize(("changes", "message"), REVIEWS)
def test_review_of_other_type_has_error_of_go(changes, message):
    assert problem(review(**changes)) == message


@pytest.mark.parametrize(("response", "message"), RESPONSES)
def test_response_of_other_type_has_error_of_go(response, message):
    assert problem(review(response)) == message


def test_review_may_be_yaml():
    body = msgspec.yaml.encode(orjson.loads(review()))
    (converted,) = conversion_review.read(body, [THING], "example.com/v2", "1", "v1")
    assert converted == CONVERTED


@pytest.mark.parametrize("metadata", [{}, {"labels": {"a": "b"}}])
def test_part_of_object_without_metadata_gets_labels_of_converted_object(metadata):
    part = {name: THING[name] for name in ("apiVersion", "kind")}
    body = review({"convertedObjects": [part | {"apiVersion": "example.com/v2", "metadata": metadata}]})
    (converted,) = conversion_review.read(body, [part], "example.com/v2", "1", "v1")
    assert converted["metadata"] == metadata


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b'{"kind": "Status", "apiVersion": "v1", "message": "no way"}', "no way"),
        (b'{"kind": "Status", "apiVersion": "v1", "status": "Success"}', None),
        (b'{"kind": "Status", "apiVersion": "v1", "message": 1}', None),
        (b'{"message": "no kind"}', None),
        (b"404: Not Found", None),
        (b"", None),
    ],
)
def test_only_status_has_message_of_response_with_error_code(body, message):
    assert status_message(body) == message
