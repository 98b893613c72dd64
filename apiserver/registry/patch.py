"""Patch: an object is changed by a patch of one of four types.

A patch is applied to the stored object, and its result is decoded like a body. It is repeated on the newest object if
another write came between, so that no change is lost.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

import orjson
from msgspec import Struct
from msgspec.structs import replace

from mockube.apimachinery import errors, gotext, status
from mockube.apimachinery.groups import GroupKind
from mockube.apimachinery.patch import gofmt, json_merge, strategic
from mockube.apimachinery.patch.errors import (
    PatchError,
    PatchNotApplicable,
    TooManyOperations,
    UndecodablePatch,
)
from mockube.apimachinery.paths import ROOT
from mockube.apimachinery.schema.model import SchemaType
from mockube.apimachinery.status import ApiError
from mockube.apimachinery.tree import Tree
from mockube.apiserver.kinds.api_resource import Resource
from mockube.apiserver.kinds.kind import UnconvertibleObject
from mockube.apiserver.patch import json_patch
from mockube.apiserver.schema import lossless_json
from mockube.apiserver.schema.decode import DecodedObject, DecodeError
from mockube.apiserver.user import SERVER
from mockube.apiserver.wire.negotiation import patch_media_type
from mockube.apiserver.wire.parse import UnreadableBody, parse

from . import metadata
from .apply import CHECKED_SINCE, apply
from .body import (
    as_warnings,
    decode_as,
    decode_unstructured,
    duplicate_fields,
    internal_package,
    missing_kind,
    not_converted,
    not_registered,
    type_of,
    with_whole_numbers,
)
from .registry import Registry
from .request_context import APPLY_TYPES, Body, ObjectResult, RequestContext, WriteOptions, patch_options
from .update import guaranteed_update
from .write import Write

ApplyPatch: TypeAlias = Callable[[Tree, Any, SchemaType], Any]
Decode: TypeAlias = Callable[..., DecodedObject]


class PatchType(Struct, frozen=True, kw_only=True):
    """A patch type. `check` refuses an invalid patch, and returns the errors of strict decoding."""

    apply: ApplyPatch
    check: Callable[[Any], Sequence[str]] = lambda _: ()
    reads_type: bool = True
    """Whether the result of a patch is decoded as the kind that it names."""
    decode: Decode = decode_as
    """Decodes the result of a patch as an object of its kind."""
    complaint: str = "{}"
    """The format of the error of strict decoding for a duplicate field."""
    shows_patch: bool = False
    """Whether errors contain the patch as Go prints a map, instead of its result."""
    refusal: str = "error decoding patch: {}"
    """The error for a patch that is not JSON."""
    growth: Callable[[Any], int] = lambda _: 0
    """The number of bytes by which an object may grow, besides the size of the patch."""


BUILT_IN_PATCH_TYPES: Mapping[str, PatchType] = {
    "application/json-patch+json": PatchType(
        apply=lambda tree, patch, _: json_patch.apply(tree, patch),
        check=json_patch.check,
        complaint="json patch {}",
        growth=json_patch.max_growth,
    ),
    "application/merge-patch+json": PatchType(apply=lambda tree, patch, _: json_merge.apply(tree, patch)),
    "application/strategic-merge-patch+json": PatchType(
        apply=strategic.apply,
        reads_type=False,
        decode=decode_unstructured,
        shows_patch=True,
        refusal="{}",
    ),
}


MAX_WRITTEN: Final = 65_536
"""The size of the largest patch whose result an error contains as it was sent."""

CUSTOM_PATCH_TYPES: Mapping[str, PatchType] = {
    name: BUILT_IN_PATCH_TYPES[name]
    for name in ("application/json-patch+json", "application/merge-patch+json")
}
"""Custom resources have no strategic merge keys for their lists."""


PATCH_TYPES: Final = frozenset({*BUILT_IN_PATCH_TYPES, *APPLY_TYPES})


class SubresourceView(Struct, frozen=True, kw_only=True):
    """Converts an object to the kind of a subresource, and a write of that kind to a change of the object."""

    from_object: Callable[[Tree], Tree]
    patch_base: Callable[[Tree], Tree] | None = None
    """Returns the tree to which a patch is applied, if it is not the one that clients read."""
    update_object: Callable[[Tree, Tree], Tree]
    """Returns the new object for the old one and the written tree; raises an error for an invalid tree."""
    manage: Callable[[Registry, RequestContext, Tree, Tree, WriteOptions], Tree] = metadata.manage_change
    """Returns the changed object with its managers; the fourth argument is the old object."""

    def view_result(self, answer: ObjectResult) -> ObjectResult:
        return replace(answer, stored=None, tree=self.from_object(answer.object()))


def _as_written(_old: Tree, written: Tree) -> Tree:
    return written


OBJECT_VIEW = SubresourceView(from_object=lambda tree: tree, update_object=_as_written)


async def patch(
    registry: Registry, context: RequestContext, view: SubresourceView = OBJECT_VIEW
) -> ObjectResult:
    media_type = patch_media_type(context.body.media_type)
    if media_type in APPLY_TYPES:
        return await apply(registry, context)
    patch_types = CUSTOM_PATCH_TYPES if context.resource.custom else BUILT_IN_PATCH_TYPES
    patch_type = patch_types.get(media_type)
    if patch_type is None:
        raise status.unsupported_media_type([*patch_types, *APPLY_TYPES])
    options = patch_options(context)
    try:
        read = await registry.begin(context, _read, context, patch_type, options)
    except ApiError as error:
        if isinstance(error.__cause__, UnreadableBody) and not registry.is_before(CHECKED_SINCE):
            raise status.BadRequest("invalid JSON patch") from None
        # Upstream applies the patch after it has found the object.
        if await registry.find(context.resource, context.namespace, context.name) is None:
            raise status.not_found(context.resource.group_resource, context.name) from None
        raise
    context.work.growth = patch_type.growth(read.tree)

    def change(write: Write, old: Tree) -> Tree:
        # The new object shares unchanged parts with the old one, and gets defaults in place.
        own = orjson.loads(orjson.dumps(old))
        seen = (view.patch_base or view.from_object)(own)
        write.patched = _carry_out(registry, read, seen)
        outcome = PatchResult(write, read, write.patched, seen)
        if patch_type.reads_type:
            _check_type(outcome)
        new = view.update_object(own, _decode_patched(outcome))
        return view.manage(registry, context, new, own, options)

    write = Write(registry=registry, context=context, options=options, change=change)
    answer = await guaranteed_update(write)
    return answer if view is OBJECT_VIEW else view.view_result(answer)


class Patch(NamedTuple):
    """A patch as it was sent, and the errors of strict decoding."""

    patch_type: PatchType
    tree: Any
    data: bytes
    complaints: Sequence[str] = ()


class PatchResult(NamedTuple):
    """The result of a patch, which is decoded as its kind."""

    write: Write
    patch: Patch
    patched: Any
    old: Tree


async def patch_as_server(
    registry: Registry, resource: Resource, namespace: str, name: str, merge_patch: Mapping[str, Any]
) -> None:
    """Patch an object on behalf of the server itself."""
    body = Body(data=orjson.dumps(merge_patch), media_type="application/merge-patch+json")
    context = RequestContext(
        verb="patch", resource=resource, namespace=namespace, name=name, user=SERVER, body=body
    )
    context.user_agent = "kube-apiserver"
    await patch(registry, context)


def _read(context: RequestContext, patch_type: PatchType, options: WriteOptions) -> Patch:
    data = context.body.data
    try:
        parsed = parse(data, "application/json")
    except UnreadableBody as error:
        raise status.BadRequest(patch_type.refusal.format(error)) from error
    tree = parsed.tree
    if options.field_validation == "Ignore":
        return Patch(patch_type, tree, data)
    try:
        complaints = patch_type.check(tree)
        duplicates = (patch_type.complaint.format(each) for each in duplicate_fields(parsed))
        return Patch(patch_type, tree, data, (*complaints, *duplicates))
    except PatchError as error:
        raise patch_refusal(error) from error


def _carry_out(registry: Registry, patch: Patch, old: Tree) -> Any:
    schema = registry.scheme.schemas.kind(old["apiVersion"], old["kind"])
    assert schema is not None
    try:
        return patch.patch_type.apply(old, patch.tree, schema)
    except PatchError as error:
        raise patch_refusal(error) from error


def patch_refusal(error: PatchError) -> ApiError:
    """Return the error for a patch that cannot be applied."""
    match error:
        case UndecodablePatch():
            return status.BadRequest(str(error))
        case TooManyOperations():
            return status.request_entity_too_large(str(error))
        case PatchNotApplicable():
            return status.generic(422, server_message=str(error))
        case _:
            return ApiError(str(error))


def _decode_patched(outcome: PatchResult) -> Tree:
    """Return the result of a patch, decoded as its kind."""
    write, patch, patched, old = outcome
    registry, context, field_validation = write.registry, write.context, write.options.field_validation
    kind = {"kind": old["kind"], "apiVersion": old["apiVersion"]}
    if context.resource.custom:
        patched, _ = with_whole_numbers(patched, b"")
    try:
        # A converted object may not be in stored form.
        before = old if write.conversion is None else None
        named = (kind["apiVersion"], kind["kind"])
        type_meta = {
            field: name for field, name in kind.items() if isinstance(patched.get(field), str | None)
        }
        decoded = patch.patch_type.decode(
            registry, patched | type_meta, named, strict=field_validation != "Ignore", before=before
        )
    except DecodeError as error:
        raise _refused_object(outcome._replace(patched=patched), error) from error
    strict_errors = [
        *patch.complaints,
        *(sorted(decoded.strict) if patch.patch_type.shows_patch else decoded.strict),
    ]
    if strict_errors and field_validation == "Strict":
        problem = DecodeError(f"strict decoding error: {', '.join(strict_errors)}")
        raise _refused_object(outcome._replace(patched=patched), problem)
    context.report.warnings += as_warnings(strict_errors)
    new_object: Tree = kind | decoded.tree
    try:
        registry.scheme.rules.default(kind["apiVersion"], kind["kind"], new_object)
    except UnconvertibleObject as error:
        if patch.patch_type.shows_patch:
            raise ApiError(error.problem) from error
        raise _invalid(outcome, error.problem) from error
    metadata.match_namespace(new_object, context)
    metadata.match_name(new_object, context.name)
    return new_object


def _check_type(outcome: PatchResult) -> None:
    """Refuse a patch that changes the kind or version. A missing one is that of the URL."""
    write, _, patched, old = outcome
    context = write.context
    try:
        api_version, kind = type_of(patched)
    except status.BadRequest as error:
        raise _invalid(outcome, str(error)) from error
    if context.is_unstructured:
        if patched.get("apiVersion", "") is None:
            raise _invalid(outcome, _NO_TEXT)
        _check_custom_type(patched, api_version, kind)
        if context.subresource:
            return  # a patch of /status changes fields of the status only
        write.type_error = _type_error(outcome, (api_version, kind))
        if write.type_error is not None:
            return
    if not api_version:
        _check_internal(outcome, kind or old["kind"])
    elif (api_version, kind or old["kind"]) != (old["apiVersion"], old["kind"]):
        patched_type = api_version, kind or old["kind"]
        if context.resource.custom and patched_type[1] != old["kind"]:
            # The scheme of a custom object's Scale has no other kinds.
            raise _invalid(outcome, not_registered(*patched_type))
        target = "v1" if context.resource.custom else internal_package(old["apiVersion"])
        raise _invalid(outcome, not_converted(write.registry, patched_type, f"{target}.{old['kind']}"))


_NO_TEXT: Final = ".apiVersion accessor error: <nil> is of the type <nil>, expected string"


def _check_custom_type(patched: Tree, api_version: str, kind: str) -> None:
    """Refuse a patched custom object without apiVersion or kind."""
    if not kind:
        text = orjson.dumps(patched, option=orjson.OPT_SORT_KEYS).decode()
        raise _not_taken(text, missing_kind(text))
    if not api_version:
        raise status.internal_error("Object 'apiVersion' is missing in 'object has no apiVersion field'")


def _type_error(outcome: PatchResult, patched_type: tuple[str, str]) -> ApiError | None:
    """Return the error of a patch that changes the kind of a custom object, which validation raises; it names the new kind."""
    api_version, kind = patched_type
    expected = {"kind": outcome.old["kind"], "apiVersion": outcome.old["apiVersion"]}
    field_errors = [
        errors.invalid(ROOT.child(name), value, f"must be {expected[name]}")
        for name, value in (("kind", kind), ("apiVersion", api_version))
        if value != expected[name]
    ]
    if not field_errors:
        return None
    return status.invalid(
        GroupKind(api_version.rpartition("/")[0], kind), outcome.write.context.name, field_errors
    )


def _check_internal(outcome: PatchResult, kind: str) -> None:
    """Check an object without an apiVersion: upstream reads it into the internal type, whose fields have other names."""
    context, field_validation = outcome.write.context, outcome.write.options.field_validation
    if kind != outcome.old["kind"]:
        resource = context.resource
        stored_group, _ = resource.storage_version or resource.group_version
        group = gotext.quote(stored_group)
        scheme = (
            f"the internal version of group {group} in scheme {gotext.quote('pkg/runtime/scheme.go:111')}"
        )
        raise _invalid(outcome, f"no kind {gotext.quote(kind)} is registered for {scheme}")
    unknown = [
        f"unknown field {gotext.quote(name)}"
        for name in outcome.patched
        if name not in ("apiVersion", "kind")
    ]
    if unknown and field_validation == "Strict":
        raise _invalid(outcome, f"strict decoding error: {', '.join(unknown)}")
    if field_validation != "Ignore":
        context.report.warnings += unknown
    metadata.match_name({}, context.name)


def _refused_object(outcome: PatchResult, error: DecodeError) -> ApiError:
    write, patch, patched, old = outcome
    if patch.patch_type.shows_patch:
        return _not_taken(gofmt.format_verb_v(strategic.patch_after_merge(patch.tree, old)), str(error))
    text = _patched_text(outcome)
    problem = str(error)
    try:
        decode_as(write.registry, patched, (old["apiVersion"], old["kind"]), text=text.encode())
    except DecodeError as exact:  # this error shows numbers as they were written
        problem = str(exact)
    return _not_taken(text, problem)


def _invalid(outcome: PatchResult, problem: str) -> ApiError:
    return _not_taken(_patched_text(outcome), problem)


def _patched_text(outcome: PatchResult) -> str:
    """Return the result of a patch as text, with numbers and strings as they were sent."""
    write, patch, patched, old = outcome
    if len(patch.data) <= MAX_WRITTEN:
        reparsed_patch = patch._replace(tree=lossless_json.loads(patch.data))
        # Upstream sorts the fields of an object without a struct.
        text = (
            orjson.dumps(_in_order(write.registry, old))
            if not write.context.is_unstructured
            else orjson.dumps(old, option=orjson.OPT_SORT_KEYS)
        )
        patched = _carry_out(write.registry, reparsed_patch, lossless_json.loads(text))
    return lossless_json.dumps(dict(sorted(patched.items())) if isinstance(patched, dict) else patched)


def _in_order(registry: Registry, tree: Tree) -> Tree:
    """Return an object with its fields in Go's order, even those that the server added."""
    kind = {"kind": tree["kind"], "apiVersion": tree["apiVersion"]}
    decoded: Tree = decode_as(registry, tree, (tree["apiVersion"], tree["kind"])).tree
    return kind | decoded


def _not_taken(text: str, problem: str) -> ApiError:
    return status.invalid(GroupKind("", ""), "", [errors.invalid(ROOT.child("patch"), text, problem)])
