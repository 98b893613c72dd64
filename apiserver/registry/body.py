"""Decode a body: it is parsed, checked against the URL, and converted to the stored form of its kind.

Unknown fields are dropped, and reported in a warning or an error, as the client requested.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import orjson

from mockube.apimachinery import errors, gotext, status
from mockube.apimachinery.gonumbers import round_trip, with_go_numbers
from mockube.apimachinery.groups import GroupKind
from mockube.apimachinery.paths import ROOT
from mockube.apimachinery.schema.model import SchemaType
from mockube.apimachinery.status import ApiError
from mockube.apimachinery.tree import Tree
from mockube.apiserver.schema import decoder_errors, document, unstructured
from mockube.apiserver.schema.decode import DecodedObject, DecodeError, has_duplicates
from mockube.apiserver.schema.numbers import convert_numbers
from mockube.apiserver.wire.go_json import type_name
from mockube.apiserver.wire.parse import NotJson, ParsedObject, UnreadableBody, parse, parse_applied

from .registry import Registry
from .request_context import Body, RequestContext, WriteOptions

SUMMARY_BYTES = 30
"""The number of bytes that an error quotes of a body that is not an object."""


class SentObject(NamedTuple):
    tree: Tree
    """The object in stored form, with its defaults."""
    type_error: ApiError | None
    """The error of another kind, if the object has no struct upstream: upstream returns it when it validates the object."""


def read_object(registry: Registry, context: RequestContext, options: WriteOptions) -> SentObject:
    """Return the object of a create or update."""
    api_version, kind = expected_type(context)
    parsed = _parse(context.body, kind)
    tree, text = parsed.tree, parsed.text
    sent_type = (_sent_version(tree.get("apiVersion"), api_version), tree.get("kind") or kind)
    if context.is_unstructured:
        _check_has_kind(context, parsed)
        tree, text = with_whole_numbers(tree, text)
    else:
        _check_kind(registry, parsed, sent_type, (api_version, kind))
    strict = options.field_validation != "Ignore" and not parsed.is_binary
    try:
        decoded = decode_as(registry, tree, (api_version, kind), text=text, strict=strict)
    except DecodeError as error:
        raise status.BadRequest(_refusal(sent_type, kind) + str(error)) from error
    type_error = _check_custom_type(context, tree) if context.is_unstructured else None
    if type_error is None and (complaints := [*parsed.complaints, *decoded.strict]):
        apply_field_validation(context, options, complaints, _refusal(sent_type, kind))
    new_object: Tree = {"kind": kind, "apiVersion": api_version} | decoded.tree
    if type_error is not None:
        new_object["kind"] = kind
    new_object["apiVersion"] = _sent_version(new_object["apiVersion"], api_version)
    registry.scheme.rules.default(api_version, kind, new_object)
    if context.report.audited is not None:
        context.report.audited.set_object(new_object)
    return SentObject(new_object, type_error)


def _sent_version(sent: Any, expected: str) -> Any:
    """Return an apiVersion as Go reads it: "/v1" is v1 of the core group, and the expected group without a version has the expected one."""
    if isinstance(sent, str) and sent.startswith("/") and sent.count("/") == 1:
        sent = sent[1:]
    return expected if not sent or sent == expected.rpartition("/")[0] + "/" else sent


def with_whole_numbers(tree: Tree, text: bytes) -> tuple[Tree, bytes]:
    """Normalize the numbers in the metadata of an object that has no struct upstream, before it is decoded."""
    metadata = tree.get("metadata")
    numbers = metadata if isinstance(metadata, dict) else {}
    if all(round_trip(value) is value for value in numbers.values() if value.__class__ in (int, float)):
        return tree, text
    rewritten_tree = tree | {"metadata": with_go_numbers(metadata)}
    return rewritten_tree, orjson.dumps(rewritten_tree)


def _refusal(sent_type: tuple[str, str], kind: str) -> str:
    """Return the start of an error about a body with a kind."""
    api_version, sent_kind = sent_type
    version = gotext.quote(api_version.rpartition("/")[2])
    return f"{sent_kind} in version {version} cannot be handled as a {kind}: "


def expected_type(context: RequestContext) -> tuple[str, str]:
    """Return the apiVersion and kind that belong to the URL."""
    subresource = context.subresource
    if subresource is None or not subresource.kind:
        return context.resource.api_version, context.resource.kind
    if subresource.group_version is None:
        return context.resource.api_version, subresource.kind
    group, version = subresource.group_version
    return f"{group}/{version}" if group else version, subresource.kind


def decode_as(
    registry: Registry,
    tree: Tree,
    kind: tuple[str, str] | None = None,
    *,
    text: bytes = b"",
    strict: bool = False,
    before: Tree | None = None,
) -> DecodedObject:
    """Return the tree in stored form, decoded as an apiVersion and kind, or as its own.

    `before` is an object in that form from which the tree was made, if there is one.
    """
    schema = _schema(registry, *(kind or (tree["apiVersion"], tree["kind"])))
    decoded = registry.scheme.decoder.decode(schema, tree, text=text, strict=strict, before=before)
    return _with_empty_managers(decoded, tree)


def decode_applied(
    registry: Registry, tree: Tree, *, strict: bool, before: Tree | None = None
) -> DecodedObject:
    """Return the result of a server-side apply in stored form. `before` is as for `decode_as`."""
    schema = _schema(registry, tree["apiVersion"], tree["kind"])

    def decode(tree: Tree) -> DecodedObject:
        return registry.scheme.decoder.decode_applied(schema, tree, strict=strict, before=before)

    return _with_empty_managers(_decode_converted(schema, tree, decode), tree)


def decode_unstructured(
    registry: Registry, tree: Tree, kind: tuple[str, str], *, strict: bool, before: Tree | None
) -> DecodedObject:
    """Return the result of a strategic merge patch in stored form."""

    def decode(tree: Tree) -> DecodedObject:
        return decode_as(registry, tree, kind, strict=strict, before=before)

    return _decode_converted(_schema(registry, *kind), tree, decode)


def _decode_converted(
    schema: SchemaType, tree: Tree, decode: Callable[[Tree], DecodedObject]
) -> DecodedObject:
    """Decode the tree; if that fails, decode it again with its numbers as Go converts them."""
    try:
        return decode(tree)
    except DecodeError as error:
        refusal = unstructured.conversion_error(schema, tree)
        if refusal:
            raise DecodeError(refusal) from error
        return decode(convert_numbers(schema, tree))


def _schema(registry: Registry, api_version: str, kind: str) -> SchemaType:
    schema = registry.scheme.schemas.kind(api_version, kind)
    assert schema is not None, f"no schema of {api_version} {kind}"
    return schema


def _with_empty_managers(decoded: DecodedObject, tree: Tree) -> DecodedObject:
    sent_metadata = tree.get("metadata")
    if not isinstance(sent_metadata, dict) or sent_metadata.get("managedFields") != []:
        return decoded
    metadata = decoded.tree.get("metadata")
    if metadata is not None:
        # Go encodes no empty list, but an empty list that is sent removes all managers.
        metadata["managedFields"] = []
    return decoded


def apply_field_validation(
    context: RequestContext, options: WriteOptions, complaints: Sequence[str], prefix: str
) -> None:
    """Refuse, report or ignore unknown and duplicate fields. Upstream's default is a warning."""
    if not complaints or options.field_validation == "Ignore":
        return
    if options.field_validation == "Strict":
        raise status.BadRequest(f"{prefix}strict decoding error: {', '.join(complaints)}")
    context.report.warnings += as_warnings(complaints)


