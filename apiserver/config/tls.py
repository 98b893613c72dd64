"""The TLS flags: Go's names of versions and cipher suites, and OpenSSL's names of the same suites.

As in Go, connections of TLS 1.3 can use all suites of TLS 1.3, whichever the flag names.
"""

import ssl
from argparse import ArgumentTypeError
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from mockube.apimachinery.gotext import quote
from mockube.component_base.flags import comma_separated

VERSIONS: Final[Mapping[str, ssl.TLSVersion]] = {
    "VersionTLS10": ssl.TLSVersion.TLSv1_2,
    "VersionTLS11": ssl.TLSVersion.TLSv1_2,
    "VersionTLS12": ssl.TLSVersion.TLSv1_2,
    "VersionTLS13": ssl.TLSVersion.TLSv1_3,
}
"""By Go's name; OpenSSL refuses versions before 1.2."""
OLD_VERSIONS: Final = ("VersionTLS10", "VersionTLS11")

SECURE: Final[Mapping[str, str]] = {
    "TLS_AES_128_GCM_SHA256": "",
    "TLS_AES_256_GCM_SHA384": "",
    "TLS_CHACHA20_POLY1305_SHA256": "",
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA": "ECDHE-ECDSA-AES128-SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256": "ECDHE-ECDSA-AES128-GCM-SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA": "ECDHE-ECDSA-AES256-SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384": "ECDHE-ECDSA-AES256-GCM-SHA384",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305": "ECDHE-ECDSA-CHACHA20-POLY1305",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-ECDSA-CHACHA20-POLY1305",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA": "ECDHE-RSA-AES128-SHA",
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256": "ECDHE-RSA-AES128-GCM-SHA256",
    "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA": "ECDHE-RSA-AES256-SHA",
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384": "ECDHE-RSA-AES256-GCM-SHA384",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305": "ECDHE-RSA-CHACHA20-POLY1305",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-RSA-CHACHA20-POLY1305",
}
"""OpenSSL's names by Go's; "" for suites of TLS 1.3, which are always enabled."""
INSECURE: Final[Mapping[str, str]] = {
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256": "ECDHE-ECDSA-AES128-SHA256",
    "TLS_ECDHE_ECDSA_WITH_RC4_128_SHA": "",
    "TLS_ECDHE_RSA_WITH_3DES_EDE_CBC_SHA": "",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256": "ECDHE-RSA-AES128-SHA256",
    "TLS_ECDHE_RSA_WITH_RC4_128_SHA": "",
    "TLS_RSA_WITH_3DES_EDE_CBC_SHA": "",
    "TLS_RSA_WITH_AES_128_CBC_SHA": "AES128-SHA",
    "TLS_RSA_WITH_AES_128_CBC_SHA256": "AES128-SHA256",
    "TLS_RSA_WITH_AES_128_GCM_SHA256": "AES128-GCM-SHA256",
    "TLS_RSA_WITH_AES_256_CBC_SHA": "AES256-SHA",
    "TLS_RSA_WITH_AES_256_GCM_SHA384": "AES256-GCM-SHA384",
    "TLS_RSA_WITH_RC4_128_SHA": "",
}
"""The same for insecure suites; "" for RC4 and triple DES, which OpenSSL lacks."""


def tls_version(text: str) -> str:
    if text and text not in VERSIONS:
        raise ArgumentTypeError(f"unknown tls version {quote(text)}")
    return text


def cipher_suites(text: str) -> tuple[str, ...]:
    names = comma_separated(text)
    for name in names:
        if name not in SECURE and name not in INSECURE:
            raise ArgumentTypeError(f"Cipher suite {name} not supported or doesn't exist")
    return names


def openssl_ciphers(names: Iterable[str]) -> Sequence[str]:
    """Return OpenSSL's names of the suites for TLS 1.2."""
    suites = {**SECURE, **INSECURE}
    return [suites[name] for name in names if suites[name]]


def insecure_suites(names: Iterable[str]) -> Sequence[str]:
    return [name for name in names if name in INSECURE]


def minimum_version(name: str, suites: Sequence[str]) -> ssl.TLSVersion:
    """Return the oldest accepted version: 1.3 if suites are named and none is for TLS 1.2."""
    if suites and not openssl_ciphers(suites):
        return ssl.TLSVersion.TLSv1_3
    return VERSIONS[name or "VersionTLS12"]


def values_without_effect(name: str, suites: Iterable[str]) -> Sequence[str]:
    """Return the values of flags that have another effect on kube-apiserver."""
    missing = [suite for suite in suites if suite in INSECURE and not INSECURE[suite]]
    return (
        *((f"--tls-min-version={name}",) if name in OLD_VERSIONS else ()),
        *(f"--tls-cipher-suites={suite}" for suite in missing),
    )
