"""Collects what an explanation reads, with the rights of the user who asks for it.

Each question is authorized as the request would be that reads the same: what the user may not read is refused, and stays out.
"""

from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from functools import partial
from typing import Any, Final, Protocol

from msgspec import Struct
from msgspec.structs import asdict

from mockube.apimachinery import meta
from mockube.apimachinery.groups import CONTROL, PODS, SECRETS, GroupResource
from mockube.apimachinery.secrets import masked
from mockube.apimachinery.status import ApiError
from mockube.apimachinery.tree import ReadOnlyTree, Tree
from mockube.apiserver.authz.chain import Attributes
from mockube.apiserver.event_loop import QUICK_SLICE, Worker, filter_in_slices, yield_between_batches
from mockube.apiserver.kinds.api_resource import Resource
from mockube.apiserver.registry.registry import Registry
from mockube.apiserver.registry.request_context import Body, RequestContext
from mockube.apiserver.registry.simulated_operators import watching_programs
from mockube.apiserver.request.endpoints import RESOURCE_VERBS, SUBRESOURCE_VERBS
from mockube.apiserver.storage.stored_object import StoredObject
from mockube.apiserver.user import User
from mockube.component_base.loop import yield_to_loop
from mockube.explanations.facts import (
    EVENTS,
    FAULTS,
    NOT_SET,
    REFUSED,
    Allowed,
    Answer,
    ContentsOf,
    DependentsOf,
    DryRun,
    EventsOf,
    Facts,
    LogOf,
    LossOf,
    NotCollected,
    ObjectNamed,
    ObjectsOf,
    Question,
    WatchersOf,
    WritesOf,
    is_component,
    value_at,
)
from mockube.explanations.managed_fields import managed_writes

from .access import decide, is_allowed
from .changes import CHANGE, Changes, ObjectWrite
from .lost_rights import find_loss

LOG_LINES: Final = 10
MAX_ROUNDS: Final = 500
"""The questions of one explanation."""
MAX_FOUND: Final = 1_000
"""The dependents of an object, or the contents of a namespace, that are looked at."""
MAX_WRITES: Final = 3
"""The writes of a field that are named: the newest one, and the newest ones of users."""
AGENT: Final = "mockube-why"
"""The User-Agent of the requests that are tried."""
_COUNTED: Final = frozenset({"generation", "resourceVersion", "managedFields"})
"""The fields of metadata that each write changes."""
_REVIEWS: Final = GroupResource("authorization.k8s.io", "subjectaccessreviews")


class LogReader(Protocol):
    """Reads logs of containers from kubelets."""

    async def read(
        self, user: User, namespace: str, pod: str, container: str, *, previous: bool, lines: int
    ) -> str: ...


class FactSources(Struct, frozen=True, kw_only=True):
    """Where facts are found besides the objects of the cluster."""

    logs: LogReader
    changes: Changes
    reconciled: Collection[GroupResource] = ()
    """The custom resources that packs reconcile."""


class TooManyQuestions(Exception):
    """An explanation needs more facts than one may need."""


