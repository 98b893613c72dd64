"""Rewind: the objects of a past moment become those of the newest revision. It is posted as reviews are.

All keys go back but those of Leases, which say which programs run now: a program of then would lose its leadership to one that
ended; and but the Secrets with the files of volumes and nodes, which are those of now. Events go back, too: they are objects that tests read, and one that has expired since gets a new lifetime. An object with
the uid of another one is deleted, in a revision of its own, before that one is there: so watches see two objects.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from typing import Final

import orjson
from msgspec import Struct
from msgspec.structs import replace

from mockube.apimachinery.status import BadRequest, Details
from mockube.apimachinery.tree import Tree
from mockube.apimachinery.wellknown import NAMESPACE_SYSTEM, PREFIXES_OF_CONTENTS
from mockube.apiserver.registry.moments import Moment, Moments
from mockube.apiserver.registry.registry import OwnVerbs, Registry
from mockube.apiserver.registry.request_context import ObjectResult, RequestContext, write_options
from mockube.apiserver.registry.revisions import pages_at
from mockube.apiserver.request.snapshot_endpoint import OnRestored
from mockube.apiserver.storage.journal import Author
from mockube.apiserver.storage.stored_object import MASTER_LEASES, read_value
from mockube.component_base.counted import counted
from mockube.component_base.loop import yield_to_loop
from mockube.component_base.supervision import run_to_end
from mockube.etcd.archive.read import Archive
from mockube.etcd.embedded.store import EmbeddedStore
from mockube.etcd.errors import LeaseNotFound
from mockube.etcd.kv import KV, NO_LEASE, EventKind, LeaseId, Put, Revision, WatchRequest, prefix_end

from .kind import ControlKind
from .posted import answer_posted, read_posted, require_one
from .schemas import integer, text
from .snapshots import Snapshots
from .strategy import ControlStrategy

PAGE: Final = 1_000
"""The keys that are read at a time."""
LEASES: Final = b"leases/"
NAMESPACES: Final = b"namespaces/"
CONTENTS: Final = tuple(
    f"secrets/{NAMESPACE_SYSTEM}/{prefix}-".encode() for prefix in PREFIXES_OF_CONTENTS.values()
)
"""The Secrets with the files of volumes and nodes."""
MIN_LEASE_SECONDS: Final = 60.0
"""An Event whose lease ends earlier gets another one, so that it does not end while it is put back."""
NEEDS_EMBEDDED_STORE: Final = (
    "the store is an etcd, whose objects other servers have in their caches: it cannot be rewound; restore a snapshot with "
    "`mockube snapshot restore` while they are stopped"
)
FIELD_MANAGER: Final = "mockube-rewind"
"""The field manager of the writes of a rewind, which tells them from those of its user."""
MEMORY_OF_PROGRAMS: Final = "What controllers, scheduler and kubelets have in memory, such as back-offs and the leases of leaders, is that of now"


REWIND: Final = ControlKind(
    name="Rewind",
    plural="rewinds",
    description="Rewind makes the objects of a past moment those of the newest revision. It is created, as a review is, and not "
    "stored. Watches see the changes, and controllers follow.",
    spec={
        "description": "Where to go: `to` or `snapshot`.",
        "properties": {
            "to": text(
                "The moment: a revision, the name of a Mark, a time such as 2026-01-31T12:00:00Z, or a span "
                "before now such as -5m.",
                minLength=1,
                maxLength=253,
            ),
            "snapshot": text(
                "The name of a Snapshot, instead of a moment: it has objects that the history does not reach any more.",
                minLength=1,
                maxLength=253,
            ),
        },
    },
    is_spec_required=True,
    status={
        "description": "What was done.",
        "properties": {
            "to": integer("The revision whose objects are there again."),
            "time": text("When that revision was made, if it is known."),
            "previousRevision": integer("The newest revision before: a Rewind to it undoes this one."),
            "revision": integer("The newest revision, with the objects of the moment."),
            "created": integer("The objects that had been deleted since."),
            "changed": integer("The objects that had been changed since."),
            "deleted": integer("The objects that had been created since."),
            "replaced": integer(
                "The objects that had been deleted since, and others created with their names."
            ),
            "notRewound": {
                "type": "array",
                "items": {"type": "string"},
                "description": "What is not as it was then.",
            },
        },
    },
    columns=(),
    verbs=("create",),
    unlisted_verbs=(),
)


class Rewinds(ControlStrategy):
    kind = REWIND

    def __init__(
        self,
        cluster: Registry,
        kv: KV,
        moments: Moments,
        snapshots: Snapshots,
        on_restored: OnRestored,
    ) -> None:
        """`on_restored` are called after the objects were replaced."""
        self._cluster = cluster
        self._kv = kv
        self._moments = moments
        self._snapshots = snapshots
        self._on_restored = on_restored

    def verbs(self) -> OwnVerbs:
        return {(REWIND.group_resource, ""): {"create": self.create}}

    async def create(self, registry: Registry, context: RequestContext) -> ObjectResult:
        tree = await read_posted(registry, context, lambda spec: require_one(spec, "to", "snapshot"))
        if not isinstance(self._kv, EmbeddedStore):
            raise BadRequest(NEEDS_EMBEDDED_STORE, Details())
        spec = tree["spec"]
        name = spec.get("snapshot")
        moment = await self._moments.find(spec["to"]) if name is None else self._snapshots.moment(name)
        if write_options(context, "CreateOptions").dry_run:
            raise BadRequest("a rewind has no dry run: `mockube diff` compares a moment with now", Details())
        snapshot = None if name is None else await self._snapshots.open(name)
        entries = self._at(self._kv, moment.revision) if snapshot is None else self._in(snapshot)
        async with aclosing(entries):
            puts = [put async for put in entries]
        # What follows is not undone: it goes on if the client leaves.
        author = replace(context.author(), verb="rewind", field_manager=FIELD_MANAGER)
        work = self._replace(self._kv, moment, puts, author)
        done = await run_to_end("rewind", work)
        return answer_posted(tree, done, str(done["revision"]))

    async def _replace(self, kv: EmbeddedStore, moment: Moment, puts: Sequence[Put], author: Author) -> Tree:
        cluster, root = self._cluster, self._cluster.layout.root
        namespaces_root = root + NAMESPACES
        namespaces = {put.key.rpartition(b"/")[2] for put in puts if put.key.startswith(namespaces_root)}
        replaced = 0

        def is_excluded(key: bytes) -> bool:
            return _is_excluded(key.removeprefix(root), namespaces)

        def is_other(before: bytes, after: bytes) -> bool:
            nonlocal replaced
            has_other_uid = _uid(before) != _uid(after)
            replaced += has_other_uid
            return has_other_uid

        puts = [put for put in puts if not _is_of_now(put.key.removeprefix(root))]
        note = cluster.journal.record(author)
        revision = await kv.rewrite(root, puts, is_excluded=is_excluded, is_other=is_other, note=note)
        if revision is None:  # nothing has changed since
            newest = (await kv.status()).revision
            return _status(moment, newest, newest, Counter(), 0)
        first = revision - 1 if replaced else revision
        for each in range(first, revision + 1):
            cluster.journal.note(each, author)
        await cluster.watch_cache.wait_reached(revision)
        for callback in self._on_restored:
            await callback()
        counts = await _count_changes(kv, root, first, revision)
        return _status(moment, first - 1, revision, counts, replaced)

    async def _at(self, kv: EmbeddedStore, revision: Revision) -> AsyncGenerator[Put, None]:
        """Yield the keys of a revision."""
        root, leases = self._cluster.layout.root, _Leases(kv, self._grant_lease)
        async with aclosing(pages_at(kv, root, revision, PAGE)) as pages:
            async for page in pages:
                for each in page.kvs:
                    yield Put(key=each.key, value=each.value, lease=await leases.of(each.lease))

    async def _in(self, snapshot: Archive) -> AsyncGenerator[Put, None]:
        """Yield the keys of a Snapshot."""
        for count, entry in enumerate(await asyncio.to_thread(list, snapshot.entries())):
            if count % PAGE == PAGE - 1:
                await yield_to_loop()
            lease = await self._grant_lease() if entry.ttl else NO_LEASE
            yield Put(key=entry.key, value=entry.value, lease=lease)

    async def _grant_lease(self) -> LeaseId:
        """Return a lease for an Event that is written now."""
        managers = self._cluster.allocators.lease_managers
        for manager in managers.values():
            return await manager.lease()
        return NO_LEASE


class _Leases(Struct, frozen=True):
    """The leases of keys that expire: those of then, if they last long enough, or new ones."""

    kv: KV
    grant: Callable[[], Awaitable[LeaseId]]
    known: dict[LeaseId, bool] = {}

    async def of(self, lease: LeaseId) -> LeaseId:
        if lease == NO_LEASE:
            return NO_LEASE
        lasts = self.known.get(lease)
        if lasts is None:
            lasts = self.known[lease] = await self._lasts(lease)
        return lease if lasts else await self.grant()

    async def _lasts(self, lease: LeaseId) -> bool:
        try:
            return (await self.kv.time_to_live(lease)).remaining > MIN_LEASE_SECONDS
        except LeaseNotFound:
            return False


def _is_of_now(key: bytes) -> bool:
    """Return whether a key is not rewound: a Lease, or what has the files of a volume or a node."""
    return key.startswith((LEASES, MASTER_LEASES, *CONTENTS))


def _is_excluded(key: bytes, namespaces: set[bytes]) -> bool:
    """Return whether a key stays as it is: the Leases in namespaces that exist then, those of servers, and the files of now."""
    if key.startswith(LEASES):
        return key.split(b"/", 2)[1] in namespaces
    return key.startswith((MASTER_LEASES, *CONTENTS))


def _uid(value: bytes) -> str:
    """Return the uid of a stored object; "" if it has none, as internal data."""
    try:
        return str(orjson.loads(read_value(value))["metadata"].get("uid", ""))
    except (KeyError, ValueError, TypeError, AttributeError):
        return ""


async def _count_changes(kv: KV, root: bytes, first: Revision, last: Revision) -> Counter[str]:
    """Count what the last revision of a rewind changed, by kind of change; and its pods."""
    counts: Counter[str] = Counter()
    request = WatchRequest(key=root, range_end=prefix_end(root), start_revision=first)
    async with await kv.watch(request) as watch:
        async for batch in watch:
            for event in batch.events:
                if event.kv.mod_revision == last:
                    is_put = event.kind is EventKind.PUT
                    kind = ("created" if event.kv.version == 1 else "changed") if is_put else "deleted"
                    counts[kind] += 1
                    counts[f"pods {kind}"] += event.kv.key.startswith(b"pods/", len(root))
            if batch.revision >= last:
                break
    return counts


def _status(
    moment: Moment, previous: Revision, revision: Revision, counts: Counter[str], replaced: int
) -> Tree:
    return {
        "to": moment.revision,
        **moment.time_field(),
        "previousRevision": previous,
        "revision": revision,
        "created": counts["created"] - replaced,
        "changed": counts["changed"],
        "deleted": counts["deleted"],
        "replaced": replaced,
        "notRewound": [*_not_rewound(counts)],
    }


def _not_rewound(counts: Counter[str]) -> Sequence[str]:
    texts, of_containers = [], "the files, processes and logs of their containers are"
    if created := counts["pods created"]:
        texts.append(f"{counted(created, 'pod is', 'pods are')} there again: {of_containers} gone")
    if changed := counts["pods changed"]:
        texts.append(f"{counted(changed, 'pod was', 'pods were')} changed: {of_containers} those of now")
    return [*texts, "The files in volumes are those of now", MEMORY_OF_PROGRAMS]
