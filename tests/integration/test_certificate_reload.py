"""The serving certificate and the client CAs are reloaded when their files change."""

import asyncio
import ssl

import aiohttp
import pytest

from mockube.apimachinery.randomness import SystemRandom
from mockube.apiserver.pki.issue import CertificateIssuer, Subject, make_authority
from mockube.component_base.clock import RealClock
from tests.support.processes.process import ApiServerProcess, token

pytestmark = pytest.mark.slow

NOW = RealClock().now()
REVIEW = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
TRUST = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication"
HOST = "127.0.0.1"
WAIT_TIMEOUT = 30.0


def authority(name):
    return make_authority(name, now=NOW, random=SystemRandom())


def issue_certificate(by, subject):
    return CertificateIssuer(by, now=NOW, random=SystemRandom()).issue(subject)


class ServerCertificates:
    def __init__(self, folder):
        self.folder = folder
        self.servers, self.clients = authority("servers"), authority("clients")
        self.serve(HOST)
        self.trust(self.clients)
        self.flags = (
            f"--tls-cert-file={folder / 'tls.crt'}",
            f"--tls-private-key-file={folder / 'tls.key'}",
            f"--client-ca-file={folder / 'clients.crt'}",
        )

    def serve(self, *hosts):
        pair = issue_certificate(self.servers, Subject(name="server", hosts=hosts))
        (self.folder / "tls.key").write_bytes(pair.key)
        (self.folder / "tls.crt").write_bytes(pair.certificate)

    def trust(self, *authorities):
        content = b"".join(one.certificate for one in authorities)
        (self.folder / "clients.crt").write_bytes(content)

    def session(self, signer=None):
        """A session with one connection, whose certificate another authority may have signed."""
        context = ssl.create_default_context(cadata=self.servers.certificate.decode())
        if signer is not None:
            pair = issue_certificate(signer, Subject(name="bob", groups=("dev",)))
            file = self.folder / "bob.pem"
            file.write_bytes(pair.certificate + pair.key)
            context.load_cert_chain(file)
        return aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=context, limit=1))


@pytest.fixture
def certificates(tmp_path):
    certificates = ServerCertificates(tmp_path)
    with ApiServerProcess(tmp_path, *certificates.flags) as server:
        certificates.url, certificates.token = server.url, token(server.kubeconfig)
        yield certificates


async def review(session, url, **headers):
    """Return the status code and the user."""
    body = {"kind": "SelfSubjectReview", "apiVersion": "authentication.k8s.io/v1"}
    async with session.post(url + REVIEW, json=body, headers=headers) as answer:
        tree = await answer.json()
        user = tree["status"]["userInfo"]["username"] if answer.status == 201 else ""
        return answer.status, user


async def eventually(probe, expected):
    """Wait until a new connection sees what is expected; the server notices a changed file within a second."""
    async with asyncio.timeout(WAIT_TIMEOUT):
        while await probe() != expected:
            pass  # the probe waits for a response


async def test_changed_client_ca_applies_to_new_and_existing_connections(certificates):
    second = authority("second")

    async def user_of(signer):
        async with certificates.session(signer) as session:
            return await review(session, certificates.url)

    async with certificates.session(certificates.clients) as old:
        assert await review(old, certificates.url) == (201, "bob")
        assert await user_of(second) == (401, "")
        certificates.trust(certificates.clients, second)
        await eventually(lambda: user_of(second), (201, "bob"))
        assert await review(old, certificates.url) == (201, "bob")
        certificates.trust(second)
        await eventually(lambda: user_of(certificates.clients), (401, ""))
        assert (await review(old, certificates.url))[0] == 401  # on the connection that was made before


async def test_config_map_has_changed_client_ca(certificates):
    second = authority("second")
    headers = {"Authorization": f"Bearer {certificates.token}"}
    async with certificates.session() as session:

        async def read_published_ca():
            async with session.get(certificates.url + TRUST, headers=headers) as answer:
                return (await answer.json())["data"]["client-ca-file"].encode()

        assert await read_published_ca() == certificates.clients.certificate
        certificates.trust(second)
        await eventually(read_published_ca, certificates.clients.certificate + second.certificate)


async def test_changed_serving_certificate_and_its_names_apply(certificates):
    headers = {"Authorization": f"Bearer {certificates.token}", "Host": "new.example.com"}

    async def code():
        async with (
            certificates.session() as session,
            session.get(certificates.url + "/version", headers=headers) as answer,
        ):
            return answer.status

    assert await code() == 421
    certificates.serve(HOST, "new.example.com")
    await eventually(code, 200)
