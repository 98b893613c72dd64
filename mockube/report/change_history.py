"""Reads the Changes of a server back to the beginning of its history: a list has only the newest ones."""

import re
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Final

import orjson
from msgspec import Struct

from mockube.apimachinery.status import ApiError, Expired
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.verbs import Client
from mockube.control_objects import CHANGES
from mockube.moments import PATH

MAX_CHANGES: Final = 200_000
"""The changes that are read; of more, the newest ones."""
_NOT_FOLLOWED: Final = frozenset({"events", "events.events.k8s.io", "leases.coordination.k8s.io"})
"""Resources whose writes are not kept: they are many, and Events are listed."""
_BEGIN: Final = re.compile(r"begins at revision ([0-9]+)")


class ChangeHistory(Struct, kw_only=True):
    """Changes in their order, and what is not among them."""

    begin: int
    """The first revision of the history."""
    revision: int
    """The last one."""
    changes: deque[ReadOnlyTree]
    ignored: int = 0
    """The writes of Leases and Events, which are not among the changes."""
    dropped: int = 0
    """The oldest changes, which are too many."""

    def add(self, change: ReadOnlyTree) -> None:
        if change["object"]["resource"] in _NOT_FOLLOWED:
            self.ignored += 1
            return
        self.dropped += len(self.changes) == MAX_CHANGES
        self.changes.append(change)


async def read_changes(client: Client, seconds: float) -> ChangeHistory:
    begin = await _first_revision(client)
    listed = await client.list(CHANGES)
    history = ChangeHistory(
        begin=begin, revision=int(listed.resource_version), changes=deque(maxlen=MAX_CHANGES)
    )
    newest = [item["spec"] for item in listed.items]
    if newest:
        try:
            await _add_before(client, history, newest[0], seconds)
        except Expired:  # the store was compacted meanwhile
            history.begin = newest[0]["revision"]
    for change in newest:
        history.add(change)
    return history


async def _add_before(client: Client, history: ChangeHistory, first: ReadOnlyTree, seconds: float) -> None:
    """Add the changes before one: a revision may have several, of which a list has only the last ones."""
    query = {"resourceVersion": str(max(1, history.begin - 1))}  # 0 would be that of the newest ones
    async with client.watch(CHANGES, query, timeout_seconds=seconds) as stream:
        rest = b""
        async for chunk in stream.chunks():
            *lines, rest = (rest + chunk).split(b"\n")
            for change in _changes_of(lines):
                is_first = (change["revision"], change["object"]) == (first["revision"], first["object"])
                if is_first or change["revision"] > first["revision"]:
                    return
                history.add(change)


def _changes_of(lines: Iterable[bytes]) -> Iterator[ReadOnlyTree]:
    for line in filter(None, lines):
        event = orjson.loads(line)
        if event["type"] == "ERROR":
            raise Expired(event["object"].get("message", ""))
        yield event["object"]["spec"]


async def _first_revision(client: Client) -> int:
    try:
        await client.raw("GET", f"{PATH}1")
    except ApiError as error:
        found = _BEGIN.search(error.message)
        return int(found[1]) if found else 1
    return 1
