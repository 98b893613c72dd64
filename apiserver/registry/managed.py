"""Update `metadata.managedFields`, the managers of an object's fields, at every write."""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Final

import orjson

from mockube.apimachinery.patch.apply import FieldManager, Unconvertible, Versions
from mockube.apimachinery.patch.apply.atoms import atom_of
from mockube.apimachinery.patch.apply.fieldset import of_fields
from mockube.apimachinery.patch.apply.managers import Json, with_api_version
from mockube.apimachinery.status import ApiError
from mockube.apimachinery.timestamps import format_time
from mockube.apimachinery.tree import Tree
from mockube.apiserver.kinds.api_resource import Resource
from mockube.apiserver.kinds.kind import Conversion
from mockube.apiserver.kinds.strategy import SPEC, STATUS_ALONE
from mockube.apiserver.registry.backend import Backend
from mockube.apiserver.registry.body import decode_as
from mockube.apiserver.registry.call import Call
from mockube.apiserver.registry.convert import APPLY, encoder, remote_conversion
from mockube.apiserver.registry.options import MAX_FIELD_MANAGER, WriteOptions

_UNKNOWN_VERSION: Final = "request to convert CR to an invalid group/version: {}"
"""The error for a custom object with fields of a version that its definition does not have any more."""


def field_manager(backend: Backend, resource: Resource, subresource: str) -> FieldManager:
    """The manager of a resource's fields for one way to write it, made when it is first needed."""
    key = resource, subresource
    manager = backend.field_managers.get(key)
    if manager is None:
        manager = backend.field_managers[key] = _make(backend, resource, subresource)
    return manager


def _make(backend: Backend, resource: Resource, subresource: str) -> FieldManager:
    version, kind = resource.api_version, resource.kind
    paths = backend.strategy(resource).resets.get(subresource, ())
    if paths == STATUS_ALONE["status"]:
        paths = (*SPEC, ("metadata",))  # of which nothing is owned, though some of it can be changed
    resets = of_fields(*map(".".join, paths))
    every = (version, *resource.relabelled, *_other_versions(backend, resource))
    versions = Versions(
        own=version,
        atoms={api_version: atom_of(backend.schemas.kind(api_version, kind)) for api_version in every},
        reset_fields=dict.fromkeys(every, resets),
        convert=_converter(backend, resource),
        unknown_version=_UNKNOWN_VERSION if resource.custom else "",
    )
    type_meta: Tree = {"kind": kind, "apiVersion": version}
    empty = type_meta | decode_as(backend, type_meta).tree
    dropped = resource.custom and not subresource and resource.subresource("status") is not None
    return FieldManager(
        kind=kind,
        versions=versions,
        empty=empty,
        subresource=subresource,
        is_custom=resource.custom,
        untyped=("status",) if dropped else (),
    )


def _converter(backend: Backend, resource: Resource) -> Callable[[Json, str], Json]:
    """Converts an object to another version; raises `NotConverted` if a webhook has to."""
    remote = remote_conversion(backend, resource)
    if remote is None:
        local = _local_conversions(backend, resource)
        return partial(_convert, local) if local else with_api_version

    def convert(tree: Json, version: str) -> Json:
        try:
            return remote.at_version(tree, version)
        except ApiError as error:
            raise Unconvertible(str(error)) from error

    return convert


def _local_conversions(backend: Backend, resource: Resource) -> Mapping[str, Conversion]:
    """Return how functions convert a built-in kind, by each of its versions that is not the stored one."""
    if resource.custom:
        return {}
    return {
        "/".join(filter(None, group_version)): conversion
        for (group_version, name), conversion in backend.conversions.items()
        if name == resource.name and conversion.remote is None and not conversion.at_storage
    }


def _other_versions(backend: Backend, resource: Resource) -> Iterable[str]:
    """Return the versions of a built-in kind that functions convert it to, beside its own."""
    local = _local_conversions(backend, resource)
    if not local:
        return ()
    stored = "/".join(filter(None, resource.storage_version or resource.group_version))
    return {stored, *local} - {resource.api_version}


def _convert(conversions: Mapping[str, Conversion], tree: Json, version: str) -> Json:
    """Return an object in another version, by way of the stored one."""
    source: Tree = dict(tree)
    own = conversions.get(source["apiVersion"])
    stored = source if own is None else own.to_stored(source)
    target = conversions.get(version)
    return stored if target is None else target.from_stored(stored)


def _of_kind(backend: Backend, api_version: str, kind: str, subresource: str) -> FieldManager:
    """The manager of the fields of what is sent to a resource or subresource, whatever the resource is of."""
    versions = Versions(
        own=api_version,
        atoms={api_version: atom_of(backend.schemas.kind(api_version, kind))},
        reset_fields={},
    )
    type_meta: Tree = {"kind": kind, "apiVersion": api_version}
    empty = type_meta | decode_as(backend, type_meta).tree
    return FieldManager(kind=kind, versions=versions, empty=empty, subresource=subresource)


def on_create(backend: Backend, call: Call, tree: Tree, options: WriteOptions) -> Tree:
    """A new object with its first manager, the creator."""
    manager = field_manager(backend, call.resource, call.subresource.name if call.subresource else "")
    time = tree["metadata"]["creationTimestamp"]
    return without_none(manager.create(tree, manager=manager_name(call, options), time=time))


def on_question(backend: Backend, call: Call, tree: Tree, options: WriteOptions) -> Tree:
    """An object that is answered and never stored has a manager all the same."""
    name = call.subresource.name if call.subresource else ""
    key = call.resource, name
    manager = backend.field_managers.get(key)
    if manager is None:
        manager = backend.field_managers[key] = _of_kind(backend, tree["apiVersion"], tree["kind"], name)
    time = format_time(backend.clock.now())
    return without_none(manager.create(tree, manager=manager_name(call, options), time=time))


def on_update(backend: Backend, call: Call, new: Tree, old: Tree, options: WriteOptions) -> Tree:
    """An object with its managers after a change to it."""
    subresource = call.subresource.name if call.subresource else ""
    manager = field_manager(backend, call.resource, subresource)
    name, time = manager_name(call, options), format_time(backend.clock.now())
    return without_none(manager.update(old, new, manager=name, time=time))


def without_none(tree: Tree) -> Tree:
    """Return an object without managers with no managedFields rather than an empty list."""
    if not tree["metadata"].get("managedFields"):
        tree["metadata"].pop("managedFields", None)
    return tree


def manager_name(call: Call, options: WriteOptions) -> str:
    """Return the field manager: as the client set it, or else from its user agent."""
    if options.field_manager:
        return options.field_manager
    program = call.user_agent.partition("/")[0]
    return "".join(filter(str.isprintable, program))[:MAX_FIELD_MANAGER] or "unknown"


def without_managers(backend: Backend, call: Call, value: bytes) -> bytes | None:
    """What is stored, without its managers, where it was too large; None if they must stay, or there are none."""
    row = backend.stored_row(call.resource)
    if call.body.media_type.startswith(APPLY) or backend.strategy(row).raw:
        return None
    tree = orjson.loads(value)
    return encoder(row)(tree) if tree["metadata"].pop("managedFields", None) else None
