"""The index of pages."""

import orjson
from aiohttp.test_utils import make_mocked_request

from mockube.apiserver.http.pages import document, with_index


async def test_the_index_names_every_page_but_itself_and_of_openapi_the_folder():
    paths = ["/version", "/api", "/metrics", "/openapi/v3", "/openapi/v3/api/v1", "/openapi/v3/apis/apps/v1"]
    pages = with_index({path: document({}) for path in paths})
    answer = await pages["/"](make_mocked_request("GET", "/"))
    assert orjson.loads(answer.body) == {
        "paths": ["/api", "/metrics", "/openapi/v3", "/openapi/v3/", "/version"]
    }
    assert pages.keys() == {*paths, "/"}
