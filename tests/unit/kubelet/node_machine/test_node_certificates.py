"""The certificates of API servers on control-plane nodes, with the names and the addresses of the nodes."""

from datetime import UTC, datetime

import pytest
from cryptography import x509

from mockube.apimachinery.randomness import SystemRandom
from mockube.apiserver.pki.cert_dir import server_subject
from mockube.apiserver.pki.issue import CertificateIssuer, make_authority
from mockube.kubelet.installation import Installation
from mockube.kubelet.node_machine.node_certificates import API_SERVER, NodeCertificates

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture(scope="module")
def authority():
    return make_authority("kubernetes", now=NOW, random=SystemRandom())


@pytest.fixture(scope="module")
def served(authority):
    subject = server_subject(["192.0.2.2", "localhost"], "10.96.0.0/12")
    return CertificateIssuer(authority, now=NOW, random=SystemRandom()).issue(subject)


def certificates(folder, served, authority=None):
    """Return the certificates of nodes; without an authority its key is not there."""
    (folder / "apiserver.crt").write_bytes(served.certificate)
    if authority is not None:
        (folder / "ca.crt").write_bytes(authority.certificate)
        (folder / "ca.key").write_bytes(authority.key)
    return NodeCertificates(
        Installation(
            certificates={API_SERVER: str(folder / "apiserver.crt")},
            authority=(str(folder / "ca.crt"), str(folder / "ca.key")),
        )
    )


def shown(certificates, name="control-plane-2", address="172.18.0.5"):
    """Return the certificate of a node, for whose cluster that of 172.18.0.4 is the first one."""
    return x509.load_pem_x509_certificate(
        certificates.of_node(name, (address, "172.18.0.4"))[API_SERVER].encode()
    )


def test_certificate_has_the_name_and_the_address_of_its_node(tmp_path, served, authority):
    certificate = shown(certificates(tmp_path, served, authority))
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == [
        "control-plane-2", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local",
    ]  # fmt: skip
    addresses = [str(each) for each in names.get_values_for_type(x509.IPAddress)]
    assert addresses == ["10.96.0.1", "192.0.2.2", "172.18.0.5", "172.18.0.4"]


def test_certificate_is_signed_by_the_authority_and_ends_with_the_served_one(tmp_path, served, authority):
    certificate, original = (
        shown(certificates(tmp_path, served, authority)),
        x509.load_pem_x509_certificate(served.certificate),
    )
    certificate.verify_directly_issued_by(x509.load_pem_x509_certificate(authority.certificate))
    assert certificate.not_valid_after_utc == original.not_valid_after_utc
    assert (certificate.subject, certificate.public_key()) == (original.subject, original.public_key())
    assert certificate.serial_number != original.serial_number


def test_certificate_of_a_node_is_always_the_same(tmp_path, served, authority):
    first, again = (certificates(tmp_path, served, authority) for _ in range(2))
    assert shown(first) == shown(again)
    assert shown(first) != shown(first, "control-plane-1", "172.18.0.4")


def test_certificate_without_the_key_of_its_authority_is_the_served_one(tmp_path, served):
    assert shown(certificates(tmp_path, served)) == x509.load_pem_x509_certificate(served.certificate)


def test_certificate_of_another_authority_is_the_served_one(tmp_path, served):
    other = make_authority("other", now=NOW, random=SystemRandom())
    assert shown(certificates(tmp_path, served, other)) == x509.load_pem_x509_certificate(served.certificate)


@pytest.mark.parametrize("address", ["", "none"])
def test_certificate_of_a_node_without_an_address_is_the_served_one(tmp_path, served, authority, address):
    found = shown(certificates(tmp_path, served, authority), address=address)
    assert found == x509.load_pem_x509_certificate(served.certificate)
