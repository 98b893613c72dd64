"""Reload of certificate files: new connections use the new contents if these are valid."""

import pytest

from mockube.apimachinery.randomness import SystemRandom
from mockube.apiserver.pki.issue import CertificateIssuer, Pair, Subject, make_authority
from mockube.apiserver.pki.reloading import CertificateFiles, ServingCertificates
from mockube.component_base.clock import RealClock

NOW = RealClock().now()


def authority(name):
    return make_authority(name, now=NOW, random=SystemRandom())


def server_pair(of):
    return CertificateIssuer(of, now=NOW, random=SystemRandom()).issue(
        Subject(name="server", hosts=("localhost",))
    )


class Files:
    def __init__(self, folder):
        self.authority = authority("first")
        self.pair = server_pair(self.authority)
        self.paths = [folder / name for name in ("tls.crt", "tls.key", "clients.crt", "proxies.crt")]
        self.write(self.pair, self.authority.certificate, self.authority.certificate)
        certificate, key, clients, proxies = self.paths
        self.certificates = ServingCertificates(
            self.pair,
            clients.read_bytes(),
            proxies.read_bytes(),
            files=CertificateFiles(
                pair=(certificate, key), client_ca=(clients,), request_headers_ca=(proxies,)
            ),
        )
        self.notified = []
        self.certificates.on_change.append(lambda: self.notified.append("authorities"))
        self.certificates.on_new_certificate.append(lambda: self.notified.append("certificate"))

    def write(self, pair, clients, proxies):
        for path, content in zip(self.paths, (pair.certificate, pair.key, clients, proxies), strict=True):
            path.write_bytes(content)


@pytest.fixture
def files(tmp_path):
    return Files(tmp_path)


async def test_unchanged_files_change_nothing(files):
    before = files.certificates.context
    await files.certificates.reload()
    assert files.certificates.context is before
    assert files.notified == []


async def test_new_authorities_replace_the_old_ones(files):
    second, third = authority("second"), authority("third")
    before = files.certificates.context
    files.write(files.pair, second.certificate, third.certificate)
    await files.certificates.reload()
    assert files.certificates.context is not before
    assert files.certificates.client_ca == second.certificate
    assert files.certificates.request_headers_ca == third.certificate
    assert files.notified == ["authorities"]


async def test_changed_certificate_pair_is_served(files):
    pair = server_pair(files.authority)
    files.write(pair, files.authority.certificate, files.authority.certificate)
    await files.certificates.reload()
    assert files.certificates.certificate == pair.certificate
    assert files.notified == ["certificate"]


@pytest.mark.parametrize("content", [b"", b"no certificate", b"-----BEGIN CERTIFICATE-----\nAA"])
async def test_invalid_authorities_are_not_used(files, content, caplog):
    files.write(files.pair, content, files.authority.certificate)
    for _ in range(2):
        await files.certificates.reload()
    assert files.certificates.client_ca == files.authority.certificate
    assert files.notified == []
    assert [record.levelname for record in caplog.records] == ["ERROR"]  # one record for two reads


async def test_certificate_without_matching_key_is_not_used(files):
    other = server_pair(files.authority)
    half = Pair(certificate=other.certificate, key=files.pair.key)
    second = authority("second").certificate
    files.write(half, second, files.authority.certificate)
    await files.certificates.reload()
    assert files.certificates.certificate == files.pair.certificate
    assert files.certificates.client_ca == second  # the other files are reloaded
    files.write(other, second, files.authority.certificate)
    await files.certificates.reload()
    assert files.certificates.certificate == other.certificate
    assert files.notified == ["authorities", "certificate"]


async def test_missing_file_keeps_current_certificates(files):
    files.paths[2].unlink()
    await files.certificates.reload()
    assert files.certificates.client_ca == files.authority.certificate


async def test_contents_without_files_never_change(files):
    certificates = ServingCertificates(files.pair, files.authority.certificate)
    assert not certificates.follows_files
    before = certificates.context
    await certificates.reload()
    assert certificates.context is before
