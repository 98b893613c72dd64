"""Snapshot: the objects of the cluster at a moment, kept under a name, from which a Fork or a Rewind starts.

Its content is that of a file of `mockube snapshot save`. A Mark is lost when the history is compacted; a Snapshot is kept until it
is deleted or the server ends.
"""

import asyncio
import hashlib
import io
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Final

from mockube.apimachinery import status
from mockube.apimachinery.timestamps import format_time
from mockube.apimachinery.tree import ReadOnlyTree, Tree
from mockube.apiserver.registry.create import create
from mockube.apiserver.registry.moments import NOW, Moment, Moments
from mockube.apiserver.registry.registry import OwnVerbs, Registry
from mockube.apiserver.registry.request_context import ObjectResult, RequestContext
from mockube.apiserver.registry.revisions import pieces_at_revision
from mockube.apiserver.request.endpoints import RESOURCE_VERBS
from mockube.apiserver.storage.recent_changes import Change, ChangeKind
from mockube.component_base.supervision import run_to_end
from mockube.etcd.archive.read import Archive, check
from mockube.etcd.archive.write import archive
from mockube.etcd.kv import KV

from .kind import AGE, ControlKind
from .schemas import column, integer, object_of, text
from .strategy import ControlStrategy

MAX_BYTES: Final = 256 << 20
"""The bytes of all Snapshots, which are compressed: a cluster of 100,000 objects takes about 20 MB."""
_TOO_LARGE: Final = (
    f"the Snapshots would have more than {MAX_BYTES >> 20} MiB: delete one, or use `mockube snapshot save`"
)

SNAPSHOT: Final = ControlKind(
    name="Snapshot",
    plural="snapshots",
    description="Snapshot has the objects of the cluster at one moment under a name: a Fork or a Rewind can start from it. It is kept in "
    "the memory of the server, also when the history does not reach so far any more.",
    spec=object_of(
        "Which moment. It cannot be changed.",
        {
            "at": text(
                "The moment: a revision, the name of a Mark, a time, or a span before now such as -5m. The default is now.",
                minLength=1,
                maxLength=253,
            ),
            "revision": integer("The revision that it has. The server sets it."),
            "time": text("When that revision was made, if it is known. The server sets it."),
            "objects": integer("The number of objects. The server sets it."),
            "bytes": integer("The size, compressed. The server sets it."),
            "sha256": text("The SHA-256 of its content. The server sets it."),
        },
    ),
    columns=(
        column("Revision", ".spec.revision", "The revision that it has.", type_="integer"),
        column("Objects", ".spec.objects", "The number of objects.", type_="integer"),
        column("Bytes", ".spec.bytes", "The size, compressed.", type_="integer"),
        AGE,
    ),
    verbs=("create", "delete", "get", "list", "watch"),
    max_objects=100,
)


class Snapshots(ControlStrategy):
    kind = SNAPSHOT
    prefix: bytes

    def __init__(self, cluster: Registry, kv: KV, moments: Moments) -> None:
        self._cluster, self._kv, self._moments = cluster, kv, moments
        self._data: dict[str, bytes] = {}
        """The contents by their SHA-256: those of all objects, and of one that is being created."""
        self._creating = asyncio.Lock()
        """Held until the object is in the cache: no content is dropped meanwhile."""

    async def begin(self, registry: Registry) -> None:
        self._registry = registry
        self._objects = registry.resource_cache(SNAPSHOT.group_resource)
        self.prefix = self._objects.prefix
        self._objects.watchers.add(self)

    def verbs(self) -> OwnVerbs:
        return {(SNAPSHOT.group_resource, ""): {**RESOURCE_VERBS, "create": self.create}}

    async def create(self, registry: Registry, context: RequestContext) -> ObjectResult:
        await self._creating.acquire()
        try:
            return await create(registry, context)
        finally:
            await run_to_end("snapshot-contents", self._end_create(registry))

    async def _end_create(self, registry: Registry) -> None:
        """Drop what was refused or was a dry run, once it is known what was stored."""
        try:
            await registry.watch_cache.fresh()
            self._drop_unused()
        finally:
            self._creating.release()

    def _drop_unused(self) -> None:
        used = {stored.tree()["spec"]["sha256"] for stored in self._objects}
        self._data = {digest: data for digest, data in self._data.items() if digest in used}

    async def prepare(self, new: Tree, _old: ReadOnlyTree | None) -> Tree:
        spec = new.get("spec") or {}
        at = spec.get("at", NOW) if isinstance(spec, dict) else None
        if not isinstance(at, str) or not at:
            return new
        moment = await self._moments.find(at)
        data = await self._take(moment)
        found = await asyncio.to_thread(check, io.BytesIO(data), "snapshot")
        digest = hashlib.sha256(data).hexdigest()
        self._data[digest] = data
        of_client = {name: value for name, value in spec.items() if name != "time"}
        of_server = {
            "revision": moment.revision,
            **moment.time_field(),
            "objects": found.count,
            "bytes": len(data),
        }
        return {**new, "spec": {**of_client, **of_server, "sha256": digest}}

    async def _take(self, moment: Moment) -> bytes:
        parts, size = list[bytes](), 0
        used = sum(map(len, self._data.values()))
        async with aclosing(self.pieces(moment)) as pieces:
            async for piece in pieces:
                parts.append(piece)
                size += len(piece)
                if used + size > MAX_BYTES:
                    raise status.forbidden(SNAPSHOT.group_resource, "", _TOO_LARGE)
        return b"".join(parts)

    def pieces(self, moment: Moment) -> AsyncGenerator[bytes, None]:
        """Yield the content of a Snapshot of a moment."""
        taken_at, root = format_time(self._cluster.clock.now()), self._cluster.layout.root
        return pieces_at_revision(archive(self._kv, root, taken_at=taken_at, revision=moment.revision))

    def handle_change(self, change: Change) -> None:
        if change.kind is ChangeKind.DELETED and not self._creating.locked():
            self._drop_unused()

    def handle_missed_change(self) -> None:
        """Do nothing: only this server writes Snapshots."""

    def moment(self, name: str) -> Moment:
        """Return the moment of a Snapshot; raise NotFound if there is none of this name."""
        return Moment.of_spec(self._spec(name))

    def data(self, name: str) -> bytes:
        """Return the content of a Snapshot; raise NotFound if there is none of this name."""
        return self._data[self._spec(name)["sha256"]]

    def _spec(self, name: str) -> ReadOnlyTree:
        stored = self._registry.find_cached(SNAPSHOT.group_resource, "", name)
        if stored is None:
            raise status.not_found(SNAPSHOT.group_resource, name)
        spec: ReadOnlyTree = stored.tree()["spec"]
        return spec

    async def open(self, name: str) -> Archive:
        return await asyncio.to_thread(check, io.BytesIO(self.data(name)), name)