_YAML_PREFIX = "yaml: unmarshal errors:\n"


def as_warnings(complaints: Sequence[str]) -> list[str]:
    """Return the errors of strict decoding as warnings: one for each line of the YAML decoder's errors."""
    lines = (
        complaint.removeprefix(_YAML_PREFIX).removeprefix("yaml: ").split("\n") for complaint in complaints
    )
    return [line.strip() for of_one in lines for line in of_one]


def duplicate_fields(parsed: ParsedObject) -> tuple[str, ...]:
    """Return the duplicate fields of a JSON text of any type."""
    text = parsed.text
    if not text or not has_duplicates(text, parsed.tree):
        return ()
    return decoder_errors.find(decoder_errors.UNTYPED, document.parse(text)).strict


def _parse(body: Body, kind: str) -> ParsedObject:
    try:
        parsed = parse(body.data, body.media_type)
    except UnreadableBody as error:
        raise _not_recognized(body, kind, undecodable(error)) from error
    if parsed.tree is None:
        return ParsedObject({}, parsed.text)  # Go reads null as an object without fields
    if not isinstance(parsed.tree, dict):
        raise _unrecognized_error(body, kind, _not_readable(parsed.tree, _TYPE_META))
    for name, value in parsed.tree.items():
        if name in ("apiVersion", "kind") and not isinstance(value, str | None):
            go_type = f"struct field .{name} of type string"
            raise _unrecognized_error(body, kind, _not_readable(value, go_type))
    api_version = parsed.tree.get("apiVersion") or ""
    if api_version.count("/") > 1:
        raise _not_recognized(body, kind, _MALFORMED_VERSION.format(api_version))
    return parsed


