"""The journal of a server: who made which revision of the store, and when.

Writes of requests go through `Journal.commit`, which notes their author under the revision that the store returned; a restore and a
Rewind, which write many revisions at once, are noted with `record`.
Revisions of other servers of the same etcd, and those in which keys expire, have no entry. The journal is in memory, and has
its own limits: it neither keeps history from being compacted nor, without --history, is it shortened by that. An embedded
store on a disk keeps the entries beside the revisions, so that they survive a restart.
"""

import asyncio
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Iterable, Sequence
from itertools import islice
from sys import getsizeof, intern
from typing import Any, Final, Self, TypeAlias

from msgspec import Struct
from msgspec.structs import force_setattr

from mockube.component_base.clock import Clock, ClusterClock
from mockube.etcd.kv import KV, DeleteResult, PutResult, Revision, Txn, TxnResult

MAX_ENTRIES: Final = 50_000
"""The maximum number of entries, which usually have about 200 bytes each; the oldest are dropped."""
MAX_BYTES: Final = 32 << 20
"""The maximum of bytes of all entries, if clients send long texts. Shared texts count in each entry: it is an upper bound."""
MAX_TEXT: Final = 1024
"""The maximum number of characters of each field, as of a user agent in the audit log; the rest is cut off."""
MAX_SEARCHED: Final = 256
"""The number of newest entries among which those of a request are looked for when it ends."""


NoteOfStore: TypeAlias = tuple[float, str, str, str, str, str, str]
"""An entry as a store keeps it: its time and the fields of its author."""


class Author(Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True, rename="camel"):
    """Who made a write, as plain data: the request, as the audit log names it, and the field manager of the object."""

    user: str
    agent: str = ""
    verb: str
    subresource: str = ""
    field_manager: str = ""
    """"" for a write that has none, such as a deletion."""
    audit_id: str = ""
    """The id of the request in the audit log; "" for a write that no request has caused."""

    @classmethod
    def of(
        cls, *, user: str, agent: str, verb: str, subresource: str = "", manager: str = "", audit_id: str = ""
    ) -> Self:
        """Return the author of a request, whose texts a client chooses. Users and agents are few, and are stored once."""
        return cls(
            user=intern(user[:MAX_TEXT]),
            agent=intern(agent[:MAX_TEXT]),
            verb=verb,
            subresource=subresource,
            field_manager=intern(manager[:MAX_TEXT]),
            audit_id=audit_id[:MAX_TEXT],
        )


class JournalEntry(Struct, frozen=True, gc=False):
    revision: Revision
    author: Author
    bytes: int
    time: float
    """When the write began, in seconds since 1970 of the cluster's clock. It never decreases from an entry to the next."""


