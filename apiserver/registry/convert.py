"""Convert objects between the client's version and the stored one, if those differ.

Objects are decoded, patched and attributed to managers in the client's version; built-in ones are admitted and validated
in the stored version, custom ones in the client's.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Final, TypeVar

from msgspec.structs import replace

from mockube.apimachinery.status import ApiError
from mockube.apimachinery.tree import Tree
from mockube.apiserver.event_loop import yield_between_batches
from mockube.apiserver.kinds.api_resource import Resource
from mockube.apiserver.kinds.kind import Conversion, RemoteConversion
from mockube.apiserver.storage.stored_object import StoredObject, encoder

from .body import decode_as
from .registry import WRONG_TYPE_ERRORS, CorruptObject, Registry
from .request_context import ListResult, ObjectResult
from .write import Write

_R = TypeVar("_R")


def to_stored(registry: Registry, conversion: Conversion, tree: Tree) -> Tree:
    """Return a client's object in the version in which it is admitted and validated."""
    if conversion.at_storage:
        return tree
    stored_tree = conversion.to_stored(tree)
    decoded: Tree = decode_as(registry, stored_tree).tree
    stored_tree = {"kind": stored_tree["kind"], "apiVersion": stored_tree["apiVersion"]} | decoded
    registry.scheme.rules.default(stored_tree["apiVersion"], stored_tree["kind"], stored_tree)
    return stored_tree


async def deleted_object(registry: Registry, resource: Resource, tree: Tree, size: int) -> Tree:
    """Return a stored object in the version in which its deletion is admitted. It fails if a webhook does not convert it."""
    conversion = registry.scheme.conversion(resource)
    if conversion is None or not conversion.at_storage:
        return tree
    if conversion.remote is not None:
        return await conversion.remote.from_stored(tree)
    return await registry.worker.run(size, conversion.from_stored, tree)


async def marked_object(registry: Registry, resource: Resource, tree: Tree, size: int) -> Tree:
    """Return an object that is marked as being deleted in stored form."""
    conversion = registry.scheme.conversion(resource)
    if conversion is None or not conversion.at_storage:
        return tree
    if conversion.remote is not None:
        return await conversion.remote.to_stored(tree)
    return await registry.worker.run(size, conversion.to_stored, tree)


async def objects_for_selectors(
    registry: Registry, resource: Resource, items: Sequence[StoredObject]
) -> Sequence[StoredObject]:
    """Return stored objects as selectors match them: in the version of the resource if a webhook converts them."""
    remote = remote_conversion(registry, resource)
    return items if remote is None or not items else await remote.to_client_version(items)


def remote_conversion(registry: Registry, resource: Resource) -> RemoteConversion | None:
    """Return the conversion of objects to the version of a resource if a webhook makes it, or None."""
    conversion = registry.scheme.conversion(resource)
    return None if conversion is None else conversion.remote


def convert_locally(write: Write) -> Tree:
    """Return a valid custom object in stored form: converted, and pruned by the schema of the stored version."""
    registry, context, tree, conversion = write.registry, write.context, write.new, write.conversion
    if write.attributes.is_unpruned:
        tree = {"kind": tree["kind"], "apiVersion": tree["apiVersion"]} | decode_as(registry, tree).tree
    if conversion is not None and conversion.at_storage:
        return conversion.to_stored(tree)
    has_new_part = write.subresource == "scale"
    if has_new_part or ("status" not in tree and write.strategy.has_default_status):
        # Upstream sets defaults whenever it reads a stored object, which may have no status, and whose spec may be new.
        registry.scheme.rules.default(tree["apiVersion"], tree["kind"], tree)
    if context.body.applies:
        # An applied object has its null values until it was validated.
        decoded: Tree = decode_as(registry, tree).tree
        return {"kind": tree["kind"], "apiVersion": tree["apiVersion"]} | decoded
    return tree


async def as_read_after_store(write: Write) -> Tree:
    """Return the object of a dry run as it would be read after it was stored: without fields that the stored version lacks."""
    registry, context, conversion = write.registry, write.context, write.conversion
    if conversion is None or not conversion.at_storage:
        return write.to_store
    if conversion.remote is not None:
        return await conversion.remote.from_stored(write.to_store)
    return await registry.run(context, from_stored, registry, context.resource, write.to_store)