def _check_kind(
    registry: Registry, parsed: ParsedObject, sent_type: tuple[str, str], expected: tuple[str, str]
) -> None:
    """Refuse another kind: the body is decoded as the kind that it names, and cannot be converted."""
    if sent_type == expected or sent_type in _ACCEPTED_VERSIONS.get(expected, ()):
        return
    if sent_type in _CONVERTIBLE_VERSIONS.get(expected, ()):
        raise _version_mismatch(sent_type[0], expected[0])
    version = gotext.quote(sent_type[0].rpartition("/")[2])
    problem = not_converted(registry, sent_type, f"{internal_package(expected[0])}.{expected[1]}")
    if sent_type[0].endswith("/"):
        problem = missing_version(parsed)
    if registry.scheme.schemas.kind(*sent_type) is not None:
        try:
            decode_as(registry, parsed.tree, sent_type, text=parsed.text)
        except DecodeError as error:
            problem = str(error)
        else:
            if _is_convertible(sent_type, expected):
                raise _version_mismatch(sent_type[0], expected[0])
    raise status.BadRequest(
        f"{sent_type[1]} in version {version} cannot be handled as a {expected[1]}: {problem}"
    )


def _version_mismatch(sent_version: str, expected_version: str) -> status.BadRequest:
    mismatch = f"does not match the expected API version ({expected_version})"
    return status.BadRequest(f"the API version in the data ({sent_version}) {mismatch}")


def _is_convertible(sent_type: tuple[str, str], expected: tuple[str, str]) -> bool:
    """Return whether upstream could convert the kind, of which it accepts one version only."""
    (sent_version, sent_kind), (expected_version, expected_kind) = sent_type, expected
    groups = tuple(version.rpartition("/")[0] for version in (sent_version, expected_version))
    is_same_group = groups[0] == groups[1] or groups[0] == "extensions" or {*groups} == _GROUPS_OF_EVENTS
    return sent_kind == expected_kind and is_same_group


_GROUPS_OF_EVENTS: Final = {"", "events.k8s.io"}
_SCALE: Final = "Scale"
_EVICTION: Final = "Eviction"
_ACCEPTED_VERSIONS: Final = {("policy/v1", _EVICTION): (("policy/v1beta1", _EVICTION),)}
"""Versions of a kind that are accepted in place of the expected one."""
_CONVERTIBLE_VERSIONS: Final = {
    ("autoscaling/v1", _SCALE): tuple(
        (version, _SCALE) for version in ("extensions/v1beta1", "apps/v1beta1", "apps/v1beta2")
    )
}
"""Versions of a kind that could be converted to the expected one, and are not accepted."""


def not_registered(api_version: str, kind: str) -> str:
    """Return the error of Go's scheme for a kind that is not registered."""
    scheme = f"version {gotext.quote(api_version)} in scheme {gotext.quote('pkg/runtime/scheme.go:111')}"
    return f"no kind {gotext.quote(kind)} is registered for {scheme}"


def internal_package(api_version: str) -> str:
    """Return the Go package of a group's internal types."""
    return api_version.rpartition("/")[0].partition(".")[0] or "core"


def not_converted(registry: Registry, source: tuple[str, str], target: str) -> str:
    """Return the error for one kind that is sent in place of another, which is named with its Go package."""
    if registry.scheme.schemas.kind(*source) is None:
        return not_registered(*source)
    return f"converting ({_go_name(*source)}) to ({target}): unknown conversion"


