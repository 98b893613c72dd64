"""PodCertificateRequest: a certificate that a kubelet requests for a pod. Its signer sets the status."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any, Final

from mockube.apimachinery import conditions, errors, meta, names
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.paths import ROOT
from mockube.apimachinery.tree import ReadOnlyTree, Tree
from mockube.apiserver.fields import selectable
from mockube.apiserver.kinds.api_resource import STATUS, Resource
from mockube.apiserver.kinds.common import objectmeta
from mockube.apiserver.kinds.common.cells import labels_text, text
from mockube.apiserver.kinds.common.checks import IMMUTABLE, is_same
from mockube.apiserver.kinds.common.conditions import check_conditions
from mockube.apiserver.kinds.common.internal import internal
from mockube.apiserver.kinds.common.signer_names import (
    MIN_EXPIRATION_SECONDS,
    check_signer_name,
    max_expiration_seconds,
)
from mockube.apiserver.kinds.common.user_annotations import check_user_annotations
from mockube.apiserver.kinds.common.validation import Validation, get_struct
from mockube.apiserver.kinds.kind import Kind
from mockube.apiserver.kinds.strategy import STATUS_ALONE, Strategy
from mockube.apiserver.wire.table import NAME, Column, Printer

from .issued_certificates import check_issued, check_stub_request

_MAX_UID_BYTES: Final = 128
_SPEC, _STATUS = ROOT.child("spec"), ROOT.child("status")
_CONDITIONS: Final = _STATUS.child("conditions")
_DECISIONS: Final = ("Issued", "Denied", "Failed")

# --- the request


def _check_name(spec: ReadOnlyTree, field: str) -> Iterator[FieldError]:
    name = spec.get(field) or ""
    for problem in names.check_dns1123_subdomain(name):
        yield errors.invalid(_SPEC.child(field), name, problem)


def _check_uid(spec: ReadOnlyTree, field: str) -> Iterator[FieldError]:
    uid = spec.get(field) or ""
    if not uid:
        yield errors.invalid(_SPEC.child(field), uid, "must not be empty")
    if len(uid.encode()) > _MAX_UID_BYTES:
        yield errors.too_long(_SPEC.child(field), _MAX_UID_BYTES)


def _create(request: ReadOnlyTree) -> Iterator[FieldError]:
    spec = get_struct(request, "spec")
    signer, seconds = spec.get("signerName") or "", spec.get("maxExpirationSeconds")
    yield from check_signer_name(signer, _SPEC.child("signerName"))
    yield from check_user_annotations(
        spec.get("unverifiedUserAnnotations"), _SPEC.child("unverifiedUserAnnotations")
    )
    for subject in ("pod", "serviceAccount", "node"):
        yield from _check_name(spec, f"{subject}Name")
        yield from _check_uid(spec, f"{subject}UID")
    if seconds is None:
        yield errors.required(_SPEC.child("maxExpirationSeconds"), "must be set")
        return
    minimum, maximum = MIN_EXPIRATION_SECONDS, max_expiration_seconds(signer)
    if not minimum <= seconds <= maximum:
        problem = f"must be in the range [{minimum}, {maximum}]"
        yield errors.invalid(_SPEC.child("maxExpirationSeconds"), seconds, problem)
    if spec.get("stubPKCS10Request"):
        yield from check_stub_request(spec["stubPKCS10Request"])
    else:
        problem = "exactly one of (stubPKCS10Request) or (pkixPublicKey, proofOfPossession) must be set"
        yield errors.invalid(_SPEC, errors.OMITTED, problem)


def _update(new: ReadOnlyTree, old: ReadOnlyTree) -> Iterable[FieldError]:
    spec = get_struct(new, "spec")
    if is_same(spec, get_struct(old, "spec")):
        return ()
    return (errors.invalid(_SPEC, internal("certificates.PodCertificateRequestSpec", spec), IMMUTABLE),)


# --- the status


def status_errors(new: ReadOnlyTree, old: ReadOnlyTree, now: datetime | None = None) -> list[FieldError]:
    """Return the errors of a change of the status. `now` is compared with the times of a certificate, if it is given."""
    if objectmeta.check_update(new, old):
        return []  # errors of the metadata are the only ones
    status, before = get_struct(new, "status"), get_struct(old, "status")
    field_errors = [*_decision_errors(status.get("conditions") or ())]
    field_errors += check_conditions(status.get("conditions"), _CONDITIONS)
    if field_errors:
        return field_errors
    if _decisions(before):
        problem = "immutable after PodCertificateRequest is issued, denied, or failed"
        return _unless(problem, holds=is_same(status, before))
    decisions = _decisions(status)
    if decisions & {"Denied", "Failed"}:
        only_conditions = not any(value for name, value in status.items() if name != "conditions")
        problem = (
            "non-condition status fields must be empty when denying or failing the PodCertificateRequest"
        )
        return _unless(problem, holds=only_conditions)
    if "Issued" in decisions:
        return [*check_issued(get_struct(old, "spec"), status, now)]
    problem = 'status is immutable unless transitioning to "Issued", "Denied", or "Failed"'
    return _unless(problem, holds=is_same(status, before))


def _unless(problem: str, *, holds: bool) -> list[FieldError]:
    return [] if holds else [errors.invalid(_STATUS, errors.OMITTED, problem)]


def _decision_errors(status_conditions: Sequence[ReadOnlyTree]) -> Iterator[FieldError]:
    """Check that there is at most one decision, and that it is true. Upstream writes the index as a field's name."""
    count = 0
    for index, condition in enumerate(status_conditions):
        path = _CONDITIONS.child(f"[{index}]")
        kind, value = condition.get("type") or "", condition.get("status") or ""
        if kind not in _DECISIONS:
            yield errors.not_supported(path.child("type"), kind, _DECISIONS)
            continue
        count += 1
        if count > 1:
            problem = 'There may be at most one condition with type "Issued", "Denied", or "Failed"'
            yield errors.invalid(path.child("type"), kind, problem)
        if value != "True":
            yield errors.not_supported(path.child("status"), value, ("True",))


def _decisions(status: ReadOnlyTree) -> set[str]:
    return {
        condition.get("type") or ""
        for condition in status.get("conditions") or ()
        if condition.get("type") in _DECISIONS and condition.get("status") == "True"
    }


# --- columns


def _cells(request: Tree, _now: datetime) -> list[Any]:
    types = [text(condition, "type") for condition in conditions.of(request)]
    decisions = [kind for kind in types if kind in _DECISIONS]
    return [
        meta.name(request),
        *(
            text(request, "spec", name)
            for name in ("podName", "serviceAccountName", "nodeName", "signerName")
        ),
        decisions[-1] if decisions else "Pending",
        labels_text((request.get("spec") or {}).get("unverifiedUserAnnotations")),
    ]


_COLUMNS: Final = (
    "PodName",
    "ServiceAccountName",
    "NodeName",
    "SignerName",
    "State",
    "UnverifiedUserAnnotations",
)

KIND: Final = Kind(
    resource=Resource(
        group="certificates.k8s.io",
        version="v1",
        name="podcertificaterequests",
        kind="PodCertificateRequest",
        hashed_version="v1beta1",
        selects_namespace=False,
        selectable=tuple(selectable(f"spec.{name}") for name in ("signerName", "podName", "nodeName")),
        subresources=(STATUS,),
    ),
    strategy=Strategy(resets=STATUS_ALONE, unconditional_update=False),
    validation=Validation(create=_create, update=_update, subresources={"status": status_errors}),
    printer=Printer(columns=(NAME, *(Column(name=name) for name in _COLUMNS)), cells=_cells),
)
