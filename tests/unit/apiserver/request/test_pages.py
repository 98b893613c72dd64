"""The index of paths, and discovery in every format."""

import orjson
import pytest

from mockube.apiserver.kinds.built_in_kinds import GROUPS
from mockube.apiserver.request.handler import with_panic_recovery
from mockube.apiserver.request.pages import api_pages, document, with_index
from mockube.apiserver.request.routes import NOT_ACCEPTABLE
from mockube.apiserver.wire.negotiation import FORMATS
from tests.support.server.handler_requests import request_of


async def test_index_lists_every_page_of_upstream():
    own = ["/mockube/clock", "/readyz/task-store", "/healthz/namespace-objects", "/debug/pprof"]
    paths = [
        "/version",
        "/api",
        "/metrics",
        "/openapi/v3",
        "/openapi/v3/api/v1",
        "/openapi/v3/apis/apps/v1",
        *own,
    ]
    pages = with_index({path: document({}) for path in paths})
    answer = await pages["/"](request_of("GET", "/"))
    assert orjson.loads(answer.body) == {
        "paths": ["/api", "/apis/", "/metrics", "/openapi/v3", "/openapi/v3/", "/version"]
    }
    assert pages.keys() == {*paths, "/", "/index.html"}


NOT_FOUND_BY_THE_ROUTER = f"406: Not Acceptable\n\nAvailable representations: {', '.join(FORMATS)}"
DISCOVERY = "g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


@pytest.mark.parametrize(
    ("path", "headers", "status", "expected"),
    [
        ("/api", {}, 200, "application/json"),
        ("/api/v1", {"Accept": "application/yaml"}, 200, "application/yaml"),
        (
            "/apis",
            {"Accept": "application/vnd.kubernetes.protobuf"},
            200,
            "application/vnd.kubernetes.protobuf",
        ),
        ("/apis", {"Accept": f"application/yaml;{DISCOVERY}"}, 200, f"application/yaml;{DISCOVERY}"),
        ("/apis", {"Accept": "text/html"}, 406, NOT_ACCEPTABLE),
        ("/apis/", {}, 200, "application/json"),
        ("/apis/", {"Accept": f"application/json;{DISCOVERY},*/*"}, 200, "application/json"),
        ("/apis/", {"Accept": f"application/json;{DISCOVERY}"}, 406, NOT_ACCEPTABLE),
        ("/apis/apps", {"Accept": "application/*"}, 200, "application/json"),
        ("/apis/apps/v1", {"Accept": "application/*"}, 406, NOT_FOUND_BY_THE_ROUTER),
        ("/apis/apps/v1", {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}, 406, NOT_ACCEPTABLE),
        (
            "/apis/apps/v1",
            {"Content-Type": "text/plain", "Accept": "x/y"},
            415,
            "415: Unsupported Media Type",
        ),
        ("/apis/apiregistration.k8s.io", {"Accept": "x/y"}, 406, NOT_FOUND_BY_THE_ROUTER),
        ("/version", {"Accept": "application/yaml, */*"}, 200, "application/json"),
        ("/version", {"Accept": "application/*"}, 406, NOT_FOUND_BY_THE_ROUTER.partition(",")[0]),
    ],
)
async def test_discovery_format_is_negotiated(path, headers, status, expected):
    page = api_pages(GROUPS, address=lambda: "10.0.0.1:6443")[path]
    request = request_of("GET", path, **{name.replace("-", "_"): value for name, value in headers.items()})
    answer = await with_panic_recovery(page)(request)
    if status == 200:
        assert (answer.status, answer.content_type) == (status, expected)
    else:
        assert (answer.status, orjson.loads(answer.body)["message"]) == (status, expected)


@pytest.mark.parametrize(("given", "reported"), [("", "v1.37.2"), ("v1.37.2-custom", "v1.37.2-custom")])
async def test_configured_version_is_reported(given, reported):
    page = api_pages(GROUPS, address=lambda: "10.0.0.1:6443", git_version=given)["/version"]
    answer = await page(request_of("GET", "/version"))
    assert orjson.loads(answer.body)["gitVersion"] == reported
