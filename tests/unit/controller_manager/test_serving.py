"""HTTP endpoints of the manager."""

import ssl
from datetime import UTC, datetime

import aiohttp
import pytest

from mockube.apimachinery.randomness import SystemRandom
from mockube.apiserver.pki.cert_dir import prepare_folder, server_subject
from mockube.component_base.clock import RealClock
from mockube.component_base.metrics import MetricsRegistry, counter
from mockube.component_base.serving_certificates import request_client_certificates, self_signed_tls_context
from mockube.controller_manager.http_endpoints import ListenAddress, StatusSources, serving

TOKEN = "secret"


@pytest.fixture
def checks():
    return {"leaderElection": lambda: "", "deployment-controller": lambda: ""}


@pytest.fixture
async def url(checks):
    registry = MetricsRegistry()
    registry.numbers(counter("things_total", "Things.")).add(1)
    page = StatusSources(checks=checks, registry=registry, settings={"a": 1}, controllers=lambda: b"{}")
    async with serving(page, [ListenAddress(address="127.0.0.1", number=0)], TOKEN) as (url,):
        yield url


async def get(url, method="GET", *, tls=False, token=""):
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    async with (
        aiohttp.ClientSession() as session,
        session.request(method, url, ssl=tls, headers=headers) as answer,
    ):
        return answer.status, await answer.text()


@pytest.mark.parametrize("endpoint", ["healthz", "livez", "readyz"])
async def test_health_endpoints(url, checks, endpoint):
    assert await get(f"{url}/{endpoint}") == (200, "ok")
    page = f"[+]leaderElection ok\n[+]deployment-controller ok\n{endpoint} check passed\n"
    assert await get(f"{url}/{endpoint}?verbose") == (200, page)
    checks["deployment-controller"] = lambda: "it sleeps"
    page = f"[+]leaderElection ok\n[-]deployment-controller failed: it sleeps\n{endpoint} check failed\n"
    assert await get(f"{url}/{endpoint}") == (500, page)


async def test_health_endpoint_of_one_check(url, checks):
    path = f"{url}/healthz/deployment-controller"
    assert await get(path) == (200, "ok")
    checks["deployment-controller"] = lambda: "it sleeps"
    assert await get(path) == (500, "internal server error: it sleeps\n")
    assert (await get(f"{url}/healthz/nobody"))[0] == 404


async def test_check_that_raises_fails_by_name_and_is_logged_once(url, checks, caplog):
    def broken():
        raise KeyError("a fault in the program")

    checks["broken"] = broken
    lines = "[+]leaderElection ok\n[+]deployment-controller ok\n[-]broken failed: KeyError: 'a fault in the program'\n"
    for _ in range(2):
        assert await get(f"{url}/readyz") == (500, f"{lines}readyz check failed\n")
    own_page = (500, "internal server error: KeyError: 'a fault in the program'\n")
    assert await get(f"{url}/readyz/broken") == own_page
    (record,) = caplog.records
    assert record.getMessage() == "The health check 'broken' raised an error"
    assert "Traceback (most recent call last)" in caplog.handler.format(record)
    checks["broken"] = lambda: ""
    assert await get(f"{url}/readyz") == (200, "ok")
    checks["broken"] = broken
    assert (await get(f"{url}/readyz"))[0] == 500
    assert len(caplog.records) == 2


async def test_metrics_and_configz_endpoints(url):
    assert "things_total 1" in (await get(f"{url}/metrics"))[1]
    assert await get(f"{url}/configz") == (200, '{"a":1}')


@pytest.mark.parametrize(
    ("method", "path", "code"),
    [pytest.param("POST", "/healthz", 405, id="a write"), pytest.param("GET", "/", 404, id="empty")],
)
async def test_other_paths_are_not_found(url, method, path, code):
    assert (await get(url + path, method))[0] == code


@pytest.mark.parametrize(("token", "code"), [("", 401), ("wrong", 401), (TOKEN, 200)])
async def test_queues_of_controllers_need_the_token(url, token, code):
    assert (await get(f"{url}/debug/controllers", token=token))[0] == code


async def test_own_certificate_is_generated():
    page = StatusSources(checks={}, registry=MetricsRegistry(), settings={}, controllers=lambda: b"{}")
    tls = self_signed_tls_context("127.0.0.1", now=datetime(2020, 1, 1, tzinfo=UTC), random=SystemRandom())
    async with serving(page, [ListenAddress(address="127.0.0.1", number=0, tls=tls)], TOKEN) as (url,):
        assert url.startswith("https://127.0.0.1:")
        assert await get(f"{url}/healthz") == (200, "ok")


async def test_anonymous_clients_read_health_only(tmp_path):
    with prepare_folder(
        tmp_path, server_subject([], "10.0.0.0/24"), now=RealClock().now(), random=SystemRandom()
    ) as pki:
        known = ssl.create_default_context()
        known.check_hostname, known.verify_mode = False, ssl.CERT_NONE
        known.load_cert_chain(pki.certificate("admin"), pki.key("admin"))
    tls = self_signed_tls_context("127.0.0.1", now=datetime(2020, 1, 1, tzinfo=UTC), random=SystemRandom())
    request_client_certificates(tls, pki.certificate("ca"))
    page = StatusSources(checks={}, registry=MetricsRegistry(), settings={}, controllers=lambda: b"{}")
    async with serving(page, [ListenAddress(address="127.0.0.1", number=0, tls=tls)], TOKEN) as (url,):
        assert await get(f"{url}/healthz") == (200, "ok")
        assert (await get(f"{url}/debug/controllers", token=TOKEN))[0] == 200
        for path in ("/metrics", "/configz", "/debug/controllers"):
            assert (await get(url + path))[0] == 401
            assert (await get(url + path, tls=known))[0] == 200


@pytest.mark.parametrize("host", ["localhost:1", "127.0.0.1", "[::1]:1", "192.0.2.1", "LOCALHOST."])
async def test_local_host_names_are_allowed(url, host):
    async with (
        aiohttp.ClientSession(headers={"Host": host}) as session,
        session.get(f"{url}/configz") as answer,
    ):
        assert answer.status == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "localhost.evil.example:1", "[evil.example]", "127.0.0.1:x"]
)
async def test_rebound_host_name_is_refused(url, host):
    async with aiohttp.ClientSession(headers={"Host": host}) as session:
        for path in ("/configz", "/metrics", "/healthz"):
            async with session.get(url + path) as answer:
                assert (answer.status, "{" in await answer.text()) == (421, False)
