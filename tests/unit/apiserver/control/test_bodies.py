"""The bodies of recorded requests."""

import orjson
import pytest

from mockube.apimachinery.groups import SECRETS, GroupResource
from mockube.apimachinery.secrets import MASK
from mockube.apiserver.control.bodies import MAX_BODY, NO_BODY, TOO_LARGE, UNREADABLE, fields_of, kept_body
from mockube.apiserver.control.recorder import RequestRecorder
from mockube.apiserver.registry.request_context import Body
from mockube.apiserver.request_info import parse
from mockube.apiserver.user import User
from mockube.apiserver.wire.frames import encode_object
from mockube.apiserver.wire.negotiation import MediaType
from mockube.component_base.clock import SteppedClock
from tests.support.server.handler_requests import request_of

CONFIG_MAPS = GroupResource("", "configmaps")
PATH = "/api/v1/namespaces/default/configmaps"


def fields(data, media_type="application/json", resource=CONFIG_MAPS, path=PATH, method="POST"):
    data = data if isinstance(data, bytes) else orjson.dumps(data)
    return fields_of(
        kept_body(parse(method, path, watch=False), Body(data=data, media_type=media_type)), resource
    )


@pytest.mark.parametrize(
    ("data", "media_type", "expected"),
    [
        (b'{"a": 1}', "application/json", {"a": 1}),
        (b'{"a": 1}', "", {"a": 1}),
        (b"a: 1", "application/yaml", {"a": 1}),
        (
            b'[{"op": "remove", "path": "/a"}]',
            "application/json-patch+json",
            [{"op": "remove", "path": "/a"}],
        ),
        (b'{"a": null}', "application/merge-patch+json; charset=utf-8", {"a": None}),
        (b"a: 1", "application/apply-patch+yaml", {"a": 1}),
    ],
)
def test_body_is_decoded_by_its_media_type(data, media_type, expected):
    assert fields(data, media_type) == {"body": expected}


def test_body_in_protobuf_is_an_object():
    tree = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"b": "c"}}
    data = encode_object(tree, MediaType.PROTOBUF)
    assert fields(data, MediaType.PROTOBUF)["body"] == tree


@pytest.mark.parametrize(
    ("data", "media_type"), [(b"{", "application/json"), (b"x", "text/plain"), (b"x", "")]
)
def test_body_that_cannot_be_decoded_is_omitted(data, media_type):
    assert fields(data, media_type) == {"bodyOmitted": UNREADABLE}


def test_large_body_is_omitted():
    assert fields(b" " * (MAX_BODY + 1)) == {"bodyOmitted": TOO_LARGE}


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/apis/authentication.k8s.io/v1/tokenreviews"),
        ("POST", "/api/v1/namespaces/default/pods/a/proxy/login"),
        ("POST", "/mockube/login"),
    ],
)
def test_bodies_that_may_have_tokens_are_not_kept(method, path):
    assert kept_body(parse(method, path, watch=False), Body(data=b'{"token": "hunter2"}')) is NO_BODY


@pytest.mark.parametrize(
    "body",
    [
        {"data": {"a": "hunter2"}, "stringData": {"a": "hunter2"}},
        {"Data": {"a": "hunter2"}, "stringdata": "hunter2", "spec": ["hunter2"]},
        {"data": "hunter2"},
        {"metadata": {"name": "a", "stringData": {"a": "hunter2"}}},
        {"metadata": {"annotations": {"kubectl.kubernetes.io/last-applied-configuration": "hunter2"}}},
        [{"op": "add", "path": "/data/a", "value": "hunter2"}],
        [{"op": "add", "path": "data/a", "value": "hunter2"}],
        [{"op": "test", "path": "", "value": {"data": {"a": "hunter2"}}}],
        [{"op": "add", "path": "/stringData", "value": {"a": "hunter2"}, "Value": "hunter2"}],
        [{"op": "add", "path": "/Data", "value": ["hunter2"]}],
        [{"op": "add", "path": "/metadata", "value": {"stringData": {"a": "hunter2"}}}],
        [{"op": "add", "path": "/metadata/data", "value": {"a": "hunter2"}}],
        ["hunter2"],
        "hunter2",
    ],
)
def test_values_of_secrets_are_masked(body):
    found = fields(body, "application/json-patch+json", SECRETS)
    assert MASK in str(found)
    assert "hunter2" not in str(found)


def test_values_of_a_secret_that_is_sent_to_another_path_are_masked():
    body = {"kind": "Secret", "data": {"a": "hunter2"}}
    assert fields(body)["body"] == {"kind": "Secret", "data": {"a": MASK}}


def test_bodies_of_requests_that_were_dropped_are_not_kept():
    recorder = RequestRecorder(SteppedClock(), max_calls=2, max_body_bytes=MAX_BODY)
    recorded = [recorder.begin(request_with(b"1")) for _ in range(3)]
    for each in recorded:
        recorder.end(each, 201, 0, 0.0)
    assert [each.outcome.body.body is None for each in recorded] == [True, False, False]


def test_names_of_secrets_and_their_values_are_shown():
    body = {"metadata": {"name": "a", "labels": {"b": "c"}}, "type": "Opaque", "data": {"password": "eA=="}}
    assert fields(body, resource=SECRETS)["body"] == {**body, "data": {"password": MASK}}


def test_bodies_have_a_limit_of_bytes():
    recorder = RequestRecorder(SteppedClock(), max_body_bytes=MAX_BODY)
    recorded = [recorder.begin(request_with(b'"%s"' % (b"x" * (MAX_BODY // 2 - 2)))) for _ in range(3)]
    for each in recorded:
        recorder.end(each, 201, 0, 0.0)
    bodies = [fields_of(each.outcome.body, CONFIG_MAPS) for each in recorded]
    assert "dropped for newer ones" in bodies[0]["bodyOmitted"]
    assert [[*body] for body in bodies[1:]] == [["body"], ["body"]]
    recorder.clear()
    recorder.end(last := recorder.begin(request_with(b"1")), 201, 0, 0.0)
    assert fields_of(last.outcome.body, CONFIG_MAPS) == {"body": 1}


def test_no_bodies_are_kept_by_default():
    recorder = RequestRecorder(SteppedClock())
    recorder.end(recorded := recorder.begin(request_with(b"1")), 201, 0, 0.0)
    assert recorded.outcome.body is NO_BODY


def request_with(data):
    request = request_of("POST", PATH)
    request.info, request.user = parse("POST", PATH, watch=False), User(name="alice")
    request.context = type("Context", (), {"body": Body(data=data), "user_agent": "tests"})()
    return request
