"""Responses of kube-apiserver 1.36.3 before it connects to a kubelet or a pod, and when it cannot connect."""

import pytest

from tests.support.server import apiserver

BASE = "/api/v1/namespaces/default"
SLICE = {
    "metadata": {"name": "eps", "labels": {"kubernetes.io/service-name": "eps"}},
    "addressType": "IPv4",
    "ports": [{"name": "", "port": 80, "protocol": "TCP"}],
    "endpoints": [{"addresses": ["10.1.2.3"]}],
}
REFUSED = "dial tcp 127.0.0.1:1: connect: connection refused"


@pytest.fixture
async def client():
    async with apiserver.running() as client:
        await client.post(f"{BASE}/serviceaccounts", {"metadata": {"name": "default"}})
        await client.post("/api/v1/nodes", {"metadata": {"name": "n1"}})
        status = {
            "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": 1}},
        }
        await client.post("/api/v1/nodes", {"metadata": {"name": "n2"}, "status": status})
        for name, node, containers in (
            ("unbound", None, ["c"]),
            ("two", "n2", ["c", "d"]),
            ("one", "n1", ["c"]),
            ("dial", "n2", ["c"]),
            ("gone", "none", ["c"]),
        ):
            spec = {"containers": [{"name": one, "image": "i"} for one in containers]}
            spec |= {"nodeName": node} if node else {}
            await client.post(f"{BASE}/pods", {"metadata": {"name": name}, "spec": spec})
        local = {"status": {"podIP": "127.0.0.1", "podIPs": [{"ip": "127.0.0.1"}]}}
        await client.patch(f"{BASE}/pods/dial/status", local)
        await client.post(
            f"{BASE}/services", {"metadata": {"name": "svc"}, "spec": {"ports": [{"port": 80}]}}
        )
        await client.post(
            f"{BASE}/services", {"metadata": {"name": "eps"}, "spec": {"ports": [{"port": 80}]}}
        )
        await client.post("/apis/discovery.k8s.io/v1/namespaces/default/endpointslices", SLICE)
        yield client


async def answers(client, method, table):
    """Return the rows of a table with the returned codes and messages."""
    found = []
    for path, *_ in table:
        answer = await client.send(method, path if path.startswith("/") else f"{BASE}/{path}")
        found.append((path, answer.status, answer.body["message"]))
    return found


NEGATIVE = (
    'PodLogOptions "unbound" is invalid: [tailLines: Invalid value: -1: must be greater than or equal to 0, '
    "limitBytes: Invalid value: 0: must be greater than 0, sinceSeconds: Invalid value: 0: must be greater than 0]"
)
BOTH = (
    'PodLogOptions "unbound" is invalid: []: Forbidden: '
    "at most one of `sinceTime` or `sinceSeconds` may be specified"
)
LAYOUT = 'parsing time "abc" as "2006-01-02T15:04:05Z07:00": cannot parse "abc" as "2006"'
CHOOSE = "a container name must be specified for pod two, choose one of: [c d]"


LOGS = [
    ("pods/two/log", 400, CHOOSE),
    ("pods/two/log?container=x", 400, "container x is not valid for pod two"),
    ("pods/one/log", 500, "no preferred addresses found; known addresses: []"),
    ("pods/dial/log", 500, f'Get "https://127.0.0.1:1/containerLogs/default/dial/c": {REFUSED}'),
    (
        "pods/dial/log?insecureSkipTLSVerifyBackend=true&follow=1",
        500,
        f'Get "https://127.0.0.1:1/containerLogs/default/dial/c?follow=true": {REFUSED}',
    ),
    ("pods/gone/log", 404, 'pods "none" not found'),
    ("pods/nope/log", 404, 'pods "nope" not found'),
    ("pods/unbound/log/x", 404, "the server could not find the requested resource"),
    ("pods/unbound/log?tailLines=-1&limitBytes=0&sinceSeconds=0", 422, NEGATIVE),
    ("pods/unbound/log?sinceSeconds=3&sinceTime=2020-01-01T00:00:00Z", 422, BOTH),
    (
        "pods/unbound/log?stream=Stdout",
        422,
        'PodLogOptions "unbound" is invalid: stream: Forbidden: may not be specified',
    ),
    ("pods/unbound/log?tailLines=abc", 400, 'strconv.ParseInt: parsing "abc": invalid syntax'),
    ("pods/unbound/log?limitBytes=", 400, 'strconv.ParseInt: parsing "": invalid syntax'),
    ("pods/unbound/log?sinceTime=abc", 400, LAYOUT),
]


async def test_logs_request_is_refused(client):
    assert await answers(client, "GET", LOGS) == LOGS


async def test_pod_without_node_has_no_log(client):
    for query in ("", "?dryRun=All", "?follow=abc"):
        assert (await client.get(f"{BASE}/pods/unbound/log{query}")).status == 204


STREAMS = [
    ("pods/unbound/exec?command=ls", 400, "pod unbound does not have a host assigned"),
    ("pods/unbound/portforward", 400, "pod unbound does not have a host assigned"),
    ("pods/two/exec", 400, CHOOSE),
    ("pods/two/attach?container=zz", 400, "container zz is not valid for pod two"),
    ("pods/dial/exec?dryRun=All", 400, "dryRun is not supported"),
    ("pods/dial/exec?stdin=abc", 400, "Upgrade request required"),
    ("pods/one/exec", 500, "no preferred addresses found; known addresses: []"),
    ("pods/nope/attach", 404, 'pods "nope" not found'),
    ("pods/unbound/exec/x", 404, "the server could not find the requested resource"),
    (
        "pods/dial/portforward?ports=abc",
        400,
        'cannot convert to []int32: strconv.ParseUint: parsing "abc": invalid syntax',
    ),
]


