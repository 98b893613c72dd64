"""Change: a write to the store: which object, by whom, and the patch against the version before.

Changes are read from the history of the store, and their authors from the journal: nothing more is kept. Who may list changes
sees those of the kinds and namespaces that they may list; the values of Secrets are never shown.
"""

import re
from bisect import bisect_right
from collections import deque
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from datetime import UTC, datetime
from functools import partial
from hashlib import blake2b
from typing import Final

import orjson
from msgspec import Struct

from mockube.apimachinery import meta
from mockube.apimachinery.groups import NAMESPACES, SECRETS
from mockube.apimachinery.patch.json_difference import difference
from mockube.apimachinery.secrets import masked
from mockube.apimachinery.status import Expired
from mockube.apimachinery.timestamps import format_micro_time, format_time
from mockube.apimachinery.tree import ReadOnlyTree, Tree
from mockube.apiserver import fields
from mockube.apiserver.authz.rbac.policy import RBACPolicy
from mockube.apiserver.event_loop import QUICK_SLICE
from mockube.apiserver.fields import FieldSelectorError, Term, selectable
from mockube.apiserver.kinds.api_resource import Resource
from mockube.apiserver.registry.registry import Registry
from mockube.apiserver.registry.request_context import RequestContext
from mockube.apiserver.registry.revisions import at_revision, history_start
from mockube.apiserver.storage.journal import Author, JournalEntry
from mockube.apiserver.storage.stored_object import (
    StoredObject,
    UnreadableValue,
    canonical_custom,
    read_value,
)
from mockube.component_base.loop import yield_to_loop
from mockube.etcd.errors import Compacted, WatcherTooSlow
from mockube.etcd.kv import Event, EventKind, KeyValue, Range, Revision, WatchRequest, prefix_end

from .access import UserRights
from .kind import AGE, API_VERSION, ControlKind
from .records import TOO_OLD, VERBS, Listed, Record, RecordStrategy
from .schemas import column, integer, object_of, text
from .served_names import check_served_kind, check_served_resource

MAX_PATCH_BYTES: Final = 32 * 1024
"""A larger patch is not shown."""
_NAME: Final = re.compile(r"([0-9]{1,19})-[0-9a-f]{12}")
ADDED: Final = "ADDED"
CHANGE_TYPES: Final = (ADDED, "MODIFIED", "DELETED")
_TYPES: Final = {(EventKind.PUT, False): ADDED, (EventKind.PUT, True): "MODIFIED"}

CHANGE: Final = ControlKind(
    name="Change",
    plural="changes",
    description="Change is a write to the store of the cluster. Only changes of kinds and namespaces that the user may list are shown. "
    "How far they reach is set by --history.",
    spec={
        "description": "The change, and who made it.",
        "properties": {
            "revision": integer("The revision of the store that the write made."),
            "time": text("When it was written; absent if another server wrote it.", format="date-time"),
            "type": text("What happened to the object.", enum=[*CHANGE_TYPES]),
            "object": object_of(
                "The object that was written.",
                {
                    "apiVersion": text("The version in which it is stored."),
                    "kind": text("Its kind."),
                    "resource": text("The plural of its kind with the group, such as deployments.apps."),
                    "namespace": text("Its namespace."),
                    "name": text("Its name."),
                    "uid": text("Its uid."),
                },
            ),
            "author": object_of(
                "Who wrote it; absent if another server did, or if it is too long ago.",
                {
                    "user": text(
                        "The name of the user; system:apiserver for a write that no request caused."
                    ),
                    "agent": text("The User-Agent."),
                    "manager": text("The field manager."),
                    "verb": text(
                        "The verb of the request; rewind for a write of a Rewind, and restore for one of a restored snapshot."
                    ),
                    "subresource": text("The subresource of the request."),
                    "auditID": text("The id of the request, by which Requests have it, too."),
                },
            ),
            "patch": {
                "type": "array",
                "description": "The JSON patch that makes the object of what it was, without its managed fields. The values of "
                "Secrets are masked.",
                "items": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
            },
            "patchOmitted": text("Why there is no patch."),
        },
    },
    columns=(
        column("Type", ".spec.type", "What happened to the object."),
        column("Kind", ".spec.object.kind", "The kind of the object."),
        column("Namespace", ".spec.object.namespace", "The namespace of the object."),
        column("Object", ".spec.object.name", "The name of the object."),
        column("User", ".spec.author.user", "Who wrote it."),
        column("Manager", ".spec.author.manager", "The field manager.", priority=1),
        column("Agent", ".spec.author.agent", "The User-Agent.", priority=1),
        AGE,
    ),
    selectable=(
        selectable("kind", "spec.object.kind"),
        selectable("resource", "spec.object.resource"),
        selectable("namespace", "spec.object.namespace"),
        selectable("name", "spec.object.name"),
        selectable("uid", "spec.object.uid"),
        selectable("user", "spec.author.user"),
        selectable("manager", "spec.author.manager"),
        selectable("type", "spec.type"),
        selectable("auditID", "spec.author.auditID"),
    ),
    verbs=VERBS,
    unlisted_verbs=(),
)


