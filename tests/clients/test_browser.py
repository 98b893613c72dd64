"""A page in a real browser cannot reach the server, by DNS rebinding or by cross-site requests.

The page sends synchronous requests, so the browser prints it after all responses.
"""

import re

import pytest
from yarl import URL

from tests.support.processes.browser import SITE, document, rebinding
from tests.support.server import apiserver

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]

REBOUND = """<!DOCTYPE html><title>t</title><pre id=out></pre><script>
const asked = [["GET", "/version"], ["GET", "/api/v1/namespaces"], ["POST", "/api/v1/namespaces"], ["DELETE", "/api/v1/namespaces/default"]];
for (const [method, path] of asked) {
  const request = new XMLHttpRequest();
  request.open(method, path, false);
  request.setRequestHeader("Authorization", "Bearer admin");
  request.setRequestHeader("Content-Type", "application/json");
  try { request.send(method === "POST" ? '{"metadata":{"name":"made"}}' : null); } catch (error) {}
  out.textContent += method + " " + path + " " + request.status + " " + request.responseText.includes("gitVersion") + ";";
}
</script>"""

ACROSS = """<!DOCTYPE html><title>t</title><pre id=out></pre><script>
const request = new XMLHttpRequest();
request.open("POST", "http://127.0.0.1:%d/api/v1/namespaces", false);
request.setRequestHeader("Content-Type", "text/plain");
try { request.send('{"metadata":{"name":"made"}}'); out.textContent = "sent " + request.status; }
catch (error) { out.textContent = "blocked"; }
</script>"""


def address(client):
    url = URL(client.url)
    return url.host, url.port


async def page_output(site):
    page = await document(f"http://{SITE}:{site.port}/")
    return re.search(r"<pre id=\"out\">(.*?)</pre>", page, re.DOTALL)[1]


async def test_rebound_host_name_is_refused():
    async with apiserver.running() as client, rebinding(REBOUND, address(client)) as site:
        output = await page_output(site)
        assert output == (
            "GET /version 421 false;GET /api/v1/namespaces 421 false;"
            "POST /api/v1/namespaces 421 false;DELETE /api/v1/namespaces/default 421 false;"
        )
        assert (await client.get("/api/v1/namespaces/made")).status == 404


async def test_rebound_host_name_reaches_server_without_host_check():
    """Control case: without the host check the same page does reach the server."""
    async with apiserver.running("--allowed-hosts=*") as client, rebinding(REBOUND, address(client)) as site:
        output = await page_output(site)
        assert output.startswith(
            "GET /version 200 true;GET /api/v1/namespaces 200 false;POST /api/v1/namespaces 201"
        )
        assert (await client.get("/api/v1/namespaces/made")).status == 200


async def test_cross_site_page_cannot_write():
    """The page cannot read responses, so the test reads them on the proxied connection."""
    async with apiserver.running() as client, rebinding("", address(client)) as server:
        server._served = True
        async with rebinding(ACROSS % server.port, address(client)) as site:
            assert await page_output(site) == "blocked"
    assert ("POST /api/v1/namespaces HTTP/1.1", "HTTP/1.1 403 Forbidden") in server.answers
