"""Decoding of the reviews that webhooks return, with the errors of Go's REST client and its JSON decoder.

Upstream reads a response as JSON if it begins with a brace, and as YAML otherwise, whatever its Content-Type is. What a
review means is up to its caller.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeVar

import msgspec
import orjson
from msgspec import Struct

from mockube.apimachinery import gotext

from .go_json import type_name
from .negotiation import MediaType
from .parse import NotJson, UnreadableBody, parse

_NO_TYPE: Final = "couldn't get version/kind; json parse error: "
_TYPE_META: Final = (
    r'value of type struct { APIVersion string "json:\"apiVersion,omitempty\""; '
    r'Kind string "json:\"kind,omitempty\"" }'
)
_SCHEME: Final = 'in scheme "pkg/runtime/scheme.go:111"'
_STATUS: Final = ("v1", "Status")
_INT_BITS: Final = {"int32": 31, "int64": 63}


class UndecodableReview(ValueError):
    """A response is not a review of the expected kind; the message is that of Go's client."""


class FieldType(NamedTuple):
    """The type of a field in Go: a struct with fields, a list or a map of another type, or a scalar."""

    name: str
    json: type = str
    """The type of its JSON values: str, bool, int, list or dict; `object` for values of any type."""
    fields: Mapping[str, "FieldType"] = {}
    item: "FieldType | None" = None


TEXT: Final = FieldType("string")
FLAG: Final = FieldType("bool", bool)
ANY: Final = FieldType("", object)
TEXTS: Final = FieldType("[]string", list, item=TEXT)
TEXT_MAP: Final = FieldType("map[string]string", dict, item=TEXT)
UID: Final = FieldType("types.UID")
_INT32: Final = FieldType("int32", int)
_INT64: Final = FieldType("int64", int)
_LIST_META: Final = FieldType(
    "v1.ListMeta",
    dict,
    {"selfLink": TEXT, "resourceVersion": TEXT, "continue": TEXT, "remainingItemCount": _INT64},
)
_CAUSE: Final = FieldType(
    "v1.StatusCause", dict, {"reason": FieldType("v1.CauseType"), "message": TEXT, "field": TEXT}
)
_DETAILS: Final = FieldType(
    "v1.StatusDetails",
    dict,
    {
        "name": TEXT,
        "group": TEXT,
        "kind": TEXT,
        "uid": UID,
        "retryAfterSeconds": _INT32,
        "causes": FieldType("[]v1.StatusCause", list, item=_CAUSE),
    },
)
STATUS: Final = FieldType(
    "v1.Status",
    dict,
    {
        "kind": TEXT,
        "apiVersion": TEXT,
        "metadata": _LIST_META,
        "status": TEXT,
        "message": TEXT,
        "reason": FieldType("v1.StatusReason"),
        "details": _DETAILS,
        "code": _INT32,
    },
)


class ReviewKind(Struct, frozen=True):
    """A kind of review: its name, the group, the versions of the group that have it, and its type in Go."""

    group: str
    kind: str
    versions: Sequence[str]
    go_type: FieldType


_Review = TypeVar("_Review")


def decode_review(data: bytes, kind: ReviewKind, version: str, decode: Callable[[bytes], _Review]) -> _Review:
    """Return a review of a version as `decode` returns it for its JSON, or raise `UndecodableReview`."""
    tree = _read(data)
    api_version = f"{kind.group}/{version}"
    received = tree.get("apiVersion") or api_version, tree.get("kind") or kind.kind
    if received != (api_version, kind.kind):
        raise UndecodableReview(_other_kind(kind, version, *received))
    if problem := _type_error(tree, kind.go_type):
        raise UndecodableReview(problem)
    try:
        return decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError):  # YAML, or JSON that only Go accepts
        return decode(orjson.dumps(tree))


def status_message(data: bytes) -> str | None:
    """Return the message of a response with an error code whose body is a `Status`; None for another body."""
    try:
        tree = _read(data)
    except UndecodableReview:
        return None
    is_status = (tree.get("apiVersion"), tree.get("kind")) == _STATUS
    if not is_status or _type_error(tree, STATUS) or tree.get("status") == "Success":
        return None
    return tree.get("message") or ""


def _read(data: bytes) -> dict[str, Any]:
    """Return the tree of a response whose kind and version are strings."""
    is_json = data.lstrip(b" \t\r\n").startswith(b"{")
    try:
        tree = parse(data, MediaType.JSON if is_json else MediaType.YAML).tree
    except NotJson as error:
        raise UndecodableReview(f"{_NO_TYPE}{error}") from error
    except UnreadableBody as error:
        raise UndecodableReview(str(error)) from error
    if not isinstance(tree, dict):
        name = type_name(tree).partition(" ")[0]
        raise UndecodableReview(f"{_NO_TYPE}json: cannot unmarshal {name} into Go {_TYPE_META}")
    for field in tree:
        if field in ("apiVersion", "kind") and not isinstance(tree[field], str | None):
            name = type_name(tree[field]).partition(" ")[0]
            problem = f"json: cannot unmarshal {name} into Go struct field .{field} of type string"
            raise UndecodableReview(f"{_NO_TYPE}{problem}")
    if (tree.get("apiVersion") or "").count("/") > 1:
        raise UndecodableReview(f"unexpected GroupVersion string: {tree['apiVersion']}")
    return tree


def _other_kind(kind: ReviewKind, version: str, api_version: str, received_kind: str) -> str:
    registered = [_STATUS, *((f"{kind.group}/{other}", kind.kind) for other in kind.versions)]
    if (api_version, received_kind) in registered:
        other = api_version.rpartition("/")[2]
        return f"converting ({other}.{received_kind}) to ({version}.{kind.kind}): unknown conversion"
    quoted = gotext.quote(received_kind)
    return f"no kind {quoted} is registered for version {gotext.quote(api_version)} {_SCHEME}"


# --- types


def _type_error(tree: Mapping[str, Any], go_type: FieldType) -> str:
    """Return Go's error for the first value of another type; "" if there is none."""
    return _field_error(tree, go_type, go_type, ())


def _field_error(value: Any, go_type: FieldType, owner: FieldType, path: tuple[str, ...]) -> str:
    if value is None or go_type.json is object:
        return ""
    if not _has_type(value, go_type):
        name = type_name(value).partition(" ")[0]
        if name == "number" and go_type.json is int:
            name = f"number {gotext.format_v(value)}"
        struct = owner.name.rpartition(".")[2]
        return f"json: cannot unmarshal {name} into Go struct field {struct}.{'.'.join(path)} of type {go_type.name}"
    if go_type.item is not None:
        items = value.values() if isinstance(value, dict) else value
        return next(filter(None, (_field_error(each, go_type.item, owner, path) for each in items)), "")
    if go_type.json is dict:
        fields = go_type.fields
        problems = (
            _field_error(value[name], fields[name], go_type, (*path, name))
            for name in value
            if name in fields
        )
        return next(filter(None, problems), "")
    return ""


def _has_type(value: Any, go_type: FieldType) -> bool:
    if go_type.json is int:
        return (
            value.__class__ is int and -1 << _INT_BITS[go_type.name] <= value < 1 << _INT_BITS[go_type.name]
        )
    return value.__class__ is go_type.json