class _Written(Struct, frozen=True, kw_only=True):
    """An event of the store, and the place of its object."""

    event: Event
    row: Resource
    namespace: str
    name: str


class ObjectWrite(Struct, frozen=True, kw_only=True):
    """A write of one object: what it was and what it became, with the values of a Secret."""

    revision: Revision
    type: str
    time: str
    author: Tree
    before: ReadOnlyTree | None
    after: ReadOnlyTree | None


class _Scope(Struct, frozen=True, kw_only=True):
    """The keys of the changes that a field selector may select."""

    key: bytes
    range_end: bytes | None


class Changes(RecordStrategy):
    """The history of the cluster as objects."""

    kind = CHANGE

    def __init__(self, cluster: Registry, max_changes: int, policy: RBACPolicy) -> None:
        super().__init__(cluster.layout.root)
        self._cluster, self._max_changes, self._policy = cluster, max_changes, policy
        self.of_control: Changes = self
        """The history of the objects of the group, which is short."""

    async def begin(self, registry: Registry) -> None:
        self.of_control = Changes(registry, self._max_changes, self._policy)

    @property
    def newest(self) -> int:
        return self._cluster.watch_cache.revision

    def check_term(self, term: Term) -> None:
        rows = self._cluster.rows.values()
        if term.field == "type" and term.value not in CHANGE_TYPES:
            raise ValueError(f'"{term.value}" is not a type, must be one of {", ".join(CHANGE_TYPES)}')
        if term.field == "kind":
            check_served_kind(term.value, rows)
        if term.field == "resource":
            check_served_resource(term.value, rows, with_group=True)

    # --- reading

    async def find(self, context: RequestContext) -> StoredObject | None:
        parts = _NAME.fullmatch(context.name)
        if parts is None:
            return None
        revision, rights = int(parts[1]), UserRights(self._cluster, self._policy, context)
        if revision > await self._cluster.watch_cache.fresh():
            return None
        async with aclosing(self._history(self._whole(), revision, revision)) as history:
            async for written in history:
                if _name_of(written) == context.name and await rights.may(
                    "list", written.row.group_resource, written.namespace
                ):
                    return self._stored(written)
        return None

    async def all(self, context: RequestContext, version: int | None = None) -> tuple[int, Sequence[Listed]]:
        head = await self._cluster.watch_cache.fresh()
        head = head if version is None else min(head, version)
        scope, rights = self._scope(context), UserRights(self._cluster, self._policy, context)
        found: deque[_Written] = deque(maxlen=self._max_changes)
        begin = self._begin(scope, head)
        is_cut = begin > await history_start(self._cluster.kv)
        async for written in self._history(scope, begin, head):
            if await rights.may("list", written.row.group_resource, written.namespace):
                is_cut |= len(found) == self._max_changes
                found.append(written)
        if is_cut and version is None:
            context.report.warn(
                f"older changes are left out: a list has the newest {self._max_changes} (--control-changes), and a watch from an "
                "earlier resourceVersion has all of its time"
            )
        return head, [Listed(_name_of(written), partial(self._build, written)) for written in found]

    async def _build(self, written: _Written) -> StoredObject:
        return self._stored(written)

    def of_object(self, row: Resource, namespace: str, name: str) -> AsyncGenerator[ObjectWrite, None]:
        """Yield the writes of one object in the history, the oldest first, also of those before it that had its name."""
        return self._writes(_Scope(key=self._cluster.layout.object(row, namespace, name), range_end=None))

    def of_resource(self, row: Resource) -> AsyncGenerator[ObjectWrite, None]:
        """Yield the writes of all objects of a resource in the history, the oldest first."""
        return self._writes(self._all_of(row, ""))

    async def _writes(self, scope: _Scope) -> AsyncGenerator[ObjectWrite, None]:
        head = await self._cluster.watch_cache.fresh()
        async with aclosing(self._history(scope, 0, head)) as history:
            async for written in history:
                event, entry = written.event, self._entry_of(written)
                yield ObjectWrite(
                    revision=event.kv.mod_revision,
                    type=_type_of(event),
                    time="" if entry is None else _time_of(entry),
                    author={} if entry is None else _author(entry.author),
                    before=_tree_of(event.previous),
                    after=None if event.kind is EventKind.DELETE else _tree_of(event.kv),
                )

    async def missing(self, context: RequestContext, items: Sequence[StoredObject]) -> str:
        start = await history_start(self._cluster.kv)
        is_object = self._scope(context).range_end is None
        if not start or (is_object and items and items[0].tree()["spec"]["type"] == ADDED):
            return ""
        if not await self._had_namespaces_at(start):
            return ""
        entry = self._cluster.journal.oldest_from(start)
        time = "" if entry is None else f", {format_time(datetime.fromtimestamp(entry.time, UTC))}"
        return f"changes before revision {start}{time} are gone: --history sets how much is kept"

    async def _had_namespaces_at(self, revision: Revision) -> bool:
        """Whether there was a cluster at a revision: a new store begins after a revision that has nothing, and nothing is gone."""
        prefix = self._cluster.layout.scope(self._cluster.rows[NAMESPACES], "")
        request = Range(key=prefix, range_end=prefix_end(prefix), revision=revision, count_only=True)
        return (await at_revision(self._cluster.kv.range(request))).count > 0

    async def follow(
        self, version: int, context: RequestContext
    ) -> AsyncGenerator[tuple[int, Sequence[Record]], None]:
        scope, rights = self._scope(context), UserRights(self._cluster, self._policy, context)
        request = WatchRequest(
            key=scope.key, range_end=scope.range_end, start_revision=version + 1, previous=True
        )
        try:
            async with await self._cluster.kv.watch(request) as watch:
                async for batch in watch:
                    await yield_to_loop()  # a rewind notes its author after its revision is published
                    await self._cluster.journal.wait_noted(batch.revision)
                    written = [
                        each
                        for each in self._located(batch.events)
                        if await rights.may("list", each.row.group_resource, each.namespace)
                    ]
                    yield batch.revision, [Record(self._stored(each)) for each in written]
        except (Compacted, WatcherTooSlow) as error:
            raise Expired(TOO_OLD) from error

    async def _history(
        self, scope: _Scope, first: Revision, last: Revision
    ) -> AsyncGenerator[_Written, None]:
        """Yield the events of revisions, of those that are readable."""
        await self._cluster.journal.wait_noted(last)
        first = max(first, await history_start(self._cluster.kv) + 1)
        if first > last:
            return
        request = WatchRequest(
            key=scope.key, range_end=scope.range_end, start_revision=first, previous=True, progress=True
        )
        try:
            async with await self._cluster.kv.watch(request) as watch:
                await watch.request_progress()
                async for batch in watch:
                    for position, written in enumerate(self._located(batch.events)):
                        if position % QUICK_SLICE == QUICK_SLICE - 1:
                            await yield_to_loop()
                        if written.event.kv.mod_revision <= last:
                            yield written
                    if batch.revision >= last:
                        return
        except (Compacted, WatcherTooSlow) as error:  # meanwhile
            raise Expired(TOO_OLD) from error

    def _begin(self, scope: _Scope, last: Revision) -> Revision:
        """Return the first revision to look at: without a selector of a kind, the last ones that are enough for the limit."""
        entries = self._cluster.journal.entries()
        first = bisect_right(entries, last, key=lambda entry: entry.revision) - self._max_changes
        return 0 if scope.key != self._whole().key or first <= 0 else entries[first].revision

    def _whole(self) -> _Scope:
        root = self._cluster.layout.root
        return _Scope(key=root, range_end=prefix_end(root))

    def _scope(self, context: RequestContext) -> _Scope:
        """Return the keys that the field selector of a request leaves: those of a kind, in a namespace, or one."""
        try:
            selector = fields.parse(context.parameter("fieldSelector"))
        except FieldSelectorError:
            return self._whole()
        kind, resource = selector.requires_exact_match("kind"), selector.requires_exact_match("resource")
        rows = [
            row
            for name, row in self._cluster.rows.items()
            if not row.virtual and (row.kind == kind or str(name) == resource)
        ]
        if len({row.folder for row in rows}) != 1:
            return self._whole()
        row, layout = rows[0], self._cluster.layout
        namespace = selector.requires_exact_match("namespace") or ""
        name = selector.requires_exact_match("name") or ""
        if name and "/" not in name and (namespace or not row.namespaced):
            return _Scope(key=layout.object(row, namespace, name), range_end=None)
        return self._all_of(row, namespace if row.namespaced else "")

    def _all_of(self, row: Resource, namespace: str) -> _Scope:
        prefix = self._cluster.layout.scope(row, namespace)
        return _Scope(key=prefix, range_end=prefix_end(prefix))

    def _located(self, events: Sequence[Event]) -> Sequence[_Written]:
        """Return the events of objects, with their kinds."""
        root, found = self._cluster.layout.root, list[_Written]()
        by_kind = sorted(self._cluster.rows.values(), key=lambda row: not row.virtual)
        rows = {row.folder: row for row in by_kind}  # those of the control group are stored elsewhere
        for event in events:
            first, *rest = event.kv.key.removeprefix(root).split(b"/")
            row = rows.get(first + b"/")
            if row is None and rest:
                row, rest = rows.get(first + b"/" + rest[0] + b"/"), rest[1:]
            if row is not None and rest:
                *namespace, name = (part.decode(errors="replace") for part in rest)
                found.append(_Written(event=event, row=row, namespace="/".join(namespace), name=name))
        return found

    # --- building

    def _stored(self, written: _Written) -> StoredObject:
        event, name = written.event, _name_of(written)
        revision = event.kv.mod_revision
        entry = self._entry_of(written)
        spec: Tree = {"revision": revision, "type": _type_of(event), "object": _object_of(written)}
        if entry is not None:
            spec |= {"time": _time_of(entry), "author": _author(entry.author)}
        spec |= _patch_of(written)
        metadata: Tree = {"name": name, "uid": name}
        if entry is not None:
            metadata["creationTimestamp"] = format_time(datetime.fromtimestamp(entry.time, UTC))
        tree = {"kind": CHANGE.name, "apiVersion": API_VERSION, "metadata": metadata, "spec": spec}
        return StoredObject(self._prefix + name.encode(), canonical_custom(tree), revision)

    def _entry_of(self, written: _Written) -> JournalEntry | None:
        revision = written.event.kv.mod_revision
        entry = self._cluster.journal.newest_of(revision)
        return entry if entry is not None and entry.revision == revision else None


