"""Who manages which fields, kept in `metadata.managedFields` at every write."""

from collections.abc import Mapping
from typing import Any

from apimachinery.patch.apply import FieldManager, Versions
from apimachinery.patch.apply.atoms import atom_of
from apimachinery.patch.apply.fieldset import of_fields
from apiserver.resources.spec import Resource
from apiserver.rest import metadata
from apiserver.rest.backend import Backend
from apiserver.rest.body import decode_as
from apiserver.rest.call import Call
from apiserver.rest.options import MAX_FIELD_MANAGER, WriteOptions
from apiserver.rest.take import only_paths
from apiserver.storage.stored import Tree


def field_manager(backend: Backend, resource: Resource, subresource: str) -> FieldManager:
    """The manager of a resource's fields for one way to write it, made when it is first needed."""
    key = resource, subresource
    found = backend.field_managers.get(key)
    if found is None:
        found = backend.field_managers[key] = _make(backend, resource, subresource)
    return found


def _make(backend: Backend, resource: Resource, subresource: str) -> FieldManager:
    version, kind = resource.api_version, resource.kind
    resets = backend.strategy(resource).resets.get(subresource, ())
    versions = Versions(
        own=version,
        atoms={version: atom_of(backend.schemas.kind(version, kind))},
        reset_fields={version: of_fields(*map(".".join, resets))},
    )
    bare: Tree = {"kind": kind, "apiVersion": version}
    empty = bare | decode_as(backend, bare).tree
    return FieldManager(kind=kind, versions=versions, empty=empty, subresource=subresource)


def on_create(backend: Backend, call: Call, tree: Tree, options: WriteOptions) -> Tree:
    """A new object with its first manager."""
    manager = field_manager(backend, call.resource, "")
    return _updated(backend, call, manager, manager.empty, tree, options)


def on_update(backend: Backend, call: Call, new: Tree, old: Tree, options: WriteOptions) -> Tree:
    """An object with its managers after a change to it."""
    subresource = call.subresource.name if call.subresource else ""
    manager = field_manager(backend, call.resource, subresource)
    only = backend.strategy(call.resource).only.get(subresource)
    # Nobody becomes the manager of what this way to write does not change.
    new = new if only is None else only_paths(new, old, only)
    return _updated(backend, call, manager, old, new, options)


def _updated(
    backend: Backend,
    call: Call,
    manager: FieldManager,
    old: Mapping[str, Any],
    new: Tree,
    options: WriteOptions,
) -> Tree:
    name, now = manager_name(call, options), metadata.timestamp(backend.clock.now())
    # Upstream does not say when, if what was written was shown as something else, such as a Scale.
    time = None if call.subresource and call.subresource.kind else now
    updated: Tree = manager.update(old, new, manager=name, time=time)
    if not updated["metadata"].get("managedFields"):
        updated["metadata"].pop("managedFields", None)
    return updated


def manager_name(call: Call, options: WriteOptions) -> str:
    """Who writes: as the client says, or else as its program is called."""
    if options.field_manager:
        return options.field_manager
    program = call.user_agent.partition("/")[0]
    return "".join(filter(str.isprintable, program))[:MAX_FIELD_MANAGER] or "unknown"
