"""Watches of objects, without a cache: of one object, or of all objects of a resource."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Final, TypeVar

from mockube.apimachinery.status import (
    Expired,
    Gone,
    ServerTimeout,
    ServiceUnavailable,
    Timeout,
    TooManyRequests,
)
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.cache.reflector import parse_watch_event, split_lines
from mockube.client.resources import Key, Resource
from mockube.client.verbs import Client, Parsed
from mockube.component_base.clock import Clock

T = TypeVar("T")

RETRY_SECONDS: Final = 0.2
"""The time after which a watch that the server could not serve is sent again."""
_TEMPORARY: Final = (Expired, Gone, ServerTimeout, ServiceUnavailable, Timeout, TooManyRequests)


async def watch_objects(
    client: Client, resource: Resource[ReadOnlyTree], key: Key | None, *, clock: Clock, seconds: float
) -> AsyncGenerator[tuple[str, Parsed], None]:
    """Yield the event's type and the object, now and after each change, of the objects of a key, or of all without one.

    Close the generator with `aclosing`. The watch is sent again when it ends, after `seconds` or earlier, and when the server cannot serve it now.
    """
    while True:
        try:
            async with aclosing(_watch_once(client, resource, key, seconds)) as events:
                async for event in events:
                    yield event
        except _TEMPORARY:
            await clock.sleep(RETRY_SECONDS)


async def repeat_last(events: AsyncGenerator[T, None], seconds: float) -> AsyncGenerator[T, None]:
    """Yield events, and the last one again after each time without another one.

    Close the generator with `aclosing`, which closes the generator of the events, too.
    """
    last: list[T] = []
    async with aclosing(events):
        while True:
            following = asyncio.ensure_future(anext(events))  # noqa: TID251 - it is awaited below
            try:
                while not (await asyncio.wait({following}, timeout=seconds if last else None))[0]:
                    yield last[0]
            finally:
                following.cancel()
                await asyncio.wait({following})  # so that the events can be closed
            last = [following.result()]
            yield last[0]


async def _watch_once(
    client: Client, resource: Resource[ReadOnlyTree], key: Key | None, seconds: float
) -> AsyncGenerator[tuple[str, Parsed], None]:
    query = {"fieldSelector": selector(resource, key) if key else ""}
    async with client.watch(resource, query, timeout_seconds=seconds) as stream:
        async for batch in split_lines(stream.chunks()):
            for line in batch:
                event_type, tree, _ = parse_watch_event(line)
                yield event_type, tree


def selector(resource: Resource[ReadOnlyTree], key: Key) -> str:
    """Return the field selector of one object, or without a namespace of the objects with its name in all namespaces."""
    namespace_selector = (
        f",metadata.namespace={key.namespace}" if resource.namespaced and key.namespace else ""
    )
    return f"metadata.name={key.name}{namespace_selector}"
