"""AdmissionReview: the request to a webhook and its response, in v1 or v1beta1, whichever the webhook names first."""

from binascii import a2b_base64
from typing import Any, Final, NamedTuple

import msgspec
import orjson

from mockube.apimachinery import gotext
from mockube.apimachinery.status import ApiError, Details
from mockube.apimachinery.tree import Tree
from mockube.apiserver.admission.admission_request import admission_request
from mockube.apiserver.registry.request_context import AdmissionAttributes
from mockube.apiserver.schema.base64text import Base64Error, canonical
from mockube.apiserver.wire import review_decode
from mockube.apiserver.wire.go_json import syntax_error
from mockube.apiserver.wire.review_decode import FieldType, ReviewKind, UndecodableReview

from .hooks import Hook, WebhookInvocation

VERSIONS: Final = ("v1", "v1beta1")
GROUP: Final = "admission.k8s.io"
KIND: Final = "AdmissionReview"
_BAD_REQUEST: Final = 400
_RESPONSE: Final = FieldType(
    "v1.AdmissionResponse",
    dict,
    {
        "uid": review_decode.UID,
        "allowed": review_decode.FLAG,
        "status": review_decode.STATUS,
        "patch": FieldType("[]uint8"),
        "patchType": FieldType("v1.PatchType"),
        "auditAnnotations": review_decode.TEXT_MAP,
        "warnings": review_decode.TEXTS,
    },
)
_REVIEW: Final = ReviewKind(
    GROUP,
    KIND,
    VERSIONS,
    FieldType(
        "v1.AdmissionReview",
        dict,
        {"kind": review_decode.TEXT, "apiVersion": review_decode.TEXT, "response": _RESPONSE},
    ),
)


class WebhookCallFailed(Exception):
    """A webhook could not be called, or its response is invalid."""

    def __init__(self, problem: str, code: int = 503) -> None:
        super().__init__(problem)
        self.code = code


class WebhookDenied(ApiError):
    """A webhook's refusal, with its message and code."""

    def __init__(self, message: str, details: Details | None, *, code: int, reason: str) -> None:
        super().__init__(message, details, code=code)
        self._reason = reason

    def status(self) -> dict[str, Any]:
        tree = super().status()
        return tree | {"reason": self._reason} if self._reason else tree


class WebhookResponse(NamedTuple):
    allowed: bool
    patch: Any = None
    status: Tree | None = None
    warnings: tuple[str, ...] = ()
    annotations: tuple[tuple[str, str], ...] = ()


def review_version(hook: Hook) -> str:
    """Return the first version of a webhook's list that the server has; CallFailed if there is none."""
    for version in hook.spec.get("admissionReviewVersions") or ():
        if version in VERSIONS:
            return str(version)
    problem = "webhook does not accept known AdmissionReview versions (v1, v1beta1)"
    raise WebhookCallFailed(f"could not create admission objects: {problem}", _BAD_REQUEST)


def request(
    invocation: WebhookInvocation,
    attributes: AdmissionAttributes,
    uid: str,
    new: Tree | None,
    old: Tree | None,
) -> bytes:
    """Return the AdmissionReview of a write, with the object in the webhook's version."""
    row, version = invocation.row, review_version(invocation.hook)
    review_request = admission_request(attributes, row, row) | {"uid": uid, "object": new, "oldObject": old}
    return orjson.dumps({"kind": KIND, "apiVersion": f"{GROUP}/{version}", "request": review_request})


class _Response(msgspec.Struct, rename="camel"):
    uid: str | None = None
    allowed: bool | None = None
    status: dict[str, Any] | None = None
    patch: str | None = None
    patch_type: str | None = None
    audit_annotations: dict[str, str | None] | None = None
    warnings: list[str | None] | None = None


class _Review(msgspec.Struct, rename="camel"):
    kind: str | None = None
    api_version: str | None = None
    response: _Response | None = None


_read_review = msgspec.json.Decoder(_Review).decode


def read(data: bytes, uid: str, version: str, *, mutating: bool) -> WebhookResponse:
    """Return the response of a webhook, or raise CallFailed if it is not a valid review of this request."""
    try:
        review = review_decode.decode_review(data, _REVIEW, version, _read_review)
    except UndecodableReview as error:
        raise WebhookCallFailed(f"failed to call webhook: {error}") from error
    patch = _decoded_patch(review)
    problem = _problem(review, uid, version, mutating=mutating)
    if problem:
        raise WebhookCallFailed(f"received invalid webhook response: {problem}")
    response = review.response
    assert response is not None
    patch_type = response.patch_type if version == "v1" else "JSONPatch"
    return WebhookResponse(
        allowed=bool(response.allowed),
        patch=_patch(patch, patch_type) if patch and mutating else None,
        status=response.status,
        warnings=tuple(warning or "" for warning in response.warnings or ()),
        annotations=tuple((key, value or "") for key, value in (response.audit_annotations or {}).items()),
    )


def _decoded_patch(review: _Review) -> bytes:
    try:
        return a2b_base64(canonical((review.response and review.response.patch) or ""))
    except Base64Error as error:
        raise WebhookCallFailed(f"failed to call webhook: {error}") from error


def _problem(review: _Review, uid: str, version: str, *, mutating: bool) -> str:
    """Return what is wrong with a response; only v1 has rules for its uid, its type and its patch."""
    response = review.response
    if response is None:
        return "webhook response was absent"
    if version != "v1":
        return ""
    if (response.uid or "") != uid:
        return f"expected response.uid={gotext.quote(uid)}, got {gotext.quote(response.uid or '')}"
    if not review.kind or not review.api_version:
        received = f"{review.api_version or '/'}, Kind={review.kind or ''}"
        return f"expected webhook response of {GROUP}/v1, Kind={KIND}, got {received}"
    return _patch_problem(response, mutating=mutating)


def _patch_problem(response: _Response, *, mutating: bool) -> str:
    if not mutating:
        if response.patch:
            return "validating webhook may not return response.patch"
        return "" if response.patch_type is None else "validating webhook may not return response.patchType"
    if response.patch and response.patch_type is None:
        return "webhook returned response.patch but not response.patchType"
    if not response.patch and response.patch_type is not None:
        return "webhook returned response.patchType but not response.patch"
    return 'webhook returned invalid response.patchType of ""' if response.patch_type == "" else ""


def _patch(data: bytes, patch_type: str | None) -> Any:
    try:
        patch = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        problem = f"received undecodable patch in webhook response: {syntax_error(data) or error}"
        raise WebhookCallFailed(problem) from error
    if patch and patch_type != "JSONPatch":
        raise WebhookCallFailed(f"unsupported patch type {gotext.quote(patch_type or '')}")
    return patch


def denial_error(hook: Hook, status: Tree | None) -> WebhookDenied:
    """Return the error for a webhook's refusal."""
    result = status or {}
    prefix = f"admission webhook {gotext.quote(hook.name)} denied the request"
    message, reason, code = result.get("message"), result.get("reason"), result.get("code")
    full_message = f"{prefix}: {message or reason}" if message or reason else f"{prefix} without explanation"
    code = code if isinstance(code, int) and code >= _BAD_REQUEST else _BAD_REQUEST
    return WebhookDenied(
        full_message, _details(result.get("details")), code=min(code, 599), reason=str(reason or "")
    )


def _details(details: Any) -> Details | None:
    try:
        return None if details is None else msgspec.convert(details, Details)
    except msgspec.ValidationError:
        return None
