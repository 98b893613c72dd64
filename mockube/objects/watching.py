"""Watches of objects, without a cache: of one object, or of all objects of a resource."""

from collections.abc import AsyncIterator

from mockube.apimachinery.tree import ReadOnlyTree
from mockube.controller_manager.cache.reflector import parse_watch_event, split_lines
from mockube.controller_manager.client.client import Client, Parsed
from mockube.controller_manager.client.resources import Key, Resource


async def watch_objects(
    client: Client, resource: Resource[ReadOnlyTree], key: Key | None, *, seconds: float
) -> AsyncIterator[tuple[str, Parsed]]:
    """Yield the event's type and the object, now and after each change, until the watch ends; all objects without a key."""
    query = {"fieldSelector": selector(resource, key) if key else ""}
    async with client.watch(resource, query, timeout_seconds=seconds) as stream:
        async for batch in split_lines(stream.chunks()):
            for line in batch:
                event_type, tree, _ = parse_watch_event(line)
                yield event_type, tree


def selector(resource: Resource[ReadOnlyTree], key: Key) -> str:
    """Return the field selector of one object."""
    namespace_selector = f",metadata.namespace={key.namespace}" if resource.namespaced else ""
    return f"metadata.name={key.name}{namespace_selector}"
