"""The requests of the scheduler to one extender: connections, TLS, limits and times."""

import contextlib
import socket
import ssl

import pytest

from mockube.apimachinery.randomness import SeededRandom
from mockube.apiserver.pki.issue import CertificateIssuer, Subject, make_authority
from mockube.component_base.clock import RealClock
from mockube.component_base.configuration_files import ConfigurationError
from mockube.scheduler.config.extender_access import access_of
from mockube.scheduler.config.types import Extender, ExtenderManagedResource, ExtenderTLSConfig
from mockube.scheduler.extenders import extender as module
from mockube.scheduler.extenders.extender import HTTPExtender
from mockube.scheduler.extenders.messages import ExtenderError
from tests.support.controllers.scheduler_objects import info, node, pod, snapshot
from tests.support.server.raw_server import answer, serving

NAMES = b'{"NodeNames": ["a"]}'


@contextlib.asynccontextmanager
async def extender_at(url, **fields):
    configuration = Extender(url_prefix=url, filter_verb="filter", node_cache_capable=True, **fields)
    extender = HTTPExtender(access_of(configuration))
    try:
        yield extender
    finally:
        await extender.close()


async def filtered(extender):
    """Return the names of the nodes that an extender accepts, or its error."""
    try:
        nodes, _ = await extender.filter(info(pod()), snapshot([node("a"), node("b")]).nodes)
    except ExtenderError as error:
        return str(error)
    return [one.name for one in nodes]


def server_certificate(folder, seed):
    """Return the certificate of an authority, and the TLS context of a server for localhost."""
    now, random = RealClock().now(), SeededRandom(seed)
    authority = make_authority("test", now=now, random=random)
    pair = CertificateIssuer(authority, now=now, random=random).issue(
        Subject(name="server", hosts=("localhost",))
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    for name, data in (("crt", pair.certificate), ("key", pair.key)):
        (folder / name).write_bytes(data)
    context.load_cert_chain(folder / "crt", folder / "key")
    return authority.certificate, context


def sending(*parts):
    async def send(writer):
        for part in parts:
            writer.write(part)
            await writer.drain()

    return send


async def cut(writer):
    writer.transport.abort()


async def test_one_connection_carries_all_requests():
    async with serving(sending(answer(NAMES))) as server, extender_at(f"{server.url}/a b/") as extender:
        assert await filtered(extender) == ["a"]
        assert await filtered(extender) == ["a"]
    assert len(server.connections) == 1
    assert server.lines == ["POST /a%20b/filter HTTP/1.1"] * 2


async def test_cut_connection_is_an_error_of_one_attempt():
    async with serving(cut) as server, extender_at(server.url) as extender:
        assert (await filtered(extender)).startswith(f'Post "{server.url}/filter": ')
        server.talk = sending(answer(NAMES))
        assert await filtered(extender) == ["a"]


async def test_endless_response_ends_the_request(monkeypatch):
    monkeypatch.setattr(module, "_MAX_BODY_BYTES", 1000)
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    chunk = b"100\r\n%s\r\n" % (b" " * 0x100)
    async with serving(sending(head, *[chunk] * 9)) as server, extender_at(server.url) as extender:
        assert await filtered(extender) == f'Post "{server.url}/filter": the response body is too long'


async def test_late_response_ends_the_request():
    async with serving(sending()) as server, extender_at(server.url, http_timeout="10ms") as extender:
        assert (await filtered(extender)).endswith(
            "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"
        )


@pytest.mark.parametrize(
    ("fields", "is_trusted"),
    [
        pytest.param({}, False, id="roots of the machine"),
        pytest.param({"enable_https": True}, True, id="no CA"),
        pytest.param({"tls_config": ExtenderTLSConfig(insecure=True)}, True, id="insecure"),
        pytest.param({"tls_config": "CA"}, True, id="CA"),
        pytest.param({"tls_config": "CA", "enable_https": True}, True, id="CA and enableHTTPS"),
        pytest.param({"tls_config": "other CA"}, False, id="other CA"),
    ],
)
async def test_certificate_of_extender_is_verified(fields, is_trusted, tmp_path):
    authority, context = server_certificate(tmp_path, 1)
    other, _ = server_certificate(tmp_path, 2)
    authorities = {
        "CA": ExtenderTLSConfig(ca_data=authority, server_name="localhost"),
        "other CA": ExtenderTLSConfig(ca_data=other, server_name="localhost"),
    }
    used = {name: authorities.get(value, value) for name, value in fields.items()}
    async with (
        serving(sending(answer(NAMES)), tls=context) as server,
        extender_at(server.url, **used) as extender,
    ):
        assert (await filtered(extender) == ["a"]) == is_trusted


@pytest.mark.parametrize(
    ("tls", "message"),
    [
        pytest.param({"ca_file": "/none"}, "open /none: no such file or directory", id="no file"),
        pytest.param(
            {"ca_data": b"x", "insecure": True},
            "specifying a root certificates file with the insecure flag is not allowed",
            id="CA that is not used",
        ),
        pytest.param({"ca_data": b"x"}, "the CA of https://a: ", id="CA that is none"),
        pytest.param({"cert_data": b"x", "key_data": b"x"}, "", id="certificate that is none"),
    ],
)
def test_unusable_tls_settings_are_refused_at_the_start(tls, message):
    configuration = Extender(url_prefix="https://a", tls_config=ExtenderTLSConfig(**tls))
    with pytest.raises(ConfigurationError) as caught:
        access_of(configuration)
    assert str(caught.value).startswith(f"couldn't build extenders: {message}")


@pytest.mark.parametrize(
    ("spec", "is_interested"),
    [
        pytest.param({}, False, id="none"),
        pytest.param({"containers": [{"resources": {"limits": {"e.com/x": "1"}}}]}, True, id="limit"),
        pytest.param({"initContainers": [{"resources": {"requests": {"e.com/x": "1"}}}]}, True, id="init"),
        pytest.param({"containers": [{"resources": {"requests": {"e.com/y": "1"}}}]}, False, id="other"),
    ],
)
def test_extender_is_interested_in_pods_with_its_resources(spec, is_interested):
    managed = (ExtenderManagedResource(name="e.com/x"),)
    extender = HTTPExtender(access_of(Extender(url_prefix="http://a", managed_resources=managed)))
    assert extender.is_interested(info(pod(**spec))) is is_interested


class Answering(HTTPExtender):
    """An extender whose responses are given."""

    def __init__(self, answer, **fields):
        super().__init__(access_of(Extender(url_prefix="http://x", preempt_verb="preempt", **fields)))
        self._answer = answer

    async def _send(self, *_):
        return self._answer


VICTIMLESS = {"NodeNameToMetaVictims": {"a": {"Pods": []}}}


async def test_node_without_victims_is_passed_over_only_by_an_ignorable_extender():
    nodes = snapshot([node("a")])
    assert await Answering(VICTIMLESS, ignorable=True).process_preemption(info(pod()), [], nodes) == []
    with pytest.raises(ExtenderError):
        await Answering(VICTIMLESS).process_preemption(info(pod()), [], nodes)


async def test_other_status_is_an_error():
    refusal = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n"
    async with serving(sending(refusal)) as server, extender_at(server.url) as extender:
        assert await filtered(extender) == (
            f"failed filter with extender at URL {server.url}/filter, code 503"
        )


def test_request_has_the_address_without_the_user_and_keeps_the_query():
    head = module._encode("http://me:secret@a:80/b%2F/filter?c=d", b"{}").decode()
    assert head.startswith("POST /b%2F/filter?c=d HTTP/1.1\r\nHost: a:80\r\n")
    assert head.endswith("Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{}")


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("http://a", ("a", 80, False)),
        ("https://a", ("a", 443, True)),
        ("http://a:8080", ("a", 8080, False)),
        ("https://[::1]:8443", ("::1", 8443, True)),
    ],
)
def test_scheme_decides_port_and_trust(url, address):
    found = HTTPExtender(access_of(Extender(url_prefix=url)))._access_connections()._address
    assert (found.host, found.port, found.trust is not None) == address
    assert found.server_name == found.host


