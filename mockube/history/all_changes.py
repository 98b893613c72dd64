"""The Changes of the history of a server that a report has."""

from collections import deque
from collections.abc import Iterator
from typing import Final

from msgspec import Struct, field

from mockube.apimachinery.status import Expired, Gone
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.verbs import Client
from mockube.control_objects import CHANGES, needs_control
from mockube.objects.changes import CHANGES_SECONDS, changes_before

MAX_CHANGES: Final = 200_000
"""The changes that are read; of more, the newest ones."""
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


async def read_all_changes(client: Client, seconds: float = CHANGES_SECONDS) -> AllChanges:
    """Return the Changes up to the newest one at the call. Raise NoResponse if some of them cannot be read."""
    with needs_control():
        listed = await client.list(CHANGES)
    revision, newest = int(listed.resource_version), [item["spec"] for item in listed.items]
    found = AllChanges(revision=revision)
    if newest:
        try:
            async for tree in changes_before(client, newest[0], {}, seconds):
                found.add(tree["spec"])
        except (Expired, Gone) as error:  # what was read may end long before the newest ones
            found = AllChanges(revision=revision, expired=error.message)
    for change in newest:
        found.add(change)
    return found