class FactCollector:
    """The facts for one request."""

    def __init__(
        self, cluster: Registry, control: Registry, sources: FactSources, user: User, worker: Worker
    ) -> None:
        """`control` is the registry of the control group, whose objects are not in the store of the cluster."""
        self._cluster, self._control, self._sources, self._user = cluster, control, sources, user
        self._worker = worker
        self._answers: dict[Question, Any] = {}
        self.facts = Facts(cluster.clock.now(), cluster.gates, self._answers)
        self._bytes = 0
        self._ask: dict[type[Any], Callable[[Any], Awaitable[Any]]] = {
            ObjectsOf: self._list,
            ObjectNamed: self._find,
            EventsOf: self._events,
            LogOf: self._log,
            DependentsOf: self._dependents,
            ContentsOf: self._contents,
            WatchersOf: self._watchers,
            WritesOf: self._writes,
            DryRun: self._dry_run,
            Allowed: self._allowed,
            LossOf: self._loss,
        }

    async def explain(self, explain: Callable[[Facts], Any]) -> Any:
        """Return what a pure function makes of facts, which are collected as it asks for them. The watch cache has to be fresh."""
        for _ in range(MAX_ROUNDS):
            try:
                return await self._worker.run(self._bytes, explain, self.facts)
            except NotCollected as missing:
                self._answers[missing.question] = await self._ask[type(missing.question)](missing.question)
        raise TooManyQuestions(f"an explanation may ask for {MAX_ROUNDS} facts")

    async def may(
        self, verb: str, resource: GroupResource, namespace: str, name: str = "", sub: str = ""
    ) -> bool:
        """Return whether the user may do something."""
        return await is_allowed(self._cluster, self._user, verb, resource, namespace, name, subresource=sub)

    async def _list(self, question: ObjectsOf) -> Answer | object:
        resource, namespace = question.resource, question.namespace
        if resource not in self._cluster.rows:
            return ()
        if not await self.may("list", resource, namespace):
            return REFUSED
        registry = self._cluster
        if resource.group == CONTROL:
            registry = self._control
            await registry.watch_cache.fresh()
        return await self._decode(resource, registry.list_cached(resource, namespace))

    async def _find(self, question: ObjectNamed) -> Answer | object:
        resource, namespace, name = question.resource, question.namespace, question.name
        if resource not in self._cluster.rows:
            return None
        if not await self.may("get", resource, namespace, name):
            return REFUSED
        stored = self._cluster.find_cached(resource, namespace, name)
        return None if stored is None else _readable(resource, stored)

    async def _events(self, question: EventsOf) -> Answer | object:
        if not await self.may("list", EVENTS, question.namespace):
            return REFUSED
        mark = question.uid.encode()
        stored = self._cluster.list_cached(EVENTS, question.namespace)
        marked = await filter_in_slices(lambda each: mark in each.text, stored)
        events = await self._decode(EVENTS, marked)
        return [each for each in events if (each.get("involvedObject") or {}).get("uid") == question.uid]

    async def _log(self, question: LogOf) -> Answer | object:
        if not await self.may("get", PODS, question.namespace, question.pod, "log"):
            return REFUSED
        text = await self._sources.logs.read(
            self._user,
            question.namespace,
            question.pod,
            question.container,
            previous=question.previous,
            lines=LOG_LINES,
        )
        return text.splitlines()[-LOG_LINES:]

    async def _dependents(self, question: DependentsOf) -> Answer:
        """Return the heads of the objects that name an owner; of kinds that the user may list."""
        found: list[ReadOnlyTree] = []
        mark = question.uid.encode()
        async for row, stored in self._all_objects(question.namespace):
            if mark in stored.text:
                tree = stored.tree()
                if any(each.get("uid") == question.uid for each in meta.owner_references(tree)):
                    found.append(_head(tree, row))
            if len(found) >= MAX_FOUND:
                break
        return found

    async def _contents(self, question: ContentsOf) -> Answer:
        """Return the heads of the objects in a namespace; of kinds that the user may list."""
        found: list[ReadOnlyTree] = []
        async for row, stored in self._all_objects(question.namespace):
            found.append(_head(stored.tree(), row))
            if len(found) >= MAX_FOUND:
                break
        return found

    async def _all_objects(self, namespace: str) -> AsyncIterator[tuple[Resource, StoredObject]]:
        """Yield the stored objects of a namespace, or of all, but Events; kinds that the user may not list are noted."""
        cluster = self._cluster
        for resource, row in [*cluster.rows.items()]:
            if row.virtual or resource.resource == EVENTS.resource or (namespace and not row.namespaced):
                continue
            objects = cluster.list_cached(resource, namespace)
            if objects and not await self.may("list", resource, namespace):
                self._answers[ObjectsOf(resource, namespace)] = REFUSED
                continue
            for position, stored in enumerate(objects):
                if position % QUICK_SLICE == QUICK_SLICE - 1:
                    await yield_to_loop()
                yield row, stored

    async def _watchers(self, question: WatchersOf) -> Answer | object:
        resource, namespace = question.resource, question.namespace
        if not await self.may("list", resource, namespace):
            return REFUSED
        if resource in self._sources.reconciled:
            return ["mockube"]
        row = self._cluster.rows.get(resource)
        return () if row is None else sorted({*watching_programs(self._cluster, row, namespace)})

    async def _allowed(self, question: Allowed) -> Answer | object:
        if not await self._may_review(question):
            return REFUSED
        allowed = await decide(self._cluster, _attributes(question))
        return REFUSED if allowed is None else allowed

    async def _may_review(self, question: Allowed) -> bool:
        """Return whether the user may know what a user may do: itself, or any one."""
        is_own = (question.user, {*question.groups}) == (self._user.name, {*self._user.groups})
        return is_own or await self.may("create", _REVIEWS, "")

    async def _loss(self, question: LossOf) -> Answer | object:
        may_list_changes = await self.may("list", CHANGE.group_resource, "")
        if not (may_list_changes and await self._may_review(question.right)):
            return REFUSED
        attributes = _attributes(question.right)
        loss = await find_loss(self._cluster, self._sources.changes, attributes, question.time)
        if loss is None:
            return None
        if not await self.may("list", loss.row.group_resource, meta.namespace(loss.object)):
            return REFUSED
        return {**_head(loss.object, loss.row), "field": loss.field}

    async def _writes(self, question: WritesOf) -> Answer | object:
        row = self._row(question.group, question.kind)
        if row is None:
            return ()
        resource, namespace = row.group_resource, question.namespace
        may_list_changes = await self.may("list", CHANGE.group_resource, "")
        if not (may_list_changes and await self.may("list", resource, namespace)):
            return REFUSED
        newest, of_users = deque[ReadOnlyTree](maxlen=1), deque[ReadOnlyTree](maxlen=MAX_WRITES)
        changes = self._sources.changes
        history = changes.of_control if row.group == CONTROL else changes
        async for write in history.of_object(row, namespace, question.name):
            before, after = (_written_value(tree, question) for tree in (write.before, write.after))
            if before != after:
                newest.append(_write_tree(write, question, is_secret=resource == SECRETS))
                if not is_component(write.author.get("user", "")):
                    of_users += newest
        if not newest:
            stored = self._cluster.find_cached(resource, namespace, question.name)
            found = () if stored is None else managed_writes(_readable(resource, stored), question.path)
            return found[:MAX_WRITES]
        others = [each for each in reversed(of_users) if each not in newest]
        return [*newest, *others][:MAX_WRITES]

    async def _dry_run(self, question: DryRun) -> Answer | object:
        row = self._row(question.group, question.kind)
        if row is None:
            return "its kind is not served"
        subresource = question.subresource
        verbs = SUBRESOURCE_VERBS[subresource] if subresource else RESOURCE_VERBS
        if not await self.may(
            question.verb, row.group_resource, question.namespace, question.name, subresource
        ):
            return REFUSED
        context = RequestContext(
            verb=question.verb,
            resource=row,
            subresource=row.subresource(subresource) if subresource else None,
            namespace=question.namespace if row.namespaced else "",
            name="" if question.verb == "create" else question.name,
            query={"dryRun": ["All"]},
            body=Body(data=question.body.encode(), media_type=question.media_type),
            user=self._user,
            user_agent=AGENT,
        )
        try:
            await verbs[question.verb](self._cluster, context)
        except ApiError as error:
            return error.message
        finally:
            context.work.release()
        return ""

    def _row(self, group: str, kind: str) -> Resource | None:
        rows = self._cluster.rows.values()
        found = (row for row in rows if (row.group, row.kind) == (group, kind))
        return next((row for row in found if not row.virtual or row.group_resource == FAULTS), None)

    async def _decode(
        self, resource: GroupResource, stored: Sequence[StoredObject]
    ) -> Sequence[ReadOnlyTree]:
        self._bytes += sum(len(each.text) for each in stored)
        return await yield_between_batches(partial(_readable, resource), stored)


