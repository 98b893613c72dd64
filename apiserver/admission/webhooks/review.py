"""AdmissionReview v1: the request to a webhook and its response."""

import base64
import binascii
from typing import Any, Final, NamedTuple

import msgspec
import orjson

from mockube.apimachinery import gotext
from mockube.apimachinery.status import ApiError, Details
from mockube.apimachinery.tree import Tree
from mockube.apiserver.admission.admission_request import admission_request
from mockube.apiserver.admission.webhooks.hooks import Hook, Invocation
from mockube.apiserver.registry.attributes import Attributes
from mockube.apiserver.wire.go_json import syntax_error

VERSION: Final = "admission.k8s.io/v1"
KIND: Final = "AdmissionReview"
_BAD_REQUEST: Final = 400
_SCHEME: Final = 'in scheme "pkg/runtime/scheme.go:111"'
MAX_SHOWN: Final = 2048
"""Bytes of a response that an error quotes."""


class CallFailed(Exception):
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


class Answer(NamedTuple):
    allowed: bool
    patch: Any = None
    status: Tree | None = None
    warnings: tuple[str, ...] = ()
    annotations: tuple[tuple[str, str], ...] = ()


def check_versions(hook: Hook) -> None:
    versions = hook.spec.get("admissionReviewVersions") or ()
    for version in versions:
        if version == "v1":
            return
        if version == "v1beta1":
            problem = "AdmissionReview v1beta1 is not supported; name v1 before it in admissionReviewVersions"
            raise CallFailed(f"could not create admission objects: {problem}", _BAD_REQUEST)
    problem = "webhook does not accept known AdmissionReview versions (v1, v1beta1)"
    raise CallFailed(f"could not create admission objects: {problem}", _BAD_REQUEST)


def request(
    invocation: Invocation, attributes: Attributes, uid: str, new: Tree | None, old: Tree | None
) -> bytes:
    """Return the AdmissionReview of a write, with the object in the webhook's version."""
    row = invocation.row
    review_request = admission_request(attributes, row, row) | {"uid": uid, "object": new, "oldObject": old}
    return orjson.dumps({"kind": KIND, "apiVersion": VERSION, "request": review_request})


class _Response(msgspec.Struct, rename="camel"):
    uid: str = ""
    allowed: bool = False
    status: dict[str, Any] | None = None
    patch: str | None = None
    patch_type: str | None = None
    audit_annotations: dict[str, str] | None = None
    warnings: list[str] | None = None


class _Review(msgspec.Struct, rename="camel"):
    kind: str = ""
    api_version: str = ""
    response: _Response | None = None


_read_review = msgspec.json.Decoder(_Review).decode


def read(data: bytes, uid: str, *, mutating: bool) -> Answer:
    """What a webhook answered, or CallFailed if that is no review of this request."""
    if not data:
        problem = "0-length response with status code: 200 and content type: application/json"
        raise CallFailed(f"failed to call webhook: {problem}")
    try:
        review = _read_review(data)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise CallFailed(
            f"failed to call webhook: couldn't get version/kind; json parse error: {syntax_error(data) or error}"
        ) from error
    _check_type(review, data)
    problem = _problem(review, uid, mutating=mutating)
    if problem:
        raise CallFailed(f"received invalid webhook response: {problem}")
    response = review.response
    assert response is not None
    return Answer(
        allowed=response.allowed,
        patch=_patch(response.patch, response.patch_type) if response.patch else None,
        status=response.status,
        warnings=tuple(response.warnings or ()),
        annotations=tuple((response.audit_annotations or {}).items()),
    )


def _check_type(review: _Review, data: bytes) -> None:
    kind, version = review.kind, review.api_version
    if (version, kind) == (VERSION, KIND):
        return
    if not kind or not version:
        field = "apiVersion" if kind else "Kind"
        problem = f"Object '{field}' is missing in '{data[:MAX_SHOWN].decode('utf-8', 'replace')}'"
    elif (version, kind) == ("admission.k8s.io/v1beta1", KIND):
        problem = f"converting (v1beta1.{KIND}) to (v1.{KIND}): unknown conversion"
    else:
        problem = f"no kind {gotext.quote(kind)} is registered for version {gotext.quote(version)} {_SCHEME}"
    raise CallFailed(f"failed to call webhook: {problem}")


def _problem(review: _Review, uid: str, *, mutating: bool) -> str:
    response = review.response
    if response is None:
        return "webhook response was absent"
    if response.uid != uid:
        return f"expected response.uid={gotext.quote(uid)}, got {gotext.quote(response.uid)}"
    if not mutating:
        if response.patch:
            return "validating webhook may not return response.patch"
        return "" if response.patch_type is None else "validating webhook may not return response.patchType"
    if response.patch and response.patch_type is None:
        return "webhook returned response.patch but not response.patchType"
    if not response.patch and response.patch_type is not None:
        return "webhook returned response.patchType but not response.patch"
    return 'webhook returned invalid response.patchType of ""' if response.patch_type == "" else ""


def _patch(text: str, patch_type: str | None) -> Any:
    problem = "received undecodable patch in webhook response"
    try:
        data = base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise CallFailed(f"{problem}: {error}") from error
    try:
        patch = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise CallFailed(f"{problem}: {syntax_error(data) or error}") from error
    if patch and patch_type != "JSONPatch":
        raise CallFailed(f"unsupported patch type {gotext.quote(patch_type or '')}")
    return patch


def denial_error(hook: Hook, status: Tree | None) -> WebhookDenied:
    """Return the error for a webhook's refusal."""
    result = status or {}
    prefix = f"admission webhook {gotext.quote(hook.name)} denied the request"
    message, reason, code = result.get("message"), result.get("reason"), result.get("code")
    explained = f"{prefix}: {message or reason}" if message or reason else f"{prefix} without explanation"
    code = code if isinstance(code, int) and code >= _BAD_REQUEST else _BAD_REQUEST
    return WebhookDenied(
        explained, _details(result.get("details")), code=min(code, 599), reason=str(reason or "")
    )


def _details(details: Any) -> Details | None:
    try:
        return None if details is None else msgspec.convert(details, Details)
    except msgspec.ValidationError:
        return None
