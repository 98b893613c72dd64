"""Convert the object of a write to the version that webhooks and policies receive, and back."""

from contextlib import suppress
from typing import Any, Final

from mockube.apimachinery.tree import Tree
from mockube.apiserver.kinds.api_resource import SCALE, Resource
from mockube.apiserver.kinds.kind import NotConverted
from mockube.apiserver.registry.body import decode_as
from mockube.apiserver.registry.convert import from_stored, remote_conversion, to_stored
from mockube.apiserver.registry.registry import Registry
from mockube.apiserver.registry.request_context import AdmissionAttributes, Operation
from mockube.apiserver.registry.subresources import scale
from mockube.apiserver.schema.decode import DecodeError

OBJECT_META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
_SYSTEM_FIELDS: Final = ("uid", "creationTimestamp")


def to_version(
    registry: Registry, attributes: AdmissionAttributes, row: Resource, tree: Tree | None
) -> Tree | None:
    """Return the object in the version of a row."""
    if tree is None:
        return None
    if _is_scale(attributes):
        return scale.scale_view(attributes.resource).from_object(tree)
    if _has_other_kind(attributes):
        return tree
    is_of_row = row is attributes.resource or tree["kind"] == row.kind
    if is_of_row and tree["apiVersion"] == row.api_version:
        return tree
    conversion = registry.scheme.conversion(attributes.resource)
    if conversion is not None and conversion.remote is not None:
        return conversion.remote.at_version(tree, row.api_version)
    if conversion is not None and conversion.at_storage:
        tree = conversion.to_stored(tree)
    return from_stored(registry, row, tree)


async def prepare_version(registry: Registry, attributes: AdmissionAttributes, row: Resource) -> None:
    """Call the conversion webhooks whose results `to_version` needs."""
    while remote_conversion(registry, attributes.resource) is not None:
        try:
            for tree in (attributes.object, attributes.old):
                to_version(registry, attributes, row, tree)
        except NotConverted as needed:
            await needed.prepare()
        else:
            return


def without_system_fields(attributes: AdmissionAttributes, tree: Tree | None) -> Tree | None:
    """Return a new object as mutating webhooks receive it: without uid and creationTimestamp."""
    if tree is None or attributes.operation is not Operation.CREATE or attributes.subresource:
        return tree
    metadata = {name: value for name, value in tree["metadata"].items() if name not in _SYSTEM_FIELDS}
    return tree | {"metadata": metadata}


def _is_scale(attributes: AdmissionAttributes) -> bool:
    """Return whether a write to the scale subresource is admitted with the whole object."""
    subresource, written = attributes.context.subresource, attributes.object or attributes.old
    is_scale = subresource is not None and subresource.kind == SCALE.kind
    return is_scale and written is not None and bool(written["kind"] != SCALE.kind)


def _has_other_kind(attributes: AdmissionAttributes) -> bool:
    subresource = attributes.context.subresource
    return subresource is not None and bool(subresource.kind)


def to_admitted_version(
    registry: Registry, attributes: AdmissionAttributes, row: Resource, tree: Tree
) -> Tree:
    """Return the object after a webhook or a policy: decoded, with defaults, in the version that is admitted.

    A custom object is not decoded, as upstream: its unknown fields are validated, and dropped when it is stored.
    Raise `NotConverted` if a conversion webhook must be called first.
    """
    if row.custom and tree["kind"] == row.kind:
        decoded = tree | {"metadata": _readable_metadata(registry, tree.get("metadata"))}
        attributes.is_unpruned = True
    else:
        decoded = {"kind": tree["kind"], "apiVersion": tree["apiVersion"]} | decode_as(registry, tree).tree
    registry.scheme.rules.default(decoded["apiVersion"], decoded["kind"], decoded)
    before = attributes.object
    assert before is not None
    if _is_scale(attributes):
        return scale.scale_view(attributes.resource).update_object(before, decoded)
    if attributes.operation is Operation.CREATE and not attributes.subresource:
        system_fields = {
            name: before["metadata"][name] for name in _SYSTEM_FIELDS if name in before["metadata"]
        }
        decoded["metadata"] = decoded.get("metadata", {}) | system_fields
    if _has_other_kind(attributes) or decoded["apiVersion"] == before["apiVersion"]:
        return decoded
    remote = remote_conversion(registry, attributes.resource)
    if remote is not None:
        return remote.at_version(decoded, attributes.resource.api_version)
    conversion = registry.scheme.conversion(row)
    return decoded if conversion is None else to_stored(registry, conversion, decoded)


def _readable_metadata(registry: Registry, metadata: Any) -> Tree:
    """Return the fields of metadata that have the right types, as upstream reads those of an object without a struct."""
    of = registry.scheme.schemas.definition(OBJECT_META)
    readable: Tree = {}
    for name, value in metadata.items() if isinstance(metadata, dict) else ():
        with suppress(DecodeError):
            readable |= registry.scheme.decoder.decode(of, {name: value}, strict=False).tree
    return readable