def type_of(tree: Any) -> tuple[str, str]:
    """Return the apiVersion and kind of a body, "" for a missing one."""
    if not isinstance(tree, dict):
        raise status.BadRequest(_NO_TYPE + _not_readable(tree, _TYPE_META))
    for name in ("apiVersion", "kind"):
        if not isinstance(tree.get(name), str | None):
            problem = _not_readable(tree[name], f"struct field .{name} of type string")
            raise status.BadRequest(_NO_TYPE + problem)
    api_version = tree.get("apiVersion") or ""
    if api_version.count("/") > 1:
        raise status.BadRequest(_MALFORMED_VERSION.format(api_version))
    return api_version, tree.get("kind") or ""


_MALFORMED_VERSION: Final = "unexpected GroupVersion string: {}"


def missing_kind(text: str) -> str:
    """Return upstream's error for an object without a Go struct whose kind is missing."""
    return f"Object 'Kind' is missing in '{text}'"


def missing_version(parsed: ParsedObject) -> str:
    """Return upstream's error for an apiVersion with a group alone."""
    return (
        f"Object 'apiVersion' is missing in '{gotext.decode_utf8(parsed.text or orjson.dumps(parsed.tree))}'"
    )


def _check_has_kind(context: RequestContext, parsed: ParsedObject) -> None:
    """Check that an object that has no struct upstream has a kind, before it is decoded."""
    if not parsed.tree.get("kind"):
        text = (parsed.text or orjson.dumps(parsed.tree)) if context.body.data else b""
        raise _not_recognized(context.body, expected_type(context)[1], missing_kind(gotext.decode_utf8(text)))


def _check_custom_type(context: RequestContext, tree: Tree) -> ApiError | None:
    """Check the type of an object that has no struct upstream, after it was decoded as an object of any kind.

    The error of another kind is returned for later: an update of an object that is absent or has another UID is refused for that.
    """
    expected_version, expected_kind = expected_type(context)
    api_version, kind = tree.get("apiVersion") or "", tree["kind"]
    if api_version != expected_version:
        raise _version_mismatch(api_version, expected_version)
    if kind != expected_kind and context.subresource is None:
        wrong = errors.invalid(ROOT.child("kind"), kind, f"must be {expected_kind}")
        name = str((tree.get("metadata") or {}).get("name") or "")
        return status.invalid(GroupKind(context.resource.group, kind), name, [wrong])
    return None


def _go_name(api_version: str, kind: str) -> str:
    return f"{api_version.rpartition('/')[2]}.{kind}"


def undecodable(error: UnreadableBody) -> str:
    """Return upstream's error for a body that cannot be decoded; it looks for the kind of JSON first."""
    return f"{_NO_TYPE}{error}" if isinstance(error, NotJson) else str(error)


def _unrecognized_error(body: Body, kind: str, problem: str) -> status.BadRequest:
    return _not_recognized(body, kind, _NO_TYPE + problem)


def _not_recognized(body: Body, kind: str, problem: str) -> status.BadRequest:
    summary = _summary(body.data)
    return status.BadRequest(
        f"the object provided is unrecognized (must be of type {kind}): {problem} ({summary})"
    )


def _summary(data: bytes) -> str:
    """Return the first bytes of a body: in hexadecimal digits, unless it may be JSON."""
    if not data:
        return "<empty>"
    start = data[:SUMMARY_BYTES]
    text = gotext.decode_utf8(start) if data.startswith(b"{") else start.hex()
    return f"{text} ..." if len(data) > SUMMARY_BYTES else text


_NO_TYPE = "couldn't get version/kind; json parse error: "
_TYPE_META = r'value of type struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }'


def _not_readable(value: object, go_type: str) -> str:
    # Go shows a number only where another one would fit.
    name = "number" if isinstance(value, float) else type_name(value)
    return f"json: cannot unmarshal {name} into Go {go_type}"


# --- the sent object


def sent_tree(body: Body, patched: Any) -> Any:
    """Return the object as the client sent it, or as its patch made it; None if the body cannot be read."""
    if patched is not None:
        return patched
    try:
        return (parse_applied(body.data) if body.applies else parse(body.data, body.media_type)).tree
    except UnreadableBody:
        return None


def has_sent_empty(body: Body, patched: Any, *steps: str) -> bool:
    """Return whether a client sent an empty list or map at a path. `patched` is as for `sent_tree`."""
    if body.data.find(steps[-1].encode()) < 0:
        return False
    value = sent_tree(body, patched)
    for step in steps:
        value = value.get(step) if isinstance(value, dict) else None
    return is_empty(value)


def is_empty(value: Any) -> bool:
    return isinstance(value, list | dict) and not value