def _time_of(entry: JournalEntry) -> str:
    return format_micro_time(datetime.fromtimestamp(entry.time, UTC))


def _name_of(written: _Written) -> str:
    """Return the name of a Change: a revision may change many keys, of which a request may read a part."""
    kv = written.event.kv
    return f"{kv.mod_revision}-{blake2b(kv.key, digest_size=6).hexdigest()}"


def _type_of(event: Event) -> str:
    return _TYPES.get((event.kind, event.previous is not None), "DELETED")


def _tree_of(kv: KeyValue | None) -> ReadOnlyTree | None:
    """Return a stored object without its managed fields; None if there is none that can be read."""
    if kv is None:
        return None
    try:
        tree: Tree = orjson.loads(read_value(kv.value))
    except (UnreadableValue, orjson.JSONDecodeError):
        return None
    return {
        **tree,
        "metadata": {name: value for name, value in tree["metadata"].items() if name != "managedFields"},
    }


def _object_of(written: _Written) -> Tree:
    event = written.event
    tree = _tree_of(event.previous if event.kind is EventKind.DELETE else event.kv)
    head: Tree = {"apiVersion": written.row.api_version, "kind": written.row.kind}
    if tree is not None:
        head = {"apiVersion": tree["apiVersion"], "kind": tree["kind"], "uid": meta.uid(tree)}
    named = {
        "resource": str(written.row.group_resource),
        "namespace": written.namespace,
        "name": written.name,
    }
    return {**head, **{field: value for field, value in named.items() if value}}