def _attributes(question: Allowed) -> Attributes:
    fields = asdict(question)
    user = User(name=fields.pop("user"), groups=fields.pop("groups"))
    return Attributes(user=user, **fields)


def _written_value(tree: ReadOnlyTree | None, question: WritesOf) -> Any:
    """Return the value of a field; of a whole object, what others than its controllers write."""
    if question.path or tree is None:
        return value_at(tree, question.path)
    metadata = {name: value for name, value in tree["metadata"].items() if name not in _COUNTED}
    return {name: value for name, value in tree.items() if name != "status"} | {"metadata": metadata}


def _write_tree(write: ObjectWrite, question: WritesOf, *, is_secret: bool) -> Tree:
    tree: Tree = {"revision": write.revision, "type": write.type, "time": write.time, "author": write.author}
    if is_secret:
        tree["isMasked"] = True
    for name, state in (("before", write.before), ("after", write.after)):
        readable = masked(state) if is_secret and state is not None else state
        value = value_at(readable, question.path) if question.path else NOT_SET
        if value is not NOT_SET:
            tree[name] = value
    return tree


def _head(tree: ReadOnlyTree, row: Resource) -> ReadOnlyTree:
    return {"apiVersion": row.api_version, "kind": row.kind, "metadata": tree["metadata"]}


def _readable(resource: GroupResource, stored: StoredObject) -> ReadOnlyTree:
    tree = stored.tree()
    if resource == SECRETS:
        secret: ReadOnlyTree = masked(tree)
        return secret
    return tree