@pytest.mark.parametrize("field", ["ca", "cert", "key"])
@pytest.mark.parametrize("has_data", [False, True])
def test_data_counts_before_the_file(field, has_data, tmp_path):
    file = tmp_path / field
    file.write_bytes(b"file")
    data = {f"{field}_data": b"data"} if has_data else {}
    tls = ExtenderTLSConfig(**{f"{field}_file": str(file), **data})
    access = access_of(Extender(url_prefix="http://a", tls_config=tls)).access
    used = {"ca": access.authority, "cert": access.certificate, "key": access.key}
    assert used == dict.fromkeys(used, b"") | {field: b"data" if has_data else b"file"}


@pytest.mark.parametrize(("text", "seconds"), [("0s", 5), ("1500ms", 1.5)])
def test_request_may_take_five_seconds_by_default(text, seconds):
    assert access_of(Extender(url_prefix="http://a", http_timeout=text)).timeout == seconds


def test_returned_node_has_no_images():
    """As upstream makes one of a response: without pods and images, so that scores do not count these."""
    tree = node("a", status={"images": [{"names": ["i"], "sizeBytes": 1}]})
    found = module._node_of(tree)
    assert (found.name, found.node, found.images) == ("a", tree, {})
    assert [module._node_of(one).name for one in ({}, {"metadata": {}}, {"metadata": None})] == [""] * 3


@pytest.mark.parametrize(
    ("cause", "message"),
    [
        (TimeoutError(), "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"),
        (socket.gaierror(), "dial tcp: lookup x: no such host"),
        (OSError("odd"), "odd"),
    ],
)
def test_request_without_response_has_gos_message(cause, message):
    error = OSError("cannot connect")
    error.__cause__ = cause
    assert module._problem(error, "http://x:1/filter") == message


@pytest.mark.parametrize("error", [ConnectionRefusedError(), ConnectionRefusedError(111, "refused")])
def test_refused_connection_has_gos_message(error):
    cause = OSError("cannot connect")
    cause.__cause__ = error
    assert module._problem(cause, "http://x/filter") == "dial tcp x:80: connect: connection refused"
    assert module._problem(cause, "https://x/filter").startswith("dial tcp x:443: ")
    assert module._problem(cause, "https://x:8443/filter").startswith("dial tcp x:8443: ")
