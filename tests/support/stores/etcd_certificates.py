"""A CA and certificates that it signed, as files for an etcd server and its clients."""

from dataclasses import dataclass
from datetime import UTC, datetime
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

LOOPBACK = x509.IPAddress(ip_address("127.0.0.1"))
ELSEWHERE = x509.DNSName("elsewhere.example")


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificates:
    ca: str
    server_cert: str
    server_key: str
    client_cert: str
    client_key: str


class Authority:
    def __init__(self, folder: Path):
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "etcd test authority")])
        constraints = x509.BasicConstraints(ca=True, path_length=0)
        certificate = self._describe(self._name, self._key).add_extension(constraints, critical=True)
        self.ca = self._write("ca.pem", self._sign(certificate).public_bytes(serialization.Encoding.PEM))

    def certificates(self, *, server_name=LOOPBACK):
        server_cert, server_key = self._issue("server", server_name)
        client_cert, client_key = self._issue("client", x509.DNSName("client"))
        return Certificates(
            ca=self.ca,
            server_cert=server_cert,
            server_key=server_key,
            client_cert=client_cert,
            client_key=client_key,
        )

    def _issue(self, file, name):
        key = ec.generate_private_key(ec.SECP256R1())
        # etcd's gateway is a client of its own server, with the server's certificate.
        both = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH])
        certificate = (
            self._describe(x509.Name([]), key)
            .add_extension(x509.SubjectAlternativeName([name]), critical=True)
            .add_extension(both, critical=False)
        )
        pem = self._sign(certificate).public_bytes(serialization.Encoding.PEM)
        private = key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        return self._write(f"{file}.pem", pem), self._write(f"{file}.key", private)

    def _describe(self, subject, key):
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(datetime(2020, 1, 1, tzinfo=UTC))
            .not_valid_after(datetime(2120, 1, 1, tzinfo=UTC))
        )

    def _sign(self, certificate):
        return certificate.sign(self._key, hashes.SHA256())

    def _write(self, name, content):
        path = self._folder / name
        path.write_bytes(content)
        return str(path)
