"""Clients' certificates by Kubernetes' authenticators: CAs, and what a connection has received."""

from mockube.apiserver.authn.authenticators import PeerCertificates
from mockube.apiserver.authn.client_certificates import CertificateVerifier
from tests.support.chains import builder as b
from tests.support.chains import shapes
from tests.support.chains.served import pem

AUTHORITY = shapes.root().der()


def client_certificate(subject="O=dev,O=ops,CN=alice", **fields):
    """Return a client's certificate in DER, signed by the key of AUTHORITY."""
    return shapes.leaf(**{"subject": subject, "dns": [], "usages": [b.CLIENT], **fields}).der()


def peer(*chain):
    """Return what a connection has received: its own certificate first."""
    return PeerCertificates(lambda: chain)


def verifier(clock, *authorities):
    text = pem(*(authorities or (AUTHORITY,)))
    return CertificateVerifier(lambda: text, clock)