class Journal:
    """The authors of the newest revisions that this server made."""

    def __init__(
        self,
        clock: Clock | None = None,
        *,
        max_entries: int = MAX_ENTRIES,
        max_bytes: int = MAX_BYTES,
        keeps_notes: bool = False,
    ) -> None:
        """`keeps_notes`: the store keeps the entries beside the revisions."""
        self._keeps_notes = keeps_notes
        self._now = (clock or ClusterClock()).now
        self._entries: deque[JournalEntry] = deque()
        self._max_entries = max_entries
        self._max_bytes = max_bytes
        self.bytes = 0
        """The bytes of all entries."""
        self._write_count = 0
        self._in_progress: set[int] = set()
        """The numbers of the writes whose authors are noted when they end."""
        self._waiting: list[asyncio.Future[None]] = []

    async def commit(self, kv: KV, transaction: Txn, author: Author) -> TxnResult:
        """Execute a transaction; if it makes a revision, note its author."""
        time = self._now().timestamp()
        if self._keeps_notes:
            force_setattr(transaction, "note", _note(time, author))  # nobody else has it yet
        self._write_count = number = self._write_count + 1
        self._in_progress.add(number)
        try:
            result = await kv.txn(transaction)
            if result.succeeded and _makes_revision(result):
                self.note(result.revision, author, time=time)
            return result
        finally:
            self._in_progress.discard(number)
            if self._waiting:
                self._wake()

    async def wait_noted(self, revision: Revision) -> None:
        """Wait until the author of a revision is noted, or until it is known that this server did not make it.

        Watches may get a revision before its writer goes on: then it is one of the writes that are in progress now.
        """
        last = self._write_count
        while self.author(revision) is None and any(number <= last for number in self._in_progress):
            self._waiting.append(asyncio.get_running_loop().create_future())
            await self._waiting[-1]

    def _wake(self) -> None:
        waiting, self._waiting = self._waiting, []
        for each in waiting:
            if not each.done():
                each.set_result(None)

    def record(self, author: Author) -> "NoteOfStore":
        """Return what a store on a disk keeps of an author, for a revision that begins now."""
        return _note(self._now().timestamp(), author)

    def restore(self, notes: Iterable[tuple[Revision, Any]]) -> None:
        """Add the entries that a store has kept, the oldest first.

        A time in the future, of a clock that was advanced before a restart, becomes the present: later entries would have it, too.
        """
        now = self._now().timestamp()
        for revision, (time, user, agent, verb, subresource, manager, audit_id) in notes:
            author = Author.of(
                user=user,
                agent=agent,
                verb=intern(verb),
                subresource=intern(subresource),
                manager=manager,
                audit_id=audit_id,
            )
            self.note(revision, author, time=min(time, now))

    def note(self, revision: Revision, author: Author, *, time: float | None = None) -> None:
        """Note the author of a revision; one that has an author keeps it."""
        entries = self._entries
        time = self._now().timestamp() if time is None else time
        if not entries or entries[-1].revision < revision:
            if entries and entries[-1].time > time:  # the machine's date was set back
                time = entries[-1].time
            entry = JournalEntry(revision, author, _size(author), time)
            entries.append(entry)
        else:  # an etcd has returned the response of a newer one first
            position = bisect_left(entries, revision, key=_revision)
            if entries[position].revision == revision:
                return
            entry = JournalEntry(revision, author, _size(author), entries[position].time)
            entries.insert(position, entry)
        self.bytes += entry.bytes
        while len(entries) > self._max_entries or self.bytes > self._max_bytes:
            self.bytes -= entries.popleft().bytes

    def forget_before(self, revision: Revision) -> None:
        """Drop the entries of older revisions."""
        entries = self._entries
        while entries and entries[0].revision < revision:
            self.bytes -= entries.popleft().bytes

    def entries(self) -> Sequence[JournalEntry]:
        """Return all entries, the oldest first."""
        return [*self._entries]

    def newest_at(self, time: float) -> JournalEntry | None:
        """Return the newest entry that is not after a time, in seconds since 1970; None if all are newer."""
        after = bisect_right(self._entries, time, key=_time)
        return self._entries[after - 1] if after else None

    def newest(self) -> JournalEntry | None:
        return self._entries[-1] if self._entries else None

    def newest_of(self, revision: Revision) -> JournalEntry | None:
        """Return the entry of a revision, or the newest one before it."""
        after = bisect_right(self._entries, revision, key=_revision)
        return self._entries[after - 1] if after else None

    def oldest_from(self, revision: Revision) -> JournalEntry | None:
        """Return the entry of a revision, or the oldest one after it."""
        position = bisect_left(self._entries, revision, key=_revision)
        return self._entries[position] if position < len(self._entries) else None

    def author(self, revision: Revision) -> Author | None:
        """Return the author of a revision; None if another server made it, or if it is not in the journal any more."""
        position = bisect_left(self._entries, revision, key=_revision)
        found = self._entries[position] if position < len(self._entries) else None
        return found.author if found is not None and found.revision == revision else None

    def revision_of(self, audit_id: str) -> Revision:
        """Return the last revision of a request that has just ended; 0 if it is not among the newest entries."""
        audit_id = audit_id[:MAX_TEXT]
        newest = islice(reversed(self._entries), MAX_SEARCHED)
        return next((entry.revision for entry in newest if entry.author.audit_id == audit_id), 0)


def _note(time: float, author: Author) -> NoteOfStore:
    return (
        time,
        author.user,
        author.agent,
        author.verb,
        author.subresource,
        author.field_manager,
        author.audit_id,
    )


def _time(entry: JournalEntry) -> float:
    return entry.time


def _revision(entry: JournalEntry) -> Revision:
    return entry.revision


def _makes_revision(result: TxnResult) -> bool:
    """Return whether a transaction has changed something: a deletion of keys that do not exist has not."""
    for each in result.results:  # the first one decides nearly always
        if isinstance(each, PutResult) or (isinstance(each, DeleteResult) and each.deleted):
            return True
    return False


def _size(author: Author) -> int:
    """Return the bytes of an entry. Texts that several entries share are counted in each of them."""
    texts = getsizeof(author.user) + getsizeof(author.agent) + getsizeof(author.field_manager)
    return _FIXED_BYTES + texts + getsizeof(author.audit_id)


_FIXED_BYTES: Final = 190
"""The bytes of an entry besides its texts."""
