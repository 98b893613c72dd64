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
from mockube.apiserver.wire import review_decode
from mockube.apiserver.wire.go_json import syntax_error, type_name
from mockube.apiserver.wire.review_decode import FieldType, ReviewKind, UndecodableReview

GROUP: Final = "apiextensions.k8s.io"
KIND: Final = "ConversionReview"
VERSIONS: Final = ("v1", "v1beta1")
_RESPONSE: Final = FieldType(
    "v1.ConversionResponse",
    dict,
    {
        "uid": review_decode.UID,
        "convertedObjects": FieldType("[]runtime.RawExtension", list, item=review_decode.ANY),
        "result": review_decode.STATUS,
    },
)
_REVIEW: Final = ReviewKind(
    GROUP,
    KIND,
    VERSIONS,
    FieldType(
        "v1.ConversionReview",
        dict,
        {"kind": review_decode.TEXT, "apiVersion": review_decode.TEXT, "response": _RESPONSE},
    ),
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
    status: str | None = None
    message: str | None = None


class _Response(msgspec.Struct, rename="camel"):
    uid: str | None = None
    result: _Result | None = None
    converted_objects: list[msgspec.Raw] | None = None


class _Review(msgspec.Struct, rename="camel"):
    kind: str | None = None
    api_version: str | None = None
    response: _Response | None = None


_read_review = msgspec.json.Decoder(_Review).decode


def _response(data: bytes, version: str, uid: str, about: str) -> _Response:
    try:
        review = review_decode.decode_review(data, _REVIEW, version, _read_review)
    except UndecodableReview as error:
        raise ConversionFailed(f"{about} failed: {error}") from error
    if problem := _problem(review, version, uid):
        raise ConversionFailed(f"{about} failed: {problem}", MALFORMED)
    assert review.response is not None
    return review.response


def _problem(review: _Review, version: str, uid: str) -> str:
    """Return what is wrong with a review. As upstream, one of v1beta1 need not repeat its kind and the uid."""
    response, is_v1 = review.response, version == VERSIONS[0]
    if is_v1 and not (review.kind and review.api_version):
        received = f"{review.api_version or '/'}, Kind={review.kind or ''}"
        return f"expected webhook response of {GROUP}/{version}, Kind={KIND}, got {received}"
    if response is None:
        return "no response provided"
    if is_v1 and (response.uid or "") != uid:
        return f"expected response.uid={gotext.quote(uid)}, got {gotext.quote(response.uid or '')}"
    result = response.result or _Result()
    if result.status == "Success":
        return ""
    return result.message or f"response.result.status was '{result.status or ''}', not 'Success'"


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
            value_type = "<nil>" if text is None else go_type(text)
            problem = f"must be a string, but is {value_type} in converted object"
            raise _BadMetadata(f"metadata.{field}[{name}] {problem}")
