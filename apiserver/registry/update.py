"""Update: an object is replaced, whole or through a subresource, if it was not changed meanwhile.

`guaranteed_update` is the read-modify-write loop of updates, patches and subresources. It is repeated if another write
came between, which fails if the client sent the resourceVersion that it had read.
"""

import orjson
from msgspec.structs import replace

from mockube.apimachinery import status
from mockube.apimachinery.piecewise import decode_in_pieces
from mockube.apimachinery.tree import Tree
from mockube.apiserver.storage.stored_object import StoredObject

from . import metadata
from .body import read_object
from .create import create_object
from .registry import Registry
from .request_context import ObjectResult, RequestContext, write_options
from .stages import ADMISSION, READING, STORAGE, check_uid
from .write import Write, run


async def update(registry: Registry, context: RequestContext) -> ObjectResult:
    options = write_options(context, "UpdateOptions")
    sent, type_error = await registry.begin(context, read_object, registry, context, options)
    metadata.match_namespace(sent, context)
    metadata.match_name(sent, context.name)
    sent = metadata.without_duplicate_owners(sent, context)
    uid = sent["metadata"].get("uid", "")
    original = await registry.run(context, orjson.dumps, sent)
    first = [sent]

    def sent_tree() -> Tree:
        # The stages change the object in place: each attempt gets its own, of which the first is decoded already.
        tree: Tree = first.pop() if first else decode_in_pieces(original)
        return tree

    def change(_: Write, old: Tree) -> Tree:
        return metadata.manage_change(registry, context, sent_tree(), old, options)

    def make(write: Write) -> Tree:
        check_uid(write, "", registry.layout.object(context.resource, context.namespace, context.name))
        tree = sent_tree()
        metadata.check_new(tree, context, dry_run=options.dry_run)
        return tree

    may_create = registry.scheme.strategy(context.resource).create_on_update
    write = Write(
        registry=registry,
        context=context,
        options=options,
        change=change,
        make=make if may_create else None,
        uid=uid,
        type_error=type_error,
    )
    return await guaranteed_update(write)


async def guaranteed_update(write: Write) -> ObjectResult:
    """Change the object of a write, or create it if it is missing and may be created. A copy of the write makes each attempt."""
    registry, context = write.registry, write.context
    while True:
        stored = await registry.find(context.resource, context.namespace, context.name)
        attempt = replace(write, stored=stored)
        answer = await (_create_missing(attempt) if stored is None else _replace(attempt, stored))
        if answer is not None:
            return answer


async def _create_missing(write: Write) -> ObjectResult | None:
    """Create an object that does not exist; return None if another request created it at the same time."""
    registry, context = write.registry, write.context
    if write.make is None:
        raise status.not_found(context.resource.group_resource, context.name)
    try:
        return await create_object(write)
    except status.AlreadyExists:
        if await registry.find(context.resource, context.namespace, context.name) is None:
            raise  # by a webhook, for example
        return None


async def _replace(write: Write, stored: StoredObject) -> ObjectResult | None:
    """Replace an object by the changed one; return None if another write may have changed it meanwhile."""
    work = write.context.work
    work.measure(len(stored.value))
    if work.needs_reservation and await work.reserve():
        return None  # others may have changed it
    for stages in (READING, ADMISSION, STORAGE):
        await run(write, stages)
    return write.result
