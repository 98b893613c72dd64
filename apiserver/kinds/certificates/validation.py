"""Validation of CertificateSigningRequests: the request, its decisions and the issued certificate."""

import base64
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from msgspec import Struct

from mockube.apimachinery import errors, pem
from mockube.apimachinery.certificate_requests import signature_problem
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.paths import ROOT, Path
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apimachinery.x509.pool import certificate_problem
from mockube.apiserver.kinds.common import objectmeta
from mockube.apiserver.kinds.common.checks import pointer, require_that, unique
from mockube.apiserver.kinds.common.objectmeta import NameRule
from mockube.apiserver.kinds.common.signer_names import check_signer_name
from mockube.apiserver.kinds.common.validation import Update, Validation, get_struct

_LEGACY_SIGNER: Final = "kubernetes.io/legacy-unknown"
_APPROVED, _DENIED, _FAILED = "Approved", "Denied", "Failed"
_ONLY_TRUE: Final = (_APPROVED, _DENIED, _FAILED)
_STATUSES: Final = ("False", "True", "Unknown")

_USAGES: Final = (
    "any", "cert sign", "client auth", "code signing", "content commitment", "crl sign", "data encipherment",
    "decipher only", "digital signature", "email protection", "encipher only", "ipsec end system", "ipsec tunnel",
    "ipsec user", "key agreement", "key encipherment", "microsoft sgc", "netscape sgc", "ocsp signing", "s/mime",
    "server auth", "signing", "timestamping",
)  # fmt: skip

_CONDITIONS: Final = ROOT.child("status", "conditions")
_CERTIFICATE: Final = ROOT.child("status", "certificate")


class _Exemptions(Struct, frozen=True, kw_only=True):
    """Invalid values that an update may have because the old object has them."""

    both_decisions: bool = False
    legacy_signer: bool = False
    repeated_conditions: bool = False
    untyped_conditions: bool = False
    any_certificate: bool = False
    repeated_usages: bool = False
    unknown_usages: bool = False


_STRICT: Final = _Exemptions()


def _repeats(values: Sequence[Any]) -> bool:
    return len({*values}) < len(values)


def _exemptions(new: ReadOnlyTree, old: ReadOnlyTree) -> _Exemptions:
    spec, status = get_struct(old, "spec"), get_struct(old, "status")
    types = [condition.get("type", "") for condition in status.get("conditions") or ()]
    usages = spec.get("usages") or ()
    certificate = status.get("certificate") or ""
    same_certificate = certificate == (get_struct(new, "status").get("certificate") or "")
    return _Exemptions(
        both_decisions={_APPROVED, _DENIED} <= {*types},
        legacy_signer=spec.get("signerName") == _LEGACY_SIGNER,
        repeated_conditions=_repeats(types),
        untyped_conditions="" in types,
        any_certificate=same_certificate or bool(_certificate_problem(certificate)),
        repeated_usages=_repeats(usages),
        unknown_usages=not {*usages} <= {*_USAGES},
    )


# --- the request


def parse_request(request: str) -> x509.CertificateSigningRequest:
    """Return the certificate request in `spec.request`, or raise ValueError."""
    block = pem.decode(base64.b64decode(request))
    if block is None or block.type != "CERTIFICATE REQUEST":
        raise ValueError("PEM block type must be CERTIFICATE REQUEST")
    try:
        return x509.load_der_x509_csr(block.data)
    except ValueError as problem:
        raise ValueError(f"asn1: structure error: {problem}") from problem


def _request_problem(request: str) -> str:
    """Return why this is not a signed certificate request, or an empty string."""
    try:
        return signature_problem(parse_request(request))
    except ValueError as problem:
        return str(problem)
    except UnsupportedAlgorithm as problem:
        return f"asn1: structure error: {problem}"


def _check_usages(usages: Sequence[str], path: Path, exemptions: _Exemptions) -> Iterator[FieldError]:
    if not usages:
        yield errors.required(path)
    for index, usage in enumerate(usages):
        if usage not in _USAGES and not exemptions.unknown_usages:
            yield errors.not_supported(path.index(index), usage, _USAGES)
    if not exemptions.repeated_usages:
        yield from unique()(usages, path)


# --- signers


def _check_signer_name(signer: str, path: Path, exemptions: _Exemptions) -> Iterable[FieldError]:
    if signer == _LEGACY_SIGNER and not exemptions.legacy_signer:
        problem = "the legacy signerName is not allowed via this API version"
        return (errors.invalid(path, signer, problem),)
    return check_signer_name(signer, path)


# --- conditions and certificate


def _check_condition(condition: ReadOnlyTree, path: Path, exemptions: _Exemptions) -> Iterator[FieldError]:
    kind, status = condition.get("type", ""), condition.get("status", "")
    supported = ("True",) if kind in _ONLY_TRUE else _STATUSES
    if not kind and not exemptions.untyped_conditions:
        yield errors.required(path.child("type"))
    if not status:
        yield errors.required(path.child("status"))
    elif status not in supported:
        yield errors.not_supported(path.child("status"), status, supported)


