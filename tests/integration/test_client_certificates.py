"""Authentication by client certificates over TLS: accepted certificates, and forged ones."""

from datetime import timedelta

import aiohttp
import pytest

from mockube.apimachinery.randomness import SystemRandom
from mockube.apiserver.pki.cert_dir import AUTHORITY, CLIENT, SERVER, Folder
from mockube.apiserver.pki.issue import CertificateIssuer, Pair, Subject, make_authority
from mockube.component_base.clock import RealClock
from tests.support.processes.process import ApiServerProcess, tls, token

pytestmark = pytest.mark.slow

MASTER = Subject(name="eve", groups=("system:masters",))
NOW = RealClock().now()
YEAR = timedelta(days=365)
REVIEW = "/apis/authentication.k8s.io/v1/selfsubjectreviews"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("server")
    with ApiServerProcess(folder, f"--cert-dir={folder / 'pki'}") as server:
        server.pki = Folder(path=folder / "pki")
        yield server


def issue_certificate(authority, subject=MASTER, *, since=timedelta()):
    """Sign a certificate that is valid for a year, which began so long ago."""
    return CertificateIssuer(authority, now=NOW - since, random=SystemRandom()).issue(subject)


def other_authority(name="kubernetes"):
    return make_authority(name, now=NOW, random=SystemRandom())


def with_chain(leaf, *others):
    """Return the certificate with its chain."""
    return Pair(certificate=b"".join([leaf.certificate, *(one.certificate for one in others)]), key=leaf.key)


async def user_of(server, pair, tmp_path, **headers):
    """Return the user of a certificate; None if the response is 401, or 403 for an anonymous request without one."""
    context = tls(server.kubeconfig, certificate=False)
    if pair is not None:
        file = tmp_path / "pair.pem"
        file.write_bytes(pair.certificate + pair.key)
        context.load_cert_chain(file)
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=context)) as session:
        body = {"kind": "SelfSubjectReview", "apiVersion": "authentication.k8s.io/v1"}
        async with session.post(server.url + REVIEW, json=body, headers=headers) as answer:
            found = await answer.json()
    if answer.status == 201:
        return found["status"]["userInfo"]
    is_anonymous = pair is None and 'User "system:anonymous" cannot' in found["message"]
    assert is_anonymous or (answer.status, found["message"]) == (401, "Unauthorized")
    return None


async def test_client_certificate_of_servers_ca_is_accepted(server, tmp_path):
    authority = server.pki.pair(AUTHORITY)
    found = await user_of(
        server, issue_certificate(authority, Subject(name="bob", groups=("dev",))), tmp_path
    )
    credential = found.pop("extra")["authentication.kubernetes.io/credential-id"]
    assert [one.partition("=")[0] for one in credential] == ["X509SHA256"]
    assert found == {"username": "bob", "groups": ["dev", "system:authenticated"]}


async def test_client_certificate_precedes_headers(server, tmp_path):
    bob = issue_certificate(server.pki.pair(AUTHORITY), Subject(name="bob"))
    headers = {"X-Remote-User": "eve", "X-Remote-Group": "system:masters", "Authorization": "Bearer nobody"}
    assert (await user_of(server, bob, tmp_path, **headers))["username"] == "bob"
    assert await user_of(server, None, tmp_path, **headers) is None


async def test_forged_certificates_are_refused(server, tmp_path):
    authority, stranger = server.pki.pair(AUTHORITY), other_authority()
    bob = issue_certificate(authority, Subject(name="bob"))
    made = {
        "another authority's": issue_certificate(stranger),
        "another authority's, with that one shown": with_chain(issue_certificate(stranger), stranger),
        "another authority's, with the server's shown": with_chain(issue_certificate(stranger), authority),
        "signed by a user": with_chain(issue_certificate(bob), bob),
        "signed by a user and shown with the authority": with_chain(issue_certificate(bob), bob, authority),
        "signed by the administrator": with_chain(
            issue_certificate(server.pki.pair(CLIENT)), server.pki.pair(CLIENT)
        ),
        "signed by itself": make_authority("eve", now=NOW, random=SystemRandom()),
        "over": issue_certificate(authority, since=YEAR + timedelta(days=1)),
        "not begun": issue_certificate(authority, since=-timedelta(days=1)),
        "a server's": server.pki.pair(SERVER),
    }
    assert {name: await user_of(server, pair, tmp_path) for name, pair in made.items()} == dict.fromkeys(made)


async def test_token_authenticates_despite_untrusted_certificate(server, tmp_path):
    stranger = issue_certificate(other_authority())
    valid = {"Authorization": f"Bearer {token(server.kubeconfig)}"}
    assert (await user_of(server, None, tmp_path, **valid))["groups"][0] == "system:masters"
    assert (await user_of(server, stranger, tmp_path, **valid))["groups"][0] == "system:masters"
    assert await user_of(server, stranger, tmp_path, Authorization="Bearer wrong") is None
    server.wait_logged("x509: certificate signed by unknown authority")


@pytest.fixture(scope="module")
def proxied_server(tmp_path_factory):
    """A server with a front proxy, whose CA differs from the client CA."""
    folder = tmp_path_factory.mktemp("proxied")
    proxies = other_authority("proxies")
    (folder / "proxies.pem").write_bytes(proxies.certificate)
    flags = (
        f"--requestheader-client-ca-file={folder / 'proxies.pem'}",
        "--requestheader-allowed-names=proxy",
        "--requestheader-username-headers=X-Remote-User",
        "--requestheader-group-headers=X-Remote-Group",
        "--requestheader-extra-headers-prefix=X-Remote-Extra-",
    )
    with ApiServerProcess(folder, f"--cert-dir={folder / 'pki'}", *flags) as server:
        server.pki, server.proxies = Folder(path=folder / "pki"), proxies
        yield server


async def test_only_front_proxy_may_name_users(proxied_server, tmp_path):
    proxy = issue_certificate(proxied_server.proxies, Subject(name="proxy"))
    bob = issue_certificate(proxied_server.pki.pair(AUTHORITY), Subject(name="bob"))
    eve = {"X-Remote-User": "eve", "X-Remote-Group": "dev", "X-Remote-Extra-A": "b"}
    assert await user_of(proxied_server, proxy, tmp_path, **eve) == {
        "username": "eve",
        "groups": ["dev", "system:authenticated"],
        "extra": {"a": ["b"]},
    }
    assert (await user_of(proxied_server, bob, tmp_path, **eve))["username"] == "bob"
    assert await user_of(proxied_server, proxy, tmp_path) is None
    assert await user_of(proxied_server, issue_certificate(proxied_server.proxies), tmp_path, **eve) is None
    assert await user_of(proxied_server, None, tmp_path, **eve) is None
    assert (
        await user_of(
            proxied_server,
            issue_certificate(other_authority("proxies"), Subject(name="proxy")),
            tmp_path,
            **eve,
        )
        is None
    )