def _author(author: Author) -> Tree:
    tree = {
        "user": author.user,
        "agent": author.agent,
        "manager": author.field_manager,
        "verb": author.verb,
        "subresource": author.subresource,
        "auditID": author.audit_id,
    }
    return {field: value for field, value in tree.items() if value}


def _patch_of(written: _Written) -> Tree:
    event = written.event
    before = _tree_of(event.previous)
    after = None if event.kind is EventKind.DELETE else _tree_of(event.kv)
    if after is None and event.kind is not EventKind.DELETE:
        return {"patchOmitted": "the object cannot be read"}
    if before is None:
        patch = [{"op": "add", "path": "", "value": after}]
    elif after is None:
        patch = [{"op": "remove", "path": ""}]
    else:
        patch = difference(before, after)
    if written.row.group_resource == SECRETS:
        patch = [_masked(operation) for operation in patch]
    if len(orjson.dumps(patch)) > MAX_PATCH_BYTES:
        return {"patchOmitted": f"it is larger than {MAX_PATCH_BYTES} bytes"}
    return {"patch": patch}


def _masked(operation: Tree) -> Tree:
    """Return an operation on a Secret without its secret values; their names stay."""
    if "value" not in operation:
        return operation
    parts = operation["path"].split("/")[1:]
    return {**operation, "value": masked(operation["value"], parts)}
