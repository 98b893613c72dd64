"""Signed service account tokens are verified by the API server, for each type of key."""

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

from mockube.apiserver.authn.serviceaccount import jwt
from mockube.apiserver.authn.serviceaccount.keys import load
from mockube.controller_manager.controllers.serviceaccounttoken.signing import (
    InvalidKey,
    claims_of,
    token_signer,
)

ACCOUNT = {"metadata": {"name": "builder", "namespace": "ci", "uid": "u"}}
SECRET = {"metadata": {"name": "builder-token", "namespace": "ci"}}
CLAIMS = {
    "iss": "kubernetes/serviceaccount",
    "kubernetes.io/serviceaccount/namespace": "ci",
    "kubernetes.io/serviceaccount/secret.name": "builder-token",
    "kubernetes.io/serviceaccount/service-account.name": "builder",
    "kubernetes.io/serviceaccount/service-account.uid": "u",
    "sub": "system:serviceaccount:ci:builder",
}


def pem(key):
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def test_token_claims_are_upstreams():
    assert claims_of(ACCOUNT, SECRET) == CLAIMS


@pytest.mark.parametrize(
    "key",
    [
        rsa.generate_private_key(65537, 2048),
        *(ec.generate_private_key(curve()) for curve in (ec.SECP256R1, ec.SECP384R1, ec.SECP521R1)),
    ],
    ids=["RSA", "P-256", "P-384", "P-521"],
)
def test_signed_token_is_verified_by_server(key):
    assert jwt.verify(load(pem(key)), token_signer(pem(key))(CLAIMS)) == CLAIMS


@pytest.mark.parametrize(
    "text", [b"", b"key", pem(ed25519.Ed25519PrivateKey.generate())], ids=["empty", "text", "Ed25519"]
)
def test_unsupported_signing_key_is_refused(text):
    with pytest.raises(InvalidKey):
        token_signer(text)
