"""The index of pages."""

import orjson

from mockube.apiserver.request.pages import document, with_index
from tests.support.server.handler_requests import request_of


async def test_the_index_names_every_page_but_itself_and_of_openapi_the_folder():
    paths = ["/version", "/api", "/metrics", "/openapi/v3", "/openapi/v3/api/v1", "/openapi/v3/apis/apps/v1"]
    pages = with_index({path: document({}) for path in paths})
    answer = await pages["/"](request_of("GET", "/"))
    assert orjson.loads(answer.body) == {
        "paths": ["/api", "/metrics", "/openapi/v3", "/openapi/v3/", "/version"]
    }
    assert pages.keys() == {*paths, "/"}
