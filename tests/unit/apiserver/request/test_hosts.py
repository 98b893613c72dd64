"""Which Host and Origin headers are accepted: own names, every IP address, and no foreign origins."""

import pytest

from mockube.apimachinery.status import ApiError, BadRequest, Forbidden
from mockube.apiserver.request.hosts import Hosts
from tests.support.server.handler_requests import request_of

HOSTS = Hosts(("kubernetes.default.svc", "Api.Example.com", "*.corp.example", "10.0.0.1"))


def request_to(host, *, method="GET", version=(1, 1), **headers):
    given = headers if host is None else {"Host": host, **headers}
    return request_of(method, "/api", version=version, **given)


@pytest.mark.parametrize(
    "host",
    [
        "localhost", "localhost:6443", "LOCALHOST", "localhost.", "localhost.:6443", "localhost:",
        "127.0.0.1", "127.0.0.1:6443", "127.8.8.8", "192.168.1.7:80", "8.8.8.8", "[::1]", "[::1]:6443", "[fe80::1%25eth0]:6443", "::1",
        "kubernetes.default.svc", "KUBERNETES.default.SVC.:443", "api.example.com", "a.corp.example", "",
    ],
)  # fmt: skip
def test_own_names_and_addresses_are_allowed_hosts(host):
    HOSTS.check(request_to(host))


@pytest.mark.parametrize(
    "host",
    [
        "evil.example", "evil.example:6443", "localhost.evil.example", "evil-localhost", "localhost@evil.example", "localhost:6443:6443", "127.0.0.1.evil.example",
        "corp.example", "a.b.corp.example", ".corp.example", "kubernetes.default.svc.evil.example", "2130706433", "0x7f.1", "[evil.example]", "[::1", "[::1]x", "localhost:x",
        "localhost,evil.example", "local host", "*", "*.corp.example.evil", "a" * 100_000, "\xff",
    ],
)  # fmt: skip
def test_other_host_names_are_refused_by_name(host):
    with pytest.raises(ApiError, match="is not a name of this server") as refused:
        HOSTS.check(request_to(host))
    assert refused.value.code == 421
    assert len(refused.value.message) < 2500


@pytest.mark.parametrize("host", ["apiserver", "front:6443", "x", "my-machine."])
def test_local_network_name_is_allowed_with_token(host):
    HOSTS.check(request_to(host, Authorization="Bearer t"))
    for headers in ({}, {"Authorization": "Basic dDp0"}, {"Authorization": "Bearer"}):
        with pytest.raises(ApiError, match="is not a name of this server"):
            HOSTS.check(request_to(host, **headers))


@pytest.mark.parametrize("host", ["evil.example", "a.local", "x y", "*", "a_b", "[x]", "x" * 100])
def test_public_name_is_refused_even_with_token(host):
    with pytest.raises(ApiError, match="is not a name of this server"):
        HOSTS.check(request_to(host, Authorization="Bearer t"))


def test_http_1_1_request_needs_host():
    HOSTS.check(request_to(None, version=(1, 0)))
    with pytest.raises(BadRequest, match="missing required Host header"):
        HOSTS.check(request_to(None))


def test_asterisk_allows_any_host():
    Hosts(("*",)).check(request_to("evil.example", method="POST", Origin="http://evil.example"))


@pytest.mark.parametrize(
    "origin",
    ["https://127.0.0.1:6443", "http://localhost:8001", "https://api.example.com", "https://10.0.0.1", "https://[::1]:1", "http://x.corp.example"],
)  # fmt: skip
def test_local_and_own_origins_may_write(origin):
    HOSTS.check(request_to("127.0.0.1:6443", method="POST", Origin=origin))


def test_same_origin_may_write():
    HOSTS.check(request_to("8.8.8.8:6443", method="POST", Origin="https://8.8.8.8:6443"))


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "", "https://8.8.8.8", "http://localhost.evil.example", "x" * 9999])  # fmt: skip
@pytest.mark.parametrize(
    "request_of",
    [
        pytest.param({"method": "POST"}, id="write"),
        pytest.param({"method": "DELETE"}, id="delete"),
        pytest.param({"Upgrade": "websocket", "Connection": "Upgrade"}, id="socket"),
    ],
)
def test_cross_origin_writes_and_websockets_are_refused(origin, request_of):
    with pytest.raises(Forbidden, match="may only read"):
        HOSTS.check(request_to("127.0.0.1:6443", Origin=origin, **request_of))
    with pytest.raises(Forbidden, match="may only read"):
        HOSTS.check(request_to("", Origin=origin, **request_of))


def test_cross_origin_read_is_allowed():
    HOSTS.check(request_to("127.0.0.1", Origin="http://evil.example"))
