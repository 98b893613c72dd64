"""The ConfigMap extension-apiserver-authentication: the authorities and headers by which other API servers authenticate.

Each server of a cluster adds the authorities that it trusts, so written data is combined with the stored data.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

import orjson
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from mockube.apimachinery.tree import Tree
from mockube.apiserver.authn.request_headers import RequestHeaders

OWN_HEADERS: Final = RequestHeaders(
    username=("X-Remote-User",),
    uid=("X-Remote-Uid",),
    groups=("X-Remote-Group",),
    extra_prefixes=("X-Remote-Extra-",),
)
"""The headers of requests that this server proxies."""
_CLIENTS: Final = "client-ca-file"
_PROXIES: Final = "requestheader-client-ca-file"
_LISTS: Final = (
    "requestheader-allowed-names",
    "requestheader-extra-headers-prefix",
    "requestheader-group-headers",
    "requestheader-uid-headers",
    "requestheader-username-headers",
)
_GRACE: Final = timedelta(minutes=5)
"""The time after its expiration for which an authority is still listed."""


class TrustedAuthorities(NamedTuple):
    """Authorities in PEM, and the headers of proxies."""

    clients: bytes
    proxies: bytes
    headers: RequestHeaders


def authentication_data(trusted: TrustedAuthorities) -> Mapping[str, str]:
    data = {_CLIENTS: trusted.clients.decode()}
    if not trusted.proxies:
        return data
    headers = trusted.headers
    lists: Sequence[Sequence[str]] = (
        tuple(headers.allowed_names),
        headers.extra_prefixes,
        headers.groups,
        headers.uid,
        headers.username,
    )
    header_data = {name: _encode_names(values) for name, values in zip(_LISTS, lists, strict=True)}
    if not headers.uid:
        del header_data["requestheader-uid-headers"]
    return data | header_data | {_PROXIES: trusted.proxies.decode()}


def combine(present: Tree, desired: Tree, *, now: datetime) -> dict[str, Any]:
    """Return the present metadata with the data of both: each unexpired certificate and each name once, those already present first."""
    old, new = present.get("data") or {}, desired["data"]
    data = dict(new)
    for name in (_CLIENTS, _PROXIES):
        if combined := _certificates(old.get(name, ""), new.get(name, ""), now):
            data[name] = combined
    if _PROXIES in data:
        for name in _LISTS:
            values = dict.fromkeys([*_decode_names(old.get(name, "")), *_decode_names(new.get(name, ""))])
            if values or name in new:
                data[name] = _encode_names([*values])
    return {"metadata": dict(present.get("metadata") or {}), "data": data}


def _encode_names(values: Sequence[str]) -> str:
    return orjson.dumps(values).decode()


def _decode_names(text: str) -> Sequence[str]:
    """Return a list of names; an empty one if the text is something else."""
    try:
        names = orjson.loads(text)
    except orjson.JSONDecodeError:
        return ()
    return [name for name in names if isinstance(name, str)] if isinstance(names, list) else ()


def _certificates(old: str, new: str, now: datetime) -> str:
    certificates: dict[bytes, str] = {}
    for text in (old, new):
        for certificate in _parse_certificates(text):
            if certificate.not_valid_after_utc > now - _GRACE:
                certificates.setdefault(
                    certificate.public_bytes(Encoding.DER), certificate.public_bytes(Encoding.PEM).decode()
                )
    return "".join(certificates.values())


def _parse_certificates(text: str) -> Sequence[x509.Certificate]:
    try:
        return x509.load_pem_x509_certificates(text.encode())
    except ValueError:
        return ()
