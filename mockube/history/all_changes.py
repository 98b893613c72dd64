"""All Changes of the history of a server. A list has the newest ones; what came before is read by a watch."""

from collections import deque
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from typing import Final

from msgspec import Struct, field

from mockube.apimachinery.status import Expired, Gone
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.verbs import Client
from mockube.client.wire import NoResponse
from mockube.control_objects import CHANGES, needs_control, watch_after
from mockube.moments import find_moment

MAX_CHANGES: Final = 200_000
"""The changes that are read; of more, the newest ones."""
WATCH_SECONDS: Final = 600.0
NOT_FOLLOWED: Final = frozenset({"events", "events.events.k8s.io", "leases.coordination.k8s.io"})
"""Resources whose writes are not kept: renewals are most writes of a cluster, and Events are listed."""


class AllChanges(Struct, kw_only=True):
    """The specs of Changes in their order, without a gap, and what is not among them."""

    revision: int = 0
    """The last revision of the history."""
    changes: deque[ReadOnlyTree] = field(default_factory=lambda: deque(maxlen=MAX_CHANGES))
    ignored: int = 0
    """The writes of Leases and Events, which are not among the changes."""
    dropped: int = 0
    """The oldest changes, which are too many."""
    expired: str = ""
    """Why changes before the newest ones are not known: the store was compacted while they were read."""

    def add(self, change: ReadOnlyTree) -> None:
        if change["object"]["resource"] in NOT_FOLLOWED:
            self.ignored += 1
            return
        self.dropped += len(self.changes) == self.changes.maxlen
        self.changes.append(change)

    def omitted(self) -> Iterator[str]:
        """Yield sentences about the changes that are left out."""
        if self.dropped:
            yield f"{self.dropped} changes, the oldest, are left out."
        if self.expired:
            yield f"The changes before the newest ones are left out: {self.expired}"


async def read_all_changes(client: Client, seconds: float = WATCH_SECONDS) -> AllChanges:
    """Return the Changes up to the newest one at the call. Raise NoResponse if some of them cannot be read."""
    with needs_control():
        listed = await client.list(CHANGES)
    revision, newest = int(listed.resource_version), [item["spec"] for item in listed.items]
    found = AllChanges(revision=revision)
    if newest:
        try:
            async for change in _before(client, newest[0], seconds):
                found.add(change)
        except (Expired, Gone) as error:  # what was read may end long before the newest ones
            found = AllChanges(revision=revision, expired=error.message)
    for change in newest:
        found.add(change)
    return found


async def _before(client: Client, first: ReadOnlyTree, seconds: float) -> AsyncIterator[ReadOnlyTree]:
    """Yield the changes before one: a revision may have several, of which a list has only the last ones."""
    begin = (await find_moment(client, "oldest")).revision
    version = str(max(1, begin - 1))  # a watch from 0 begins with the newest ones
    async with aclosing(watch_after(client, CHANGES, version, seconds=seconds)) as trees:
        async for tree in trees:
            change: ReadOnlyTree = tree["spec"]
            is_first = (change["revision"], change["object"]) == (first["revision"], first["object"])
            if is_first or change["revision"] > first["revision"]:
                return
            yield change
    raise NoResponse("the watch of Changes ended before all of them were read")
