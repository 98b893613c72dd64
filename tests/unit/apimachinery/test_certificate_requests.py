"""Verification of the signatures of certificate requests, and its errors."""

import base64

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
from cryptography.hazmat.primitives.serialization import Encoding

from mockube.apimachinery.certificate_requests import signature_problem

KEYS = {
    "rsa": rsa.generate_private_key(65537, 1024),  # a small key is generated quickly
    "ecdsa": ec.generate_private_key(ec.SECP256R1()),
    "ed25519": ed25519.Ed25519PrivateKey.generate(),
}
RSA_SHA1 = """
MIIBPzCBqQIBADAAMIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQKBgQDkt0J6dFxQk0ltngkAhVUh9Sz65oQJiQB3KGbU9OmxU6OJ
oysUmso6jdaMO3SA4WUwfWIF4ps+jG8dOxAZRyOG3iRoQnSBga9C/i0lZsZI9TPtge+eBtcaVw5p9F/6H74ov1gZ/kjDXBDKX2Rc
fHVKEen/9fMeqX0OeoqKK7Z++QIDAQABoAAwDQYJKoZIhvcNAQEFBQADgYEAJDVOxmq+Q2/RZb/aOJ5aS3sWX+Dql/GkQBkhnGtX
RucbQ0rS2nyAs0KVyLJRMbnbWeRI/00PN3L5i/moCixgPN5gs3+DsLYuMFE+yb2sB4lEj6khlOT+XhCFeX6h38Sv/JR7OYbaF+5I
HhO1Q1rKJlSD2n1Xl1fLfttCm7Z9xhM=
"""
RSA_MD5 = """
MIIBPzCBqQIBADAAMIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQKBgQDkt0J6dFxQk0ltngkAhVUh9Sz65oQJiQB3KGbU9OmxU6OJ
oysUmso6jdaMO3SA4WUwfWIF4ps+jG8dOxAZRyOG3iRoQnSBga9C/i0lZsZI9TPtge+eBtcaVw5p9F/6H74ov1gZ/kjDXBDKX2Rc
fHVKEen/9fMeqX0OeoqKK7Z++QIDAQABoAAwDQYJKoZIhvcNAQEEBQADgYEABhLvCqFprghXAuEQELQ9wMpoJ3dBG/EDtX9XulUs
AajMJu2VcAQL9BD3BsFrdv+i+6f0LkdszL0G7IddBHpHbazqDnxTK6YPXUnVp49a1G+1tE4WQr9qFWLPYlBIa2WLT3IuUk1rvs6O
lNhrdtaXDaXLP7qqaq83luA7Ym3btMs=
"""
ECDSA_SHA1 = """
MIG5MGICAQAwADBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABPfK1RywXOCzILI+sb9E+itL0QPtHIdAw5OeRoR3b9l8YBL5cTJI
O6lglNozQj7hJE4KininwmD85eI9htkp6hWgADAJBgcqhkjOPQQBA0gAMEUCIDRaCkru+b22I/KK1dnfoZ/VqRLp97AfBX/DSS26
WioXAiEAsSyREbcTWrz17fYBhjknqeYw8Il/fzIY8HCdBKPDYwE=
"""


def request(name, digest, **how):
    builder = x509.CertificateSigningRequestBuilder().subject_name(x509.Name([]))
    return builder.sign(KEYS[name], digest, **how)


def with_bad_signature(made):
    """Return the request with a changed last byte of its signature."""
    der = bytearray(made.public_bytes(Encoding.DER))
    der[-1] ^= 1
    return x509.load_der_x509_csr(bytes(der))


PSS = {"rsa_padding": padding.PSS(mgf=padding.MGF1(hashes.SHA256()), salt_length=32)}


@pytest.mark.parametrize(
    ("made", "problem"),
    [
        (request("rsa", hashes.SHA256()), "crypto/rsa: verification error"),
        (request("rsa", hashes.SHA256(), **PSS), "crypto/rsa: verification error"),
        (request("ecdsa", hashes.SHA384()), "x509: ECDSA verification failure"),
        (request("ed25519", None), "x509: Ed25519 verification failure"),
    ],
    ids=["rsa", "pss", "ecdsa", "ed25519"],
)
def test_signature_is_verified_with_key_of_csr(made, problem):
    assert signature_problem(made) == ""
    assert signature_problem(with_bad_signature(made)) == problem


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (RSA_SHA1, ""),
        (ECDSA_SHA1, ""),
        (RSA_MD5, "x509: cannot verify signature: insecure algorithm MD5-RSA"),
    ],
    ids=["rsa by sha-1", "ecdsa by sha-1", "md5"],
)
def test_md5_and_sha1_signatures(text, problem):
    assert signature_problem(x509.load_der_x509_csr(base64.b64decode(text))) == problem


def test_signature_algorithm_must_match_key():
    der = request("rsa", hashes.SHA256()).public_bytes(Encoding.DER)
    by_ecdsa = der.replace(
        bytes.fromhex("06092a864886f70d01010b0500"), bytes.fromhex("06092b0601040182371503") + b"\x05\x00"
    )
    assert signature_problem(x509.load_der_x509_csr(by_ecdsa)).endswith("algorithm unimplemented")