def _check_conditions(conditions: Sequence[ReadOnlyTree], exemptions: _Exemptions) -> Iterator[FieldError]:
    seen: set[str] = set()
    for index, condition in enumerate(conditions):
        path, kind = _CONDITIONS.index(index), condition.get("type", "")
        yield from _check_condition(condition, path, exemptions)
        other = {_APPROVED: _DENIED, _DENIED: _APPROVED}.get(kind)
        if other in seen and not exemptions.both_decisions:
            problem = "Approved and Denied conditions are mutually exclusive"
            yield errors.invalid(_CONDITIONS, kind, problem)
        if kind in seen and not exemptions.repeated_conditions:
            yield errors.duplicate(path.child("type"), kind)
        seen.add(kind)


def _certificate_problem(certificate: str) -> str:
    data = base64.b64decode(certificate)
    if not data:
        return ""
    blocks = pem.blocks(data)
    if not blocks:
        return "must contain at least one CERTIFICATE PEM block"
    return next(filter(None, map(_block_problem, blocks)), "")


def _block_problem(block: pem.Block) -> str:
    if block.type != "CERTIFICATE":
        return f'only CERTIFICATE PEM blocks are allowed, found "{block.type}"'
    if block.headers:
        return "no PEM block headers are permitted"
    return certificate_problem(block.data)


# --- the object

_NO_RULE: Final = NameRule(lambda _name: [], lambda _name: [])
_EXPIRATION: Final = pointer(
    "expirationSeconds",
    require_that(
        lambda seconds: seconds >= 600, "may not specify a duration less than 600 seconds (10 minutes)"
    ),
)


def _check(tree: ReadOnlyTree, exemptions: _Exemptions) -> Iterator[FieldError]:
    spec, path, status = get_struct(tree, "spec"), ROOT.child("spec"), get_struct(tree, "status")
    request = spec.get("request")
    problem = _request_problem(request or "")
    if problem:
        yield errors.invalid(path.child("request"), request, problem)
    yield from _check_usages(spec.get("usages") or (), path.child("usages"), exemptions)
    yield from _check_signer_name(spec.get("signerName", ""), path.child("signerName"), exemptions)
    yield from _EXPIRATION(spec, path)
    yield from _check_conditions(status.get("conditions") or (), exemptions)
    problem = "" if exemptions.any_certificate else _certificate_problem(status.get("certificate") or "")
    if problem:
        yield errors.invalid(_CERTIFICATE, "<certificate data>", problem)


def _create(tree: ReadOnlyTree) -> Iterable[FieldError]:
    return _check(tree, _STRICT)


def _conditions(tree: ReadOnlyTree, kind: str) -> list[ReadOnlyTree]:
    return [
        condition
        for condition in get_struct(tree, "status").get("conditions") or ()
        if condition.get("type") == kind
    ]


def _check_decisions(new: ReadOnlyTree, old: ReadOnlyTree, *, allow_decisions: bool) -> Iterator[FieldError]:
    """Refuse to remove a decision, and to add or change one except through /approval."""
    for kind in _ONLY_TRUE:
        if len(_conditions(new, kind)) < len(_conditions(old, kind)):
            yield errors.forbidden(_CONDITIONS, f'updates may not remove a condition of type "{kind}"')
    for kind in () if allow_decisions else (_APPROVED, _DENIED):
        new_decisions, old_decisions = _conditions(new, kind), _conditions(old, kind)
        if len(new_decisions) > len(old_decisions):
            yield errors.forbidden(_CONDITIONS, f'updates may not add a condition of type "{kind}"')
        elif len(new_decisions) == len(old_decisions) and new_decisions != old_decisions:
            # Upstream's message has a diff after this line.
            yield errors.forbidden(_CONDITIONS, f'updates may not modify a condition of type "{kind}"\n')


def _check_certificate(
    new: ReadOnlyTree, old: ReadOnlyTree, *, allow_certificate: bool
) -> Iterable[FieldError]:
    certificate, old_certificate = (
        get_struct(tree, "status").get("certificate") or "" for tree in (new, old)
    )
    if certificate == old_certificate:
        return ()
    if not allow_certificate:
        return (errors.forbidden(_CERTIFICATE, "updates may not set certificate content"),)
    return (
        (errors.forbidden(_CERTIFICATE, "updates may not modify existing certificate content"),)
        if old_certificate
        else ()
    )


def _update(*, allow_decisions: bool = False, allow_certificate: bool = False) -> Update:
    def update(new: ReadOnlyTree, old: ReadOnlyTree) -> Iterator[FieldError]:
        yield from objectmeta.check(new, _NO_RULE, namespaced=False)
        yield from _check(new, _exemptions(new, old))
        yield from _check_decisions(new, old, allow_decisions=allow_decisions)
        yield from _check_certificate(new, old, allow_certificate=allow_certificate)

    return update


VALIDATION: Final = Validation(
    name=_NO_RULE,
    create=_create,
    update=_update(),
    subresources={"status": _update(allow_certificate=True), "approval": _update(allow_decisions=True)},
)
