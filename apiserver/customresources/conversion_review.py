"""ConversionReview: the requests to conversion webhooks, and the validation of their responses.

Errors are upstream's, and begin with the group, version and kind that the objects were in.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec
import orjson

from mockube.apimachinery import errors, gotext
from mockube.apimachinery.patch.gofmt import go_type
from mockube.apimachinery.paths import ROOT
from mockube.apimachinery.tree import Tree
from mockube.apiserver.kinds.common.objectmeta import check_annotations, check_labels
from mockube.apiserver.wire.go_json import syntax_error, type_name

GROUP: Final = "apiextensions.k8s.io"
KIND: Final = "ConversionReview"
VERSIONS: Final = ("v1", "v1beta1")
MAX_SHOWN: Final = 2048
_SCHEME: Final = 'in scheme "pkg/runtime/scheme.go:111"'
_TYPE_META: Final = (
    r'value of type struct { APIVersion string "json:\"apiVersion,omitempty\""; '
    r'Kind string "json:\"kind,omitempty\"" }'
)

CALL: Final = "conversion_webhook_call_failure"
MALFORMED: Final = "conversion_webhook_malformed_response_failure"
PARTIAL: Final = "conversion_webhook_partial_response_failure"
INVALID: Final = "conversion_webhook_invalid_converted_object_failure"


class ConversionFailed(Exception):
    """A webhook did not convert objects; `failure_type` is the reason in metrics."""

    def __init__(self, problem: str, failure_type: str = CALL) -> None:
        super().__init__(problem)
        self.failure_type = failure_type


def review_version(versions: Sequence[str]) -> str:
    """Return the first review version that both the webhook and this server support."""
    return next((version for version in versions if version in VERSIONS), VERSIONS[0])


def request(trees: Sequence[Tree], api_version: str, uid: str, version: str) -> bytes:
    """Return a ConversionReview that requests objects in another version."""
    review_request = {"uid": uid, "desiredAPIVersion": api_version, "objects": trees}
    review = {"kind": KIND, "apiVersion": f"{GROUP}/{version}", "request": review_request}
    return orjson.dumps(review, option=orjson.OPT_SORT_KEYS)


def format_kind(tree: Tree) -> str:
    return f"{tree['apiVersion']}, Kind={tree['kind']}"


def read(data: bytes, trees: Sequence[Tree], api_version: str, uid: str, version: str) -> Sequence[Tree]:
    """Return the converted objects with their original metadata, or raise `ConversionFailed`."""
    about = f"conversion webhook for {format_kind(trees[0])}"
    response = _response(data, version, uid, about)
    converted = response.converted_objects or ()
    if len(converted) != len(trees):
        problem = f"{about} returned {len(converted)} objects, expected {len(trees)}"
        raise ConversionFailed(problem, PARTIAL)
    return [_validated_object(tree, raw, api_version) for tree, raw in zip(trees, converted, strict=True)]


class _Result(msgspec.Struct):
    status: str = ""
    message: str = ""


class _Response(msgspec.Struct, rename="camel"):
    uid: str = ""
    result: _Result | None = None
    converted_objects: list[msgspec.Raw] | None = None


class _Review(msgspec.Struct, rename="camel"):
    kind: str = ""
    api_version: str = ""
    response: _Response | None = None


_read_review = msgspec.json.Decoder(_Review).decode


def _response(data: bytes, version: str, uid: str, about: str) -> _Response:
    review = _decode_review(data, about)
    _check_type(review, data, version, about)
    response = review.response
    if response is None:
        raise ConversionFailed(f"{about} failed: no response provided", MALFORMED)
    # As upstream, reviews of v1beta1 need not repeat the uid.
    if version == VERSIONS[0] and response.uid != uid:
        problem = f"expected response.uid={gotext.quote(uid)}, got {gotext.quote(response.uid)}"
        raise ConversionFailed(f"{about} failed: {problem}", MALFORMED)
    result = response.result or _Result()
    if result.status != "Success":
        problem = result.message or f"response.result.status was '{result.status}', not 'Success'"
        raise ConversionFailed(f"{about} failed: {problem}", MALFORMED)
    return response


def _decode_review(data: bytes, about: str) -> _Review:
    if not data:
        problem = "0-length response with status code: 200 and content type: application/json"
        raise ConversionFailed(f"{about} failed: {problem}")
    try:
        return _read_review(data)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        problem = str(error)
        if not data.lstrip().startswith((b"{", b"[")):  # upstream reads it as YAML
            problem = f"json: cannot unmarshal string into Go {_TYPE_META}"
        elif syntax_problem := syntax_error(data):
            problem = syntax_problem
        raise ConversionFailed(
            f"{about} failed: couldn't get version/kind; json parse error: {problem}"
        ) from error


def _check_type(review: _Review, data: bytes, version: str, about: str) -> None:
    expected, received_type = f"{GROUP}/{version}", (review.api_version, review.kind)
    if received_type == (expected, KIND):
        return
    if not review.kind or not review.api_version:
        field = "apiVersion" if review.kind else "Kind"
        problem = f"Object '{field}' is missing in '{gotext.decode_utf8(data[:MAX_SHOWN])}'"
    elif review.kind == KIND and review.api_version in {f"{GROUP}/{supported}" for supported in VERSIONS}:
        named = review.api_version.rpartition("/")[2]
        problem = f"converting ({named}.{KIND}) to ({version}.{KIND}): unknown conversion"
    else:
        named = gotext.quote(review.api_version)
        problem = f"no kind {gotext.quote(review.kind)} is registered for version {named} {_SCHEME}"
    raise ConversionFailed(f"{about} failed: {problem}")


def _validated_object(original: Tree, raw: msgspec.Raw, api_version: str) -> Tree:
    """Return a converted object if it is the same object in the requested version."""
    about = f"conversion webhook for {format_kind(original)} returned invalid"
    converted_object = _object(bytes(raw))
    if (received_version := converted_object.get("apiVersion") or "") != api_version:
        problem = f"invalid groupVersion (expected {api_version}, received {received_version})"
        raise ConversionFailed(f"{about} object at index 0: {problem}", INVALID)
    if (kind := converted_object["kind"]) != original["kind"]:
        problem = f"invalid kind (expected {original['kind']}, received {kind})"
        raise ConversionFailed(f"{about} object at index 0: {problem}", INVALID)
    converted_metadata = converted_object.get("metadata")
    # A part of an object, which an apply converts, may have no metadata.
    original_metadata = original.get("metadata") or {}
    for field, title in (("name", "name"), ("namespace", "namespace"), ("uid", "UID")):
        old_value = original_metadata.get(field, "")
        new_value = _text(converted_metadata, field)
        if old_value != new_value:
            problem = f"must have the same {title}: {old_value} != {new_value}"
            raise ConversionFailed(f"{about} object: {problem}", INVALID)
    try:
        metadata = _restored_metadata(original_metadata, converted_metadata)
    except _BadMetadata as error:
        raise ConversionFailed(f"{about} metadata: {error}", INVALID) from error
    return converted_object | {"metadata": metadata}


def _text(metadata: Any, field: str) -> str:
    """Return a field of metadata; "" if it is not a string."""
    value = metadata.get(field) if isinstance(metadata, dict) else None
    return value if isinstance(value, str) else ""


def _object(raw: bytes) -> Tree:
    try:
        value = orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        raise ConversionFailed(syntax_error(raw) or str(error), INVALID) from error
    if value is None:
        raise ConversionFailed("unexpected end of JSON input", INVALID)
    if value.__class__ is not dict:
        name = type_name(value).partition(" ")[0]
        raise ConversionFailed(
            f"json: cannot unmarshal {name} into Go value of type map[string]interface {{}}", INVALID
        )
    tree: Tree = value
    kind = tree.get("kind")
    if not kind or not isinstance(kind, str):
        raise ConversionFailed(f"Object 'Kind' is missing in '{gotext.decode_utf8(raw)}'", INVALID)
    return tree


class _BadMetadata(Exception):
    pass


def _restored_metadata(original: Mapping[str, Any], converted_metadata: Any) -> Tree:
    """Return the original metadata with the converted labels and annotations, all that a webhook may change."""
    if not isinstance(converted_metadata, dict):
        problem = (
            "missing metadata"
            if converted_metadata is None
            else f"invalid metadata of type {go_type(converted_metadata)}"
        )
        raise _BadMetadata(f"{problem} in converted object")
    metadata = dict(original)
    for field, path, check in (
        ("labels", "labels", check_labels),
        ("annotations", "annotation", check_annotations),
    ):
        value = converted_metadata.get(field)
        if value is None:
            metadata.pop(field, None)
            continue
        _check_texts(field, value)
        if value != original.get(field):
            wrong = [*check(value, ROOT.child("metadata", path))]
            if wrong:
                raise _BadMetadata(errors.aggregate(wrong))
        metadata[field] = value
    return metadata


def _check_texts(field: str, value: Any) -> None:
    if not isinstance(value, dict):
        raise _BadMetadata(f"invalid metadata.{field} of type {go_type(value)} in converted object")
    for name, text in value.items():
        if not isinstance(text, str):
            problem = f"must be a string, but is {go_type(text)} in converted object"
            raise _BadMetadata(f"metadata.{field}[{name}] {problem}")