def from_stored(registry: Registry, resource: Resource, tree: Tree) -> Tree:
    conversion = registry.scheme.conversion(resource)
    return tree if conversion is None else conversion.from_stored(tree)


def client_version_converter(
    registry: Registry, resource: Resource
) -> Callable[[StoredObject], StoredObject] | None:
    """Return a function that converts stored objects to the version of a resource; None if they have it."""
    conversion = registry.scheme.conversion(resource)
    if conversion is None or conversion.remote is not None:
        return None

    encode = encoder(resource)
    head = b'{"kind":"%b","apiVersion":"%b",' % (resource.kind.encode(), resource.api_version.encode())

    def convert(stored: StoredObject) -> StoredObject:
        is_new = conversion.stored_before is not None and stored.revision > conversion.stored_before
        if is_new and stored.value.startswith(head):
            return stored
        return StoredObject(stored.key, encode(conversion.from_stored(stored.tree())), stored.revision)

    return convert


def tolerant_client_version_converter(
    registry: Registry, resource: Resource
) -> Callable[[StoredObject], StoredObject | None] | None:
    """Return the same function, which returns None for an object with fields of wrong types."""
    converter = client_version_converter(registry, resource)
    if converter is None:
        return None

    def tolerant(stored: StoredObject) -> StoredObject | None:
        try:
            return converter(stored)
        except WRONG_TYPE_ERRORS as error:
            registry.watch_cache.report_malformed(stored, error)
            return None

    return tolerant


def _size(stored: StoredObject) -> int:
    return len(stored.value)


_DECODED_SINCE: Final = "1.37"
"""The first minor whose storage names the object that a webhook does not convert: the gate AllowUnsafeMalformedObjectDeletion."""


async def undecodable(
    registry: Registry, stored: StoredObject, converting: Awaitable[_R], *, is_read: bool = False
) -> _R:
    """Return the result of a stored object's conversion by a webhook, whose failure is one to decode the object."""
    try:
        return await converting
    except ApiError as error:
        if registry.is_before(_DECODED_SINCE):
            raise
        problem = ApiError(f"object not decodable revision={stored.revision}: {error}")
        if is_read:
            key = stored.key.removeprefix(registry.layout.root.rstrip(b"/"))
            raise CorruptObject(key, stored.revision, problem) from error
        raise problem from error


async def _to_remote_version(
    registry: Registry,
    resource: Resource,
    remote: RemoteConversion,
    answer: ObjectResult | ListResult,
    *,
    is_read: bool,
) -> ObjectResult | ListResult:
    if isinstance(answer, ListResult):
        return replace(answer, items=await remote.to_client_version(answer.items))
    if answer.stored is not None:
        converting = remote.convert_uncached(answer.stored)
        stored = await undecodable(registry, answer.stored, converting, is_read=is_read)
        return replace(answer, stored=stored)
    tree = answer.object()
    if tree["apiVersion"] == registry.stored_row(resource).api_version and tree["kind"] == resource.kind:
        return replace(answer, tree=await remote.from_stored(tree))
    return answer


async def to_client_version(
    registry: Registry, resource: Resource, answer: ObjectResult | ListResult, *, is_read: bool = False
) -> ObjectResult | ListResult:
    """Return an answer in the version of the request; `is_read`: nothing was written."""
    remote = remote_conversion(registry, resource)
    if remote is not None:
        return await _to_remote_version(registry, resource, remote, answer, is_read=is_read)
    converter = client_version_converter(registry, resource)
    if converter is None:
        return answer
    if isinstance(answer, ListResult):
        tolerant = tolerant_client_version_converter(registry, resource)
        assert tolerant is not None
        converted = await yield_between_batches(tolerant, answer.items, size=_size, worker=registry.worker)
        return replace(answer, items=[item for item in converted if item is not None])
    if answer.stored is not None:
        try:
            stored = await registry.worker.run(_size(answer.stored), converter, answer.stored)
            return replace(answer, stored=stored)
        except WRONG_TYPE_ERRORS as error:
            raise CorruptObject(answer.stored.key, answer.stored.revision, error) from error
    tree = answer.object()
    if tree["apiVersion"] == registry.stored_row(resource).api_version and tree["kind"] == resource.kind:
        return replace(answer, tree=from_stored(registry, resource, tree))
    return answer
