"""Requests that a backend could take for other ones: what the proxies of the API server forward of them."""

import ssl
from urllib.parse import quote

import pytest
from cryptography import x509
from cryptography.x509.oid import NameOID

from mockube.apimachinery.groups import GroupVersion
from mockube.apimachinery.randomness import SeededRandom
from mockube.apimachinery.status import ApiError, Forbidden
from mockube.apiserver.aggregation.remotes import RemoteAPIService
from mockube.apiserver.http.backend_connection import Dialer, KubeletClient
from mockube.apiserver.http.proxy import ReverseProxy
from mockube.apiserver.http.server import Server
from mockube.apiserver.http.service_proxy import ServiceProxy
from mockube.apiserver.registry.subresources.locations import Location
from mockube.apiserver.request.error_responses import error_response
from mockube.apiserver.user import User
from mockube.component_base.clock import RealClock, SteppedClock
from mockube.component_base.serving_certificates import self_signed_pair
from tests.support.event_loop import until
from tests.support.server.fake_transport import FakeTransport
from tests.support.smuggling.cases import (
    RecordingBackend,
    cases,
    listening,
    methods_of,
    statuses_in,
    without_kind_of_refusal,
)

SERVICE = RemoteAPIService(
    name="v1.a.example",
    served=GroupVersion("a.example", "v1"),
    service=("default", "a", 443),
    is_insecure=True,
    is_available=True,
)


@pytest.fixture(scope="module")
def server_context(tmp_path_factory):
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "a")])
    names = x509.SubjectAlternativeName([x509.DNSName("a.default.svc")])
    pair = self_signed_pair(subject, names, now=RealClock().now(), random=SeededRandom(1))
    path = tmp_path_factory.mktemp("tls") / "pair.pem"
    path.write_bytes(b"".join(pair))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path)
    return context


async def received(case, forward, size=0):
    """Return the statuses that a client of a server gets whose requests below /public/ are forwarded. `size` is that of the pieces in which a request arrives."""

    async def handle(request):
        request.user = User(name="alice")
        try:
            if not request.path.startswith("/public/"):
                raise Forbidden("not public")
            return await forward(request)
        except ApiError as error:
            return error_response(error, request)

    server = Server(handle, clock=SteppedClock())
    wire = FakeTransport(server())
    for at in range(0, len(case.send), size or len(case.send)):
        wire.receive(case.send[at : at + (size or len(case.send))])
    methods = methods_of(case)
    await until(lambda: wire.is_closed or len(statuses_in(bytes(wire.sent), methods)) >= len(case.statuses))
    statuses = statuses_in(bytes(wire.sent), methods)
    wire.close()
    await server.shutdown(0.01)
    return without_kind_of_refusal(statuses)


@pytest.mark.thorough
@pytest.mark.parametrize("case", cases("proxy"))
async def test_proxy_of_pods_refuses_request_or_forwards_it_in_one_form(case):
    assert await proxied_to_pod(case) == (case.statuses, case.forwarded)


@pytest.mark.thorough
@pytest.mark.parametrize("case", cases("proxy"))
async def test_pieces_of_a_request_do_not_matter(case):
    assert await proxied_to_pod(case, size=1) == (case.statuses, case.forwarded)


@pytest.mark.parametrize(
    "case", [each for each in cases("proxy") if "empty line" not in each.id]
)  # RFC 9112 (2.2) wants these to be ignored; Go ignores them behind POST only
def test_no_request_passes_that_go_refuses(case):
    assert len(case.forwarded) <= case.original.count(200)


async def proxied_to_pod(case, size=0):
    backend = RecordingBackend()
    async with listening(backend) as port:
        proxy = ReverseProxy(KubeletClient(), RealClock())

        async def forward(request):
            query = request.uri.partition("?")[2]
            location = Location(
                scheme="http", host="127.0.0.1", port=str(port), path=quote(request.path), query=query
            )
            return await proxy.forward(request, location, upgrade_required=False)

        statuses = await received(case, forward, size)
    return statuses, backend.forwarded(case.host)


@pytest.mark.thorough
@pytest.mark.parametrize("case", cases("aggregation"))
async def test_proxy_of_api_servers_refuses_request_or_forwards_it_in_one_form(case, server_context):
    backend = RecordingBackend()
    async with listening(backend, tls=server_context) as port:
        dialer = Dialer(KubeletClient(), RealClock())
        proxy = ServiceProxy(lambda _: ("127.0.0.1", port), None, dialer)
        statuses = await received(case, lambda request: proxy.forward(SERVICE, request))
        await proxy.close()
    assert (statuses, backend.forwarded()) == (case.statuses, case.forwarded)
