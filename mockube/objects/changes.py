"""All Changes of the history of a server: a list has the newest ones, and what came before is read by a watch."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from typing import Final

from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.verbs import Client
from mockube.client.wire import NoResponse
from mockube.control_objects import CHANGES, list_changes, selector, watch_after
from mockube.moments import find_moment

CHANGES_SECONDS: Final = 600.0
"""How long the Changes before those of a list may take."""


async def list_all_changes(
    client: Client, criteria: Mapping[str, object], seconds: float = CHANGES_SECONDS
) -> Sequence[ReadOnlyTree]:
    """Return all Changes of the history that meet criteria, the oldest first."""
    newest = await list_changes(client, criteria)
    older = changes_before(client, newest[0]["spec"], criteria, seconds) if newest else None
    return newest if older is None else [*[change async for change in older], *newest]


async def changes_before(
    client: Client, first: ReadOnlyTree, criteria: Mapping[str, object], seconds: float
) -> AsyncIterator[ReadOnlyTree]:
    """Yield the Changes before one that meet criteria: a revision may have several, of which a list has only the last ones."""
    begin = (await find_moment(client, "oldest")).revision
    version = str(max(1, begin - 1))  # a watch from 0 begins with the newest ones
    written = watch_after(client, CHANGES, version, selector(criteria), seconds)
    async with aclosing(written) as trees:
        async for tree in trees:
            change: ReadOnlyTree = tree["spec"]
            is_first = (change["revision"], change["object"]) == (first["revision"], first["object"])
            if is_first or change["revision"] > first["revision"]:
                return
            yield tree
    raise NoResponse("the watch of Changes ended before all of them were read")
