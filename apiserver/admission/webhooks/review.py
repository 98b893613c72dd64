"""AdmissionReview v1: what a webhook is sent, and what it may answer."""

import base64
import binascii
from typing import Any, Final, NamedTuple

import msgspec
import orjson

from mockube.apimachinery import gotext
from mockube.apimachinery.status import ApiError, Details
from mockube.apimachinery.tree import Tree
from mockube.apiserver.admission.webhooks.hooks import Hook, Invocation, kind_of
from mockube.apiserver.registry.attributes import Attributes, Operation
from mockube.apiserver.registry.call import Call
from mockube.apiserver.user import User
from mockube.apiserver.wire.go_json import syntax_error

VERSION: Final = "admission.k8s.io/v1"
KIND: Final = "AdmissionReview"
_OPTIONS: Final = {
    Operation.CREATE: ("CreateOptions", ("dryRun", "fieldManager", "fieldValidation")),
    Operation.UPDATE: ("UpdateOptions", ("dryRun", "fieldManager", "fieldValidation")),
    Operation.DELETE: ("DeleteOptions", ("dryRun", "gracePeriodSeconds", "propagationPolicy")),
}
_BAD_REQUEST: Final = 400
_SCHEME: Final = 'in scheme "pkg/runtime/scheme.go:111"'
MAX_SHOWN: Final = 2048
"""Bytes of an answer that an error shows."""


class CallFailed(Exception):
    """A webhook could not be asked, or did not answer as it must."""

    def __init__(self, problem: str, code: int = 503) -> None:
        super().__init__(problem)
        self.code = code


class Denied(ApiError):
    """What a webhook answered, in its own words and with its own code."""

    def __init__(self, message: str, details: Details | None, *, code: int, why: str) -> None:
        super().__init__(message, details, code=code)
        self._why = why

    def status(self) -> dict[str, Any]:
        tree = super().status()
        return tree | {"reason": self._why} if self._why else tree


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
            problem = "AdmissionReview v1beta1 is not built; name v1 before it in admissionReviewVersions"
            raise CallFailed(f"could not create admission objects: {problem}", _BAD_REQUEST)
    problem = "webhook does not accept known AdmissionReview versions (v1, v1beta1)"
    raise CallFailed(f"could not create admission objects: {problem}", _BAD_REQUEST)


def request(
    invocation: Invocation, attributes: Attributes, uid: str, new: Tree | None, old: Tree | None
) -> bytes:
    """The review of a write, with the object as the webhook wants to see it."""
    (group, version), kind = kind_of(invocation.row, attributes)
    (own_group, own_version), own_kind = kind_of(attributes.resource, attributes)
    row, own = invocation.row, attributes.resource
    asked: Tree = {
        "uid": uid,
        "kind": {"group": group, "version": version, "kind": kind},
        "resource": {"group": row.group, "version": row.version, "resource": row.name},
        "requestKind": {"group": own_group, "version": own_version, "kind": own_kind},
        "requestResource": {"group": own.group, "version": own.version, "resource": own.name},
        "operation": attributes.operation.value,
        "userInfo": _user_info(attributes.call.user),
        "object": new,
        "oldObject": old,
        "dryRun": attributes.dry_run,
        "options": _options(attributes.operation, attributes.call),
    }
    subresource, named = attributes.subresource, _named(attributes)
    if subresource:
        asked |= {"subResource": subresource, "requestSubResource": subresource}
    asked |= {field: value for field, value in named.items() if value}
    return orjson.dumps({"kind": KIND, "apiVersion": VERSION, "request": asked})


def _named(attributes: Attributes) -> dict[str, str]:
    is_namespace = attributes.target[:2] == ("", "namespaces")
    return {
        "name": attributes.name,
        "namespace": attributes.name if is_namespace else attributes.namespace,
    }


def _user_info(user: User) -> Tree:
    fields: Tree = {
        "username": user.name,
        "uid": user.uid,
        "groups": [*user.groups],
        "extra": {name: [*values] for name, values in user.extra.items()},
    }
    return {name: value for name, value in fields.items() if value}


def _options(operation: Operation, call: Call) -> Tree | None:
    if operation not in _OPTIONS:
        return None
    kind, fields = _OPTIONS[operation]
    made: Tree = {"kind": kind, "apiVersion": "meta.k8s.io/v1"}
    if operation is Operation.DELETE and call.body.data:
        return made | _sent_options(call.body.data)
    for field in fields:
        if value := call.parameter(field):
            made[field] = _option(field, value)
    return made


def _option(field: str, value: str) -> Any:
    if field == "dryRun":
        return [value]
    return int(value) if field == "gracePeriodSeconds" and value.lstrip("-").isdecimal() else value


def _sent_options(data: bytes) -> Tree:
    """Of a deletion, which come in its body; what is not JSON was understood as something else already."""
    try:
        tree = orjson.loads(data)
    except orjson.JSONDecodeError:
        return {}
    hidden = ("kind", "apiVersion")
    return (
        {name: value for name, value in tree.items() if name not in hidden} if isinstance(tree, dict) else {}
    )


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


def denied(hook: Hook, status: Tree | None) -> Denied:
    """The error that a client gets of a webhook's refusal."""
    given = status or {}
    prefix = f"admission webhook {gotext.quote(hook.name)} denied the request"
    message, why, code = given.get("message"), given.get("reason"), given.get("code")
    explained = f"{prefix}: {message or why}" if message or why else f"{prefix} without explanation"
    code = code if isinstance(code, int) and code >= _BAD_REQUEST else _BAD_REQUEST
    return Denied(explained, _details(given.get("details")), code=min(code, 599), why=str(why or ""))


def _details(given: Any) -> Details | None:
    try:
        return None if given is None else msgspec.convert(given, Details)
    except msgspec.ValidationError:
        return None
