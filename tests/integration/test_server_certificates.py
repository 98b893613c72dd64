"""Every client of the control plane verifies servers as Go does, with Go's errors; and webhooks with knative's certificates."""

import base64
import contextlib
from datetime import timedelta

import aiohttp
import pytest
from aiohttp import web

from mockube.apimachinery.groups import GroupVersion
from mockube.apiserver.admission.webhooks.review import WebhookCallFailed
from mockube.apiserver.admission.webhooks.services import WebhookEndpoint
from mockube.apiserver.aggregation.availability import ServerUnreachable
from mockube.apiserver.aggregation.remotes import RemoteAPIService
from mockube.apiserver.config.settings import StorageOptions
from mockube.apiserver.http.backend_connection import Dialer, DialFailed, KubeletClient
from mockube.apiserver.http.outgoing_client import OutgoingClient
from mockube.apiserver.http.service_proxy import ServiceProxy
from mockube.apiserver.http.webhook_client import WebhookClient
from mockube.apiserver.outgoing import CallFailed, OutgoingRequest, Tls
from mockube.apiserver.registry.subresources.locations import Location
from mockube.apiserver.store import etcd_context
from mockube.apiserver.user import User
from mockube.client.kubeconfig import Access
from mockube.client.transport import HttpTransport
from mockube.client.wire import Request, Unreachable
from mockube.component_base.clock import RealClock
from tests.support.chains import builder, shapes
from tests.support.chains.builder import key
from tests.support.chains.served import pem, server_context
from tests.support.server import apiserver
from tests.support.server.webhook_server import (
    CONFIG_MAPS,
    FAILED,
    MAP,
    PATH,
    VALIDATING,
    WebhookServer,
    register,
)

CLOCK = RealClock()
HOST = "hooks.default.svc"
NAMES = {"dns": [HOST], "ips": ["127.0.0.1"]}
DAY = timedelta(days=1)


def now_valid():
    now = CLOCK.now().replace(microsecond=0)
    return {"not_before": now - DAY, "not_after": now + DAY}


def root(**fields):
    return shapes.root(**{**now_valid(), **fields})


def leaf(**fields):
    return shapes.leaf(**{**now_valid(), **NAMES, **fields})


def knative():
    """An authority and a server's certificate with the same name, whose key ids are missing."""
    same = "O=knative.dev,CN=hooks.default.svc"
    authority = root(subject=same, key=key("p256-a"), extensions=[builder.key_usage(0, 5)])
    return [leaf(subject=same, issuer=same, signer=key("p256-a")).der()], [authority.der()]


def trusted_leaf():
    own = leaf().der()
    return [own], [own]


def below(authority, **fields):
    return lambda: ([leaf(**fields).der()], [authority().der()])


WRONG_SIGNATURE = (
    'certificate signed by unknown authority (possibly because of "x509: ECDSA verification failure" while trying'
    ' to verify candidate authority certificate "root")'
)
CHAINS = {
    "knative": (knative, ""),
    "the trusted leaf itself": (trusted_leaf, ""),
    "unknown authority": (
        below(lambda: root(subject="CN=other")),
        "certificate signed by unknown authority",
    ),
    "a wrong signature": (below(lambda: root(key=key("p256-b"))), WRONG_SIGNATURE),
    "common name only": (
        below(root, dns=(), ips=(), subject="CN=127.0.0.1"),
        "certificate relies on legacy Common Name field, use SANs instead",
    ),
    "another host": (
        below(root, dns=["a", "b"], ips=["10.0.0.1"]),
        "certificate is valid for 10.0.0.1, not 127.0.0.1",
    ),
    "for clients": (
        below(root, usages=[builder.CLIENT]),
        "certificate specifies an incompatible key usage",
    ),
    "expired": (
        below(root, not_after=CLOCK.now() - DAY),
        "certificate has expired or is not yet valid: current time ",
    ),
}
OF_SERVICE = {
    "common name only": f"certificate is not valid for any names, but wanted to match {HOST}",
    "another host": f"certificate is valid for a, b, not {HOST}",
}
"""The errors of a client that connects to an address and expects the name of a Service."""


class TlsServer:
    def __init__(self, folder, chain):
        self.context = server_context(folder, chain, key("p256-leaf"))
        self.requests = []
        self.port = 0

    @property
    def url(self):
        return f"https://127.0.0.1:{self.port}"

    async def answer(self, request):
        self.requests.append(request.path)
        return web.json_response({})


@contextlib.asynccontextmanager
async def serving(server, handler):
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", handler)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=server.context).start()
        server.port = runner.addresses[0][1]
        yield server
    finally:
        await runner.cleanup()


# --- one function for each client: send a request, and raise the client's error


async def call_webhook(server, roots, _):
    client = WebhookClient(Dialer(KubeletClient(), CLOCK), CLOCK)
    async with contextlib.aclosing(_Closing(client)):
        await client.post(WebhookEndpoint(url=f"{server.url}/x", authority=roots), b"{}", seconds=30)


