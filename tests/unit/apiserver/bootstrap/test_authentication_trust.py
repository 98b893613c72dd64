"""The data of extension-apiserver-authentication: merged with what another server of the cluster wrote."""

from datetime import timedelta

import pytest

from mockube.apimachinery.randomness import SystemRandom
from mockube.apiserver.authn.request_headers import RequestHeaders
from mockube.apiserver.bootstrap.authentication_trust import (
    OWN_HEADERS,
    TrustedAuthorities,
    authentication_data,
    combine,
)
from mockube.apiserver.pki.issue import make_authority
from mockube.component_base.clock import RealClock

NOW = RealClock().now()


@pytest.fixture(scope="module")
def authorities():
    return [make_authority(name, now=NOW, random=SystemRandom()).certificate.decode() for name in "abc"]


def data(clients, proxies="", headers=OWN_HEADERS):
    return authentication_data(TrustedAuthorities(clients.encode(), proxies.encode(), headers))


def test_authentication_config_map_without_proxy_has_client_ca_only(authorities):
    assert data(authorities[0]) == {"client-ca-file": authorities[0]}


def test_authentication_config_map_has_upstreams_format(authorities):
    headers = RequestHeaders(
        username=("X-Remote-User", "X-User"), groups=("X-Remote-Group",), extra_prefixes=("X-Remote-Extra-",)
    )
    assert data(authorities[0], authorities[1], headers) == {
        "client-ca-file": authorities[0],
        "requestheader-allowed-names": "[]",
        "requestheader-client-ca-file": authorities[1],
        "requestheader-extra-headers-prefix": '["X-Remote-Extra-"]',
        "requestheader-group-headers": '["X-Remote-Group"]',
        "requestheader-username-headers": '["X-Remote-User","X-User"]',
    }


def test_trust_of_other_servers_is_kept(authorities):
    first, second, third = authorities
    names = RequestHeaders(username=("X-User",), allowed_names=("one",))
    present = {"data": data(first, second, names)}
    wanted = {
        "data": data(
            first, third, RequestHeaders(username=("X-User", "X-Remote-User"), allowed_names=["two"])
        )
    }
    found = combine(present, wanted, now=NOW)["data"]
    assert found["client-ca-file"] == first
    assert found["requestheader-client-ca-file"] == second + third
    assert found["requestheader-allowed-names"] == '["one","two"]'
    assert found["requestheader-username-headers"] == '["X-User","X-Remote-User"]'
    assert combine({"data": found}, wanted, now=NOW)["data"] == found


def test_expired_or_unreadable_certificates_are_removed(authorities):
    wanted = {"data": data(authorities[0], authorities[1])}
    late = NOW + timedelta(days=365 * 20)
    assert (
        combine({"data": data(authorities[2])}, wanted, now=late)["data"]["client-ca-file"] == authorities[0]
    )
    broken = {"data": {"client-ca-file": "x", "requestheader-allowed-names": "[1", "other": "o"}}
    assert combine(broken, wanted, now=NOW)["data"] == wanted["data"]
