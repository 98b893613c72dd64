"""The format of response bodies: newlines, indentation, and errors in the negotiated format."""

import orjson
import pytest
import yaml

from mockube.apimachinery import status
from mockube.apimachinery.groups import GroupResource
from mockube.apiserver.request.error_responses import error_response
from mockube.apiserver.request.pages import document, raw_document
from mockube.apiserver.request.response import json_body
from mockube.apiserver.request_info import parse_query
from tests.support.server.handler_requests import request_of

MISSING = status.not_found(GroupResource("", "pods"), "p")


@pytest.mark.parametrize(
    ("path", "agent", "pretty"),
    [
        ("/", "kubectl/v1.36", False),
        ("/", "curl/8.0", True),
        ("/", "Wget/1.2", True),
        ("/", "Mozilla/5.0 (X11)", True),
        ("/", "Mozilla/4.0", False),
        ("/?pretty=true", "kubectl", True),
        ("/?pretty=1", "kubectl", True),
        ("/?pretty=0", "curl/8.0", False),
        ("/?pretty=x", "curl/8.0", False),
        ("/?pretty=", "curl/8.0", True),
    ],
)
async def test_pretty_json_is_indented(path, agent, pretty):
    request = request_of("GET", path, User_Agent=agent)
    request.query = parse_query(request.query_string)
    answer = await document({"a": [1], "b": {}})(request)
    compact, indented = b'{"a":[1],"b":{}}\n', b'{\n  "a": [\n    1\n  ],\n  "b": {}\n}'
    assert answer.body == (indented if pretty else compact)


async def test_raw_document_is_always_indented():
    assert (await raw_document({"a": 1})(request_of("GET", "/"))).body == b'{\n  "a": 1\n}'


def test_json_body_keeps_parts():
    parts = [b"[", memoryview(b"1"), b"]"]
    assert [*map(bytes, json_body(parts, pretty=False))] == [b"[", b"1", b"]", b"\n"]


@pytest.mark.parametrize(
    ("accept", "kind"),
    [
        ("", "application/json"),
        ("application/json", "application/json"),
        ("text/html", "application/json"),
        ("application/yaml", "application/yaml"),
        ("application/yaml;as=Table;v=v1;g=meta.k8s.io", "application/json"),
        ("application/vnd.kubernetes.protobuf,application/json", "application/vnd.kubernetes.protobuf"),
    ],
)
def test_error_has_negotiated_format(accept, kind):
    answer = error_response(MISSING, request_of("GET", "/", Accept=accept))
    assert (answer.status, answer.content_type) == (404, kind)
    is_logged = accept not in ("text/html", "application/yaml;as=Table;v=v1;g=meta.k8s.io")
    assert answer.status_object == (orjson.dumps(MISSING.status()) if is_logged else b"")
    if kind == "application/json":
        is_taken = accept in ("", kind)
        indented = orjson.dumps(MISSING.status(), option=orjson.OPT_INDENT_2)
        assert answer.body == (orjson.dumps(MISSING.status()) + b"\n" if is_taken else indented)
    elif kind == "application/yaml":
        assert yaml.safe_load(answer.body) == MISSING.status()
    else:
        assert answer.body.startswith(b"k8s\0")
