"""Requests of the programs of simulated pods to the API server, with their own credentials."""

from ssl import SSLError
from types import SimpleNamespace

import pytest

from mockube.apimachinery.status import Forbidden, NotFound
from mockube.client.kinds import CONFIG_MAPS
from mockube.client.resources import Key
from mockube.client.wire import NoResponse
from mockube.container_runtime.api_server import ApiResponse
from mockube.kubelet.api_server_access import ApiServerAccess
from mockube.kubelet.pod_objects import ROOT_CA

GROUP = "/apis/policy.networking.k8s.io"
V1 = f"{GROUP}/v1alpha1"
PREFERRED = {"preferredVersion": {"groupVersion": "policy.networking.k8s.io/v1alpha1"}}


class Client:
    """Returns what a test gives by path; an error is raised."""

    def __init__(self, **answers):
        self.answers, self.sent = answers, []

    def _answer(self, key):
        answer = self.answers[key]
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def exchange(self, request, certificate, key):
        self.sent.append((request, certificate, key))
        return self._answer("exchange")

    async def get(self, resource, key):
        assert (resource, key) == (CONFIG_MAPS, Key("ns", ROOT_CA))
        return self._answer("get")

    async def raw(self, method, path):
        assert method == "GET"
        self.sent.append(path)
        return self._answer(path)


HEADERS = [
    ("Host", "x"),
    ("Connection", "close"),
    ("Content-Length", "2"),
    ("Transfer-Encoding", "chunked"),
    ("user-agent", "curl"),
    ("Authorization", "Bearer t"),
]


async def test_request_is_sent_without_the_headers_of_its_connection():
    client = Client(exchange=SimpleNamespace(status=201, body=b"made"))
    response = await ApiServerAccess(client).send("POST", "/api", HEADERS, b"{}", certificate=b"C", key=b"K")
    assert response == ApiResponse(201, b"made")
    [(request, *pair)] = client.sent
    assert (request.method, request.target, request.body, pair) == ("POST", "/api", b"{}", [b"C", b"K"])
    assert request.headers == {"Authorization": "Bearer t", "User-Agent": "curl"}
    await ApiServerAccess(client).send("GET", "/api", [("Accept", "a/b")], b"")
    assert client.sent[1][0].headers == {"Accept": "a/b"}


@pytest.mark.parametrize("error", [NoResponse("x"), ValueError("x"), SSLError("x")])
async def test_request_without_a_response_is_none(error):
    assert await ApiServerAccess(Client(exchange=error)).send("GET", "/", [], b"") is None


@pytest.mark.parametrize(
    ("found", "authority"),
    [
        ({"data": {"ca.crt": "CA"}}, b"CA"),
        ({"data": {}}, b""),
        ({}, b""),
        (NotFound("x"), b""),
        (NoResponse("x"), b""),
    ],
)
async def test_authority_of_a_namespace(found, authority):
    assert await ApiServerAccess(Client(get=found)).authority("ns") == authority


ABSENT, EMPTY = NotFound("x"), {"items": []}
ITEM = {"kind": "P", "metadata": {"name": "n"}}
ADMIN, BASELINE, CLUSTER = (
    f"{V1}/{plural}?limit=1"
    for plural in ("adminnetworkpolicies", "baselineadminnetworkpolicies", "clusternetworkpolicies")
)


@pytest.mark.parametrize(
    ("answers", "policy"),
    [
        ({GROUP: PREFERRED, ADMIN: {"items": [ITEM]}}, "P 'n'"),
        (
            {GROUP: PREFERRED, ADMIN: EMPTY, BASELINE: {"items": [{"metadata": {"name": "n"}}]}},
            "baselineadminnetworkpolicies 'n'",
        ),
        ({GROUP: PREFERRED, ADMIN: ABSENT, BASELINE: {}, CLUSTER: {"items": [ITEM]}}, "P 'n'"),
        ({GROUP: PREFERRED, ADMIN: ABSENT, BASELINE: ABSENT, CLUSTER: ABSENT}, ""),
        ({GROUP: PREFERRED, ADMIN: Forbidden("x")}, ""),
        ({GROUP: NoResponse("x")}, ""),
        ({GROUP: NotFound("x")}, ""),
        ({GROUP: {}}, ""),
    ],
)
async def test_first_policy_of_an_administrator(answers, policy):
    client = Client(**answers)
    assert await ApiServerAccess(client).admin_policy() == policy
    assert client.sent == [*answers]
