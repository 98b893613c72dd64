"""Server-side apply: a client says what it wants to manage, and the server settles it with all other managers."""

from typing import Any

from apimachinery import status
from apimachinery.patch.apply import Conflicts
from apimachinery.patch.errors import PatchError, Undecodable
from apimachinery.schema.decode import DecodeError
from apimachinery.status import ApiError, Cause, Conflict, Details
from apimachinery.timestamps import format_time
from apiserver.rest import metadata
from apiserver.rest.backend import Backend
from apiserver.rest.body import decode_as
from apiserver.rest.call import Call, ObjectAnswer
from apiserver.rest.create import create_tree
from apiserver.rest.managed import field_manager
from apiserver.rest.options import WriteOptions, check_apply, write_options
from apiserver.rest.update import change
from apiserver.storage.stored import Tree
from apiserver.wire.parse import Unreadable, parse

APPLY_TYPES = frozenset({"application/apply-patch+yaml"})


async def apply(backend: Backend, call: Call) -> ObjectAnswer:
    options = write_options(call, "PatchOptions")
    check_apply(options)
    config = _read(call)

    async def transform(old: Tree) -> Tree:
        return _applied(backend, call, options, old, config)

    if call.subresource is None and await backend.find(call.resource, call.namespace, call.name) is None:
        empty = field_manager(backend, call.resource, "").empty
        tree = _applied(backend, call, options, dict(empty), config)
        return await create_tree(backend, call, tree, options, manage=False)
    return await change(backend, call, options, transform)


def _read(call: Call) -> Any:
    try:
        return parse(call.body.data, "application/yaml").tree
    except Unreadable as error:
        raise status.BadRequest(f"error decoding YAML: {error}") from error


def _applied(backend: Backend, call: Call, options: WriteOptions, live: Tree, config: Any) -> Tree:
    """The live object with what is applied merged into it, read as an object of its kind."""
    if not isinstance(config, dict):
        raise status.BadRequest("error decoding YAML: an object is expected")
    manager = field_manager(backend, call.resource, call.subresource.name if call.subresource else "")
    time = format_time(backend.clock.now())
    try:
        merged = manager.apply(live, config, manager=options.field_manager, time=time, force=options.force)
        decoded = decode_as(backend, merged, strict=options.field_validation != "Ignore")
    except Conflicts as error:
        raise _conflict(error) from error
    except Undecodable as error:
        raise status.BadRequest(str(error)) from error
    except (PatchError, DecodeError) as error:
        raise ApiError(str(error)) from error
    made: Tree = {"kind": call.resource.kind, "apiVersion": call.resource.api_version} | decoded.tree
    backend.rules.default(made["apiVersion"], made["kind"], made)
    metadata.match_name(made, call.name)
    metadata.match_namespace(made, call)
    return made


def _conflict(error: Conflicts) -> Conflict:
    causes = tuple(
        Cause(reason="FieldManagerConflict", message=conflict.message, field=conflict.field)
        for conflict in error.conflicts
    )
    return Conflict(str(error), Details(causes=causes))