async def call_other_webhook(server, roots, _):
    """Call as authentication, authorization, image policy and audit webhooks and token issuers are."""
    client = OutgoingClient(CLOCK)
    async with contextlib.aclosing(_Closing(client)):
        await client.send(OutgoingRequest(url=f"{server.url}/x", tls=Tls(authority=roots)))


async def call_aggregated_server(server, roots, _):
    proxy = ServiceProxy(lambda _: ("127.0.0.1", server.port), None, Dialer(KubeletClient(), CLOCK))
    remote = RemoteAPIService(
        name="v1.x", served=GroupVersion("x", "v1"), service=("default", "hooks", 443), authority=roots
    )
    async with contextlib.aclosing(_Closing(proxy)):
        await proxy.fetch(remote, "/apis/x/v1", User(name="u"), {})


async def call_kubelet(server, roots, _):
    dialer = Dialer(KubeletClient(authority=roots.decode()), CLOCK)
    location = Location(scheme="https", host="127.0.0.1", port=str(server.port), is_kubelet=True)
    async with dialer.dial(location) as connection:
        await connection.send_head("GET", "/x", [("Host", "x"), ("Connection", "close")])
        await connection.read_head()


async def call_etcd(server, roots, folder):
    file = folder / "roots.pem"
    file.write_bytes(roots)
    context = etcd_context(StorageOptions(etcd_cafile=file))
    async with aiohttp.ClientSession() as session, session.get(f"{server.url}/x", ssl=context):
        pass


async def call_from_manager(server, roots, _):
    transport = HttpTransport(Access(server=server.url, authority=roots))
    async with contextlib.aclosing(_Closing(transport)):
        await transport.send(Request(method="GET", target="/x", headers={}, timeout=30), {})


class _Closing:
    """Gives a client the method that `aclosing` calls."""

    def __init__(self, client):
        self.aclose = client.close


CALLS = [
    call_webhook,
    call_other_webhook,
    call_aggregated_server,
    call_kubelet,
    call_etcd,
    call_from_manager,
]
ERRORS = (
    WebhookCallFailed,
    CallFailed,
    ServerUnreachable,
    DialFailed,
    Unreachable,
    aiohttp.ClientConnectorCertificateError,
)


@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.__name__)
@pytest.mark.parametrize("name", CHAINS)
async def test_client_verifies_server_as_go(tmp_path, call, name):
    make_chain, problem = CHAINS[name]
    if call is call_aggregated_server:
        problem = OF_SERVICE.get(name, problem)
    chain, roots = make_chain()
    server, error = TlsServer(tmp_path, chain), ""
    async with serving(server, server.answer):
        try:
            await call(server, pem(*roots), tmp_path)
        except ERRORS as raised:
            error = str(raised)
    if problem:
        assert f"tls: failed to verify certificate: x509: {problem}" in error
        assert server.requests == []
    else:
        assert error == ""
        assert len(server.requests) == 1


# --- a webhook with knative's certificates


async def test_webhook_with_certificates_of_knative_is_called(tmp_path):
    chain, roots = knative()
    server = TlsServer(tmp_path, chain)
    hooks = WebhookServer(0, pem(*roots))
    async with (
        serving(server, _answer_of(hooks)),
        apiserver.running(f"--webhook-service=default/hooks=127.0.0.1:{server.port}") as client,
    ):
        service = {"service": {"namespace": "default", "name": "hooks", "path": "/deny-message"}}
        config = {**service, "caBundle": base64.b64encode(pem(*roots)).decode()}
        await register(client, VALIDATING, _hook(config))
        refused = await client.post(PATH, MAP)
    assert refused.body["message"] == 'admission webhook "h.example.com" denied the request: no way'
    assert [review["object"]["metadata"]["name"] for _, review in hooks.requests] == ["a"]


async def test_webhook_of_other_authority_with_same_name_is_refused(tmp_path):
    chain, _ = knative()
    roots = [root(subject="O=knative.dev,CN=hooks.default.svc", key=key("p256-b")).der()]
    server = TlsServer(tmp_path, chain)
    async with serving(server, server.answer), apiserver.running() as client:
        bundle = base64.b64encode(pem(*roots)).decode()
        await register(client, VALIDATING, _hook({"url": f"{server.url}/ok", "caBundle": bundle}))
        answer = await client.post(PATH, MAP)
    assert answer.body["message"] == (
        f'{FAILED}failed to call webhook: Post "{server.url}/ok?timeout=30s": tls: failed to verify certificate: x509: '
        'certificate signed by unknown authority (possibly because of "x509: ECDSA verification failure" while trying '
        'to verify candidate authority certificate "hooks.default.svc")'
    )
    assert server.requests == []


def _hook(config):
    return {
        "name": "h.example.com",
        "clientConfig": config,
        "rules": [CONFIG_MAPS],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "timeoutSeconds": 30,
    }


def _answer_of(hooks):
    async def answer(request):
        return await hooks.answer(request)

    return answer
