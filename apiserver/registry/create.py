"""Create: a body becomes a stored object with a name, a UID and a creationTimestamp."""

import itertools
from typing import Final

import orjson

from mockube.apimachinery import status
from mockube.apimachinery.names import generate_name
from mockube.apimachinery.piecewise import decode_in_pieces
from mockube.apiserver.wire.parse import check_format

from . import metadata
from .body import read_object
from .registry import Registry
from .request_context import ObjectResult, RequestContext, write_options
from .stages import ADMISSION, BEING_DELETED, STORAGE
from .write import Write, run

MAX_NAMES: Final = 8
"""The number of generated names that are tried before AlreadyExists is returned."""


async def create(registry: Registry, context: RequestContext) -> ObjectResult:
    check_format(context.body.media_type)
    options = write_options(context, "CreateOptions")
    sent, type_error = await registry.begin(context, read_object, registry, context, options)
    metadata.clear_system_fields(sent)
    new = metadata.without_duplicate_owners(sent, context)
    write = Write(
        registry=registry, context=context, options=options, make=lambda _: new, type_error=type_error
    )
    return await create_object(write)


async def create_object(write: Write) -> ObjectResult:
    """Create the object of a write with its name, or with a generated one; retry if that or an allocated value is in use."""
    registry, context = write.registry, write.context
    await run(write, ADMISSION)
    object_meta = metadata.ensure_metadata(write.new)  # a webhook may have set the name
    name_prefix = "" if object_meta.get("name") else object_meta.get("generateName", "")
    may_repeat = bool(name_prefix) or registry.allocators.has_allocator(write.row)
    original = await registry.run(context, orjson.dumps, write.new) if may_repeat else b""
    for attempt in itertools.count(1):
        if name_prefix:
            has_suffix = write.strategy.generates_suffixes
            name = generate_name(name_prefix, registry.random) if has_suffix else name_prefix
            metadata.ensure_metadata(write.new)["name"] = name
        try:
            await run(write, STORAGE)
        except status.AlreadyExists as error:
            if attempt == MAX_NAMES or not name_prefix:
                raise _name_conflict(write, error) from error
        if write.result is not None:
            return write.result
        write.new = await registry.run(context, decode_in_pieces, original)
    raise AssertionError("the loop above returns or raises")


def _name_conflict(write: Write, error: status.AlreadyExists) -> status.AlreadyExists:
    """Return the error for a name that is in use; for a generated name, upstream has an error of its own."""
    object_meta = metadata.ensure_metadata(write.new)
    if not object_meta.get("generateName"):
        return error
    conflict = status.generate_name_conflict(write.context.resource.group_resource, object_meta["name"], 1)
    if not error.message.startswith(BEING_DELETED):
        return conflict
    return status.AlreadyExists(BEING_DELETED + conflict.message, conflict.details)
