"""Parsing of CertificateSigningRequests, and the rules of the signers for them."""

import base64
from collections.abc import Collection
from typing import Any, Final

from cryptography import x509
from cryptography.x509.oid import NameOID
from msgspec import Struct

from mockube.apimachinery import conditions
from mockube.apimachinery.tree import ReadOnlyTree

API_SERVER_CLIENT: Final = "kubernetes.io/kube-apiserver-client"
KUBELET_CLIENT: Final = "kubernetes.io/kube-apiserver-client-kubelet"
KUBELET_SERVING: Final = "kubernetes.io/kubelet-serving"
LEGACY_UNKNOWN: Final = "kubernetes.io/legacy-unknown"

_BEGIN: Final = b"-----BEGIN CERTIFICATE REQUEST-----"
_SIGNATURE, _ENCIPHERMENT, _CLIENT, _SERVER = (
    "digital signature",
    "key encipherment",
    "client auth",
    "server auth",
)
_NODES_GROUP: Final = "system:nodes"
_NODE_USER_PREFIX: Final = "system:node:"


class BadCertificateRequest(ValueError):
    """The bytes are not a valid certificate request."""


class RequestedCertificate(Struct, frozen=True, kw_only=True):
    """The parts of a request that the rules need."""

    common_name: str
    organizations: tuple[str, ...]
    dns_names: tuple[str, ...]
    emails: tuple[str, ...]
    addresses: tuple[str, ...]
    uris: tuple[str, ...]
    parsed: x509.CertificateSigningRequest


def parse(encoded: str) -> RequestedCertificate:
    """Read the `spec.request` of a CertificateSigningRequest."""
    try:
        csr = x509.load_pem_x509_csr(_pem(encoded))
        names = _alternative_names(csr)
        organizations = _texts(csr.subject, NameOID.ORGANIZATION_NAME)
        common_names = _texts(csr.subject, NameOID.COMMON_NAME)
    except BadCertificateRequest:
        raise
    except (ValueError, x509.DuplicateExtension, x509.UnsupportedGeneralNameType) as error:
        raise BadCertificateRequest(str(error)) from error
    return RequestedCertificate(
        common_name=common_names[-1] if common_names else "",
        organizations=organizations,
        dns_names=_values(names, x509.DNSName),
        emails=_values(names, x509.RFC822Name),
        addresses=_values(names, x509.IPAddress),
        uris=_values(names, x509.UniformResourceIdentifier),
        parsed=csr,
    )


def _pem(encoded: str) -> bytes:
    pem = base64.b64decode(encoded)
    if _BEGIN not in pem:
        raise BadCertificateRequest("PEM block type must be CERTIFICATE REQUEST")
    return pem


def _alternative_names(request: x509.CertificateSigningRequest) -> x509.SubjectAlternativeName | None:
    try:
        return request.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return None


def _values(names: x509.SubjectAlternativeName | None, kind: Any) -> tuple[str, ...]:
    return () if names is None else tuple(str(value) for value in names.get_values_for_type(kind))


def _texts(name: x509.Name, oid: x509.ObjectIdentifier) -> tuple[str, ...]:
    return tuple(str(attribute.value) for attribute in name.get_attributes_for_oid(oid))


def types_of_conditions(csr: ReadOnlyTree) -> frozenset[str]:
    return frozenset(condition["type"] for condition in conditions.of(csr))


def is_issued(csr: ReadOnlyTree) -> bool:
    return bool((csr.get("status") or {}).get("certificate"))


def kubelet_client_problem(request: RequestedCertificate, usages: Collection[str]) -> str:
    """Return the reason why a request is not for a kubelet's client certificate; "" if it is."""
    if request.organizations != (_NODES_GROUP,):
        return "subject organization is not system:nodes"
    for values, kind in (
        (request.dns_names, "DNS"),
        (request.emails, "Email"),
        (request.addresses, "IP"),
        (request.uris, "URI"),
    ):
        if values:
            return f"{kind} subjectAltNames are not allowed"
    if not request.common_name.startswith(_NODE_USER_PREFIX):
        return "subject common name does not begin with system:node:"
    return _usages_problem(usages, _CLIENT)


def kubelet_serving_problem(request: RequestedCertificate, usages: Collection[str]) -> str:
    """Return the reason why a request is not for a kubelet's serving certificate; "" if it is."""
    if request.organizations != (_NODES_GROUP,):
        return "subject organization is not system:nodes"
    if not (request.dns_names or request.addresses):
        return "DNS or IP subjectAltName is required"
    for values, kind in ((request.emails, "Email"), (request.uris, "URI")):
        if values:
            return f"{kind} subjectAltNames are not allowed"
    if problem := _usages_problem(usages, _SERVER):
        return problem
    if not request.common_name.startswith(_NODE_USER_PREFIX):
        return "subject common name does not begin with system:node:"
    return ""


def _usages_problem(usages: Collection[str], purpose: str) -> str:
    required = {_SIGNATURE, _ENCIPHERMENT, purpose}
    if set(usages) in (required, required - {_ENCIPHERMENT}):
        return ""
    return f"usages did not match [{' '.join(sorted(required))}]"


def client_usages_problem(_: RequestedCertificate, usages: Collection[str]) -> str:
    for usage in usages:
        if usage not in (_SIGNATURE, _ENCIPHERMENT, _CLIENT):
            return f"invalid usage for client certificate: {usage}"
    return "" if _CLIENT in usages else f"missing required usage for client certificate: {_CLIENT}"


def no_problem(_: RequestedCertificate, __: Collection[str]) -> str:
    return ""