@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_stream_requests_without_upgrade_are_refused(client, method):
    assert await answers(client, method, STREAMS) == STREAMS


async def test_streams_accept_get_and_post(client):
    for method in ("PUT", "PATCH", "DELETE", "OPTIONS"):
        answer = await client.send(method, f"{BASE}/pods/dial/exec")
        assert (answer.status, answer.body["reason"]) == (405, "MethodNotAllowed")


async def test_upgrade_to_unreachable_kubelet_is_an_error(client):
    upgrade = {"Connection": "Upgrade", "Upgrade": "SPDY/3.1"}
    answer = await client.send("POST", f"{BASE}/pods/dial/exec?command=ls", **upgrade)
    assert (answer.status, answer.body["message"]) == (500, f"error dialing backend: {REFUSED}")


PROXIES = [
    ("pods/unbound/proxy", 400, "address not allowed"),
    ("pods/dial/proxy/", 400, "address not allowed"),
    ("pods/a:b:c:d/proxy/", 400, 'invalid pod request "a:b:c:d"'),
    ("pods/ftp:dial:80/proxy/", 400, 'invalid pod request "ftp:dial:80"'),
    ("pods/nope/proxy/", 404, 'pods "nope" not found'),
    ("services/svc/proxy/", 503, 'no endpoints available for service "svc"'),
    ("services/svc:80/proxy/", 503, 'no endpoints available for service "svc"'),
    ("services/svc:81/proxy/", 503, 'no service port 81 found for service "svc"'),
    ("services/nope:80/proxy/", 404, 'services "nope" not found'),
    ("services/eps/proxy/", 503, 'no endpoints available for service "eps"'),
    ("services/a:b:c:d/proxy/", 400, 'invalid service request "a:b:c:d"'),
    ("services/svc/proxy/?dryRun=All", 400, "dryRun is not supported"),
    ("services/svc/proxy//a/../b", 503, 'no endpoints available for service "svc"'),
    ("/api/v1/nodes/n1/proxy/", 500, "no preferred addresses found; known addresses: []"),
    ("/api/v1/nodes/n2/proxy/", 400, "address not allowed"),
    ("/api/v1/nodes/n2:10/proxy/", 400, "address not allowed"),
    ("/api/v1/nodes/nope/proxy/", 404, 'nodes "nope" not found'),
    ("/api/v1/nodes/a:b:c:d/proxy/", 400, 'invalid node request "a:b:c:d"'),
]


async def test_proxy_requests_are_refused(client):
    assert await answers(client, "GET", PROXIES) == PROXIES
    assert await answers(client, "POST", PROXIES) == PROXIES


NOT_ALLOWED = {
    "loopback": "127.0.0.1",
    "mapped loopback": "::ffff:127.0.0.1",
    "mapped loopback in full": "0:0:0:0:0:ffff:7f00:1",
    "mapped link-local": "::ffff:169.254.169.254",
    "loopback of IPv6": "::1",
    "link-local of IPv6": "fe80::1",
    "unspecified": "0.0.0.0",
    "unspecified of IPv6": "::",
    "mapped unspecified": "::ffff:0.0.0.0",
    "multicast": "224.0.0.1",
    "broadcast": "255.255.255.255",
    "mapped broadcast": "::ffff:255.255.255.255",
}
NAMES_NOT_ALLOWED = {"decimal": "2130706433", "octal": "0177.0.0.1", "short": "127.1", "name": "localhost"}


@pytest.mark.parametrize("form", NOT_ALLOWED | NAMES_NOT_ALLOWED)
async def test_node_proxy_refuses_addresses_of_this_machine(client, form):
    address = (NOT_ALLOWED | NAMES_NOT_ALLOWED)[form]
    body = {"status": {"addresses": [{"type": "Hostname", "address": address}]}}
    assert (await client.patch("/api/v1/nodes/n2/status", body)).status == 200
    requests = [(f"/api/v1/nodes/n2{port}/proxy/", 400, "address not allowed") for port in ("", ":10")]
    assert await answers(client, "GET", requests) == requests


@pytest.mark.parametrize(
    "form", [form for form in NOT_ALLOWED if "mapped" not in form]
)  # a pod cannot have those
async def test_pod_proxy_refuses_addresses_of_this_machine(client, form):
    address = NOT_ALLOWED[form]
    body = {"status": {"podIP": address, "podIPs": [{"ip": address}]}}
    assert (await client.patch(f"{BASE}/pods/two/status", body)).status == 200
    requests = [("pods/two:80/proxy/", 400, "address not allowed")]
    assert await answers(client, "GET", requests) == requests


async def test_node_proxy_refuses_name_without_addresses(client):
    body = {"status": {"addresses": [{"type": "Hostname", "address": "no..host"}]}}
    assert (await client.patch("/api/v1/nodes/n2/status", body)).status == 200
    requests = [("/api/v1/nodes/n2/proxy/", 400, "lookup no..host: no such host")]
    assert await answers(client, "GET", requests) == requests


async def test_proxy_without_path_is_redirected_to_root(client):
    await client.patch(
        f"{BASE}/pods/two/status", {"status": {"podIP": "10.9.9.9", "podIPs": [{"ip": "10.9.9.9"}]}}
    )
    url = f"{client.url}{BASE}/pods/two/proxy?x=1"
    async with client.session.get(url, headers=client.credentials, allow_redirects=False) as answer:
        location = answer.headers["Location"]
    assert (answer.status, location) == (301, f"{BASE}/pods/two/proxy/?x=1")
