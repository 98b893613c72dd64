"""Fault: a rule that harms requests, as an object whose status shows what it has done.

The objects are the faults of the server: one is injected as soon as the cache of the group has it, and ends with its deletion. A
change of its spec begins it anew. Hits are counted in memory, and written to the status together.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final

import msgspec
import orjson

from mockube.apimachinery import errors, meta
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.groups import CONTROL, LEASES, PODS, GroupResource
from mockube.apimachinery.paths import ROOT, Path
from mockube.apimachinery.status import ApiError, NotFound
from mockube.apimachinery.timestamps import format_micro_time
from mockube.apimachinery.tree import ReadOnlyTree, Tree
from mockube.apimachinery.wellknown import NAMESPACE_NODE_LEASE
from mockube.apiserver.fields import selectable
from mockube.apiserver.registry.create import create
from mockube.apiserver.registry.delete import delete
from mockube.apiserver.registry.patch import patch_as_server
from mockube.apiserver.registry.read import get, list_objects
from mockube.apiserver.registry.registry import OwnVerbs, Registry, Verb
from mockube.apiserver.registry.request_context import Body, ListResult, ObjectResult, RequestContext
from mockube.apiserver.registry.selection import selectable_fields
from mockube.apiserver.request.endpoints import RESOURCE_VERBS
from mockube.apiserver.request.limits import WRITES
from mockube.apiserver.request.request import Request
from mockube.apiserver.request_info import RequestInfo
from mockube.apiserver.storage.journal import MAX_TEXT, Author
from mockube.apiserver.storage.recent_changes import Change, ChangeKind
from mockube.apiserver.storage.stored_object import canonical_custom
from mockube.apiserver.user import SERVER
from mockube.apiserver.wire.negotiation import MediaType
from mockube.etcd.kv import HEAD, Compare, Revision, Target, Txn

from .effects import Steal
from .event_selection import EVENT_TYPES, MAX_SKIPPED_EVENTS
from .fault_summary import COLUMNS, summary
from .faults import Fault, FaultInjector, InjectedFault, check_path
from .kind import AGE, API_VERSION, ControlKind
from .matching import VERBS
from .partitions import PARTITION, Partitions, check_partition
from .schemas import integer, object_of, seconds, text
from .served_names import check_requests
from .strategy import ControlStrategy

MAX_LAST_REQUESTS: Final = 10
MAX_COST: Final = 1_000
"""The microseconds in which all Faults are compared with a request at most."""
_SPEC: Final = ROOT.child("spec")
_AUTHOR: Final = Author(user=SERVER.name, verb="update", subresource="status")


_MATCH: Final = object_of(
    "Which requests get the fault: those that meet all criteria. Texts are patterns, in which * stands for any characters and ? for "
    "one. Requests for this API group never match.",
    {
        "user": text(
            "The user. Without it, requests of mockube's own controllers do not match; * matches all users."
        ),
        "agent": text("The beginning of the User-Agent."),
        "verbs": {
            "type": "array",
            "description": "The verbs of requests for resources.",
            "maxItems": len(VERBS),
            "items": {"type": "string", "enum": list(VERBS)},
        },
        "resource": text("The resource as in a rule of RBAC: pods, pods/status, deployments.apps."),
        "namespace": text("The namespace of the object; empty for requests for objects without a namespace."),
        "name": text("The name of the object. A request that creates an object has no name."),
        "labels": text(
            "A label selector, such as app=web: the object that the request names has these labels before the request."
        ),
        "node": text(
            "The node to which the named object belongs: the node itself, its Lease in kube-node-lease, or a pod on it."
        ),
        "path": text("The path of the URL, for requests that are for no resource."),
    },
)
_UNTIL_WRITE: Final = {
    "type": "boolean",
    "description": "Whether it ends when the user of the watch has written to the resource that it watches.",
}
_FROM_EVENT: Final = object_of(
    "The event with which it begins, for each matching watch: this one and those that follow. Without it, it begins at once. The objects with "
    "which a watch begins are no events.",
    {
        "types": {
            "type": "array",
            "description": "The types of events, as the watch gets them.",
            "maxItems": len(EVENT_TYPES),
            "items": {"type": "string", "enum": list(EVENT_TYPES)},
        },
        "namespace": text("The namespace of the object. It is a pattern, as in match."),
        "name": text("The name of the object. It is a pattern, as in match."),
        "skip": integer(
            "The number of matching events that come before it. The default is 0.",
            minimum=0,
            maximum=MAX_SKIPPED_EVENTS,
        ),
    },
)
_EFFECTS: Final = {
    "delay": object_of(
        "The request waits.", {"seconds": seconds("How long, by the cluster's clock.")}, "seconds"
    ),
    "cut": object_of(
        "The connection is cut, of matching watches in progress, too.",
        {"when": text("Before the request is executed, or after.", enum=["before", "after"])},
        "when",
    ),
    "refuse": object_of(
        "The request is not executed, and gets an error. With the status 410, watches in progress end as too old.",
        {
            "status": integer("The status code.", minimum=400, maximum=599),
            "reason": text("The reason, in place of that of kube-apiserver for the code."),
            "message": text("The message, in place of that of kube-apiserver for the code."),
            "retryAfter": integer("The seconds of the header Retry-After.", minimum=0, maximum=2**31 - 1),
        },
        "status",
    ),
    "repeat": object_of(
        "The request is executed twice, as if its client had lost the first response and sent it again, and gets the second response. "
        "match.verbs must be among create, update, patch, delete and deletecollection.",
        {},
    ),
    "steal": object_of(
        "Another candidate takes the Lease that the request is for, before it is executed. match.resource must be leases.",
        {
            "holder": text(
                "The holderIdentity of that candidate. The default is mockube-fault.", maxLength=253
            ),
            "seconds": integer(
                "The leaseDurationSeconds, after which others may take it. The default are those of the Lease.",
                minimum=1,
                maximum=2**31 - 1,
            ),
        },
    ),
    "stale": object_of(
        "Gets and lists read the store as it was, as from a server that lags behind, and watches lag, too. match.verbs must be among get, "
        "list and watch.",
        {
            "revision": integer(
                "The revision at which gets and lists read and watches begin, which get no later events until the Fault is deleted. The "
                "default is the newest one when the Fault is created.",
                minimum=1,
            ),
            "seconds": seconds(
                "In place of a revision: how long before each request gets and lists read, and how late watches get each event, by the "
                "cluster's clock."
            ),
        },
    ),
    "hold": object_of(
        "The events of watches are held back, also of those in progress.",
        {
            "seconds": seconds("How long. The default is until the Fault is deleted."),
            "untilWrite": _UNTIL_WRITE,
            "fromEvent": _FROM_EVENT,
        },
    ),
    "drop": object_of(
        "The changes of objects are lost for watches, also for those in progress.",
        {
            "seconds": seconds("How long. The default is until the Fault is deleted."),
            "untilWrite": _UNTIL_WRITE,
            "fromEvent": _FROM_EVENT,
        },
    ),
    "respond": object_of(
        "The request is not executed, and gets this response.",
        {
            "status": integer("The status code. The default is 200.", minimum=200, maximum=599),
            "body": {
                "type": "object",
                "description": "The object of the response.",
                "x-kubernetes-preserve-unknown-fields": True,
            },
        },
        "body",
    ),
    "change": object_of(
        "The request is executed, and its response is changed.",
        {
            "mergePatch": {
                "type": "object",
                "description": "A JSON merge patch of the response.",
                "x-kubernetes-preserve-unknown-fields": True,
            }
        },
        "mergePatch",
    ),
}

FAULT: Final = ControlKind(
    name="Fault",
    plural="faults",
    description="Fault is a rule that harms requests to the server. If several faults match a request, the oldest applies.",
    spec={
        "description": "Which requests, how many of them, and what happens to them. Several effects apply in the order delay, cut, "
        "refuse, repeat, steal, stale, hold, drop, respond, change.",
        "properties": {
            "match": _MATCH,
            "share": {
                "type": "number",
                "minimum": 0,
                "maximum": 1,
                "description": "The probability with which a matching request is chosen. The default is 1.",
            },
            "skip": integer("The number of chosen requests that are skipped first.", minimum=0),
            "times": integer("The number of requests that get the fault. The default is all.", minimum=1),
            **_EFFECTS,
            PARTITION: object_of(
                "The simulated node that match.node names is cut off: it sends nothing, and its pods do not change. Other criteria, counts "
                "and effects cannot be given with it.",
                {},
            ),
        },
    },
    status={
        "description": "What the fault has done since its spec was written.",
        "properties": {
            "hits": integer("The number of requests that got the fault."),
            "isExhausted": {
                "type": "boolean",
                "description": "Whether it got as many requests as `times` says.",
            },
            "event": object_of(
                "The event with which it has begun, if fromEvent selects one.",
                {
                    "type": text("The type."),
                    "revision": integer(
                        "The revision of the change, which the Change of the object has, too."
                    ),
                },
            ),
            "lastRequests": {
                "type": "array",
                "description": "The last requests that got the fault, the newest at the end.",
                "items": object_of(
                    "A request.",
                    {
                        "time": text("When it was hit.", format="date-time"),
                        "user": text("The user."),
                        "agent": text("The User-Agent."),
                        "verb": text("The verb."),
                        "auditID": text("The id of the request, by which Requests have it, too."),
                    },
                ),
            },
        },
    },
    is_spec_required=True,
    columns=(*COLUMNS, AGE),
    summary=summary,
    selectable=(selectable("resource", "spec.match.resource"), selectable("user", "spec.match.user")),
    verbs=("create", "delete", "get", "list", "patch", "update", "watch"),
    max_objects=500,
)


def labels_in(cluster: Registry, info: RequestInfo) -> Mapping[str, str]:
    """Return the labels of the object that a request names, as it is now; none if there is no such object."""
    row = cluster.rows.get(GroupResource(info.group, info.resource))
    if row is None or not info.name:
        return {}
    stored = cluster.find_cached(row.group_resource, info.namespace if row.namespaced else "", info.name)
    return {} if stored is None else stored.labels


def node_in(cluster: Registry, info: RequestInfo) -> str:
    """Return the node to which the object belongs that a request names; "" if it belongs to none."""
    if info.resource == "nodes" or (info.resource == "leases" and info.namespace == NAMESPACE_NODE_LEASE):
        return info.name
    row = cluster.rows.get(PODS)
    if row is None or not info.name or GroupResource(info.group, info.resource) != PODS:
        return ""
    stored = cluster.find_cached(PODS, info.namespace, info.name)
    return "" if stored is None else stored.selectable(selectable_fields(row))["spec.nodeName"]


def revision_before(cluster: Registry, seconds: float) -> Revision:
    """Return the revision that was the newest so many seconds ago; the oldest one that this server knows, if that is later."""
    journal = cluster.journal
    entry = journal.newest_at(cluster.clock.now().timestamp() - seconds)
    if entry is not None:
        return HEAD if entry is journal.newest() else entry.revision
    oldest = journal.oldest_from(0)
    return HEAD if oldest is None else oldest.revision - 1


async def steal_lease(cluster: Registry, request: Request, theft: Steal) -> None:
    """Let another candidate hold the Lease that a request is for, if it exists and another one holds it."""
    info = request.info
    stored = cluster.find_cached(LEASES, info.namespace, info.name) if info.name else None
    spec = {} if stored is None else stored.tree()["spec"]
    if stored is None or spec.get("holderIdentity") == theft.holder:
        return
    now = format_micro_time(cluster.clock.now())
    spec_of_thief = {
        "holderIdentity": theft.holder,
        "acquireTime": now,
        "renewTime": now,
        "leaseTransitions": (spec.get("leaseTransitions") or 0) + 1,
    }
    if theft.seconds is not None:
        spec_of_thief["leaseDurationSeconds"] = theft.seconds
    with suppress(ApiError):  # it is deleted meanwhile, or a webhook refuses it
        await patch_as_server(
            cluster, cluster.rows[LEASES], info.namespace, info.name, {"spec": spec_of_thief}
        )


class _Hits:
    """What the status of a fault does not show yet."""

    def __init__(self) -> None:
        self.last: deque[Tree] = deque(maxlen=MAX_LAST_REQUESTS)


class _StatusBatch:
    """The faults whose status is written together: it lacks hits, or has those of an earlier spec."""

    def __init__(self) -> None:
        self.names: dict[str, None] = {}
        self.is_written = asyncio.Event()


class Faults(ControlStrategy):
    """The objects, and the injected faults that they are."""

    kind = FAULT
    prefix: bytes
    _registry: Registry

    def __init__(self, cluster: Registry, injector: FaultInjector) -> None:
        self._cluster, self._injector = cluster, injector
        self._injected: dict[str, tuple[int, InjectedFault, _Hits]] = {}
        """By name, with the generation of the object."""
        self.partitions = Partitions(cluster)
        self._batch, self._next_batch = _StatusBatch(), _StatusBatch()
        """What is written now, or was last, and what is written after it."""
        self._has_next = asyncio.Event()
        self._writing = asyncio.Lock()

    # --- objects

    async def prepare(self, new: Tree, _old: ReadOnlyTree | None) -> Tree:
        spec = new.get("spec")
        if not isinstance(spec, dict) or not isinstance(stale := spec.get("stale"), dict):
            return new
        if "revision" in stale or "seconds" in stale:
            return new
        newest = (await self._cluster.kv.status()).revision
        return {**new, "spec": {**spec, "stale": {**stale, "revision": newest}}}

    async def check(self, new: ReadOnlyTree, old: ReadOnlyTree | None) -> Iterable[FieldError]:
        if old is not None and new["spec"] == old["spec"]:
            return ()  # its node or its resource may have been deleted since
        return [*self._check(new["spec"])] or [*self._check_cost(meta.name(new), new["spec"])]

    def _check(self, spec: ReadOnlyTree) -> Iterator[FieldError]:
        if PARTITION in spec:
            yield from check_partition(spec, self._cluster)
            return
        fault, match, served = (
            _read(spec),
            _SPEC.child("match"),
            [row for row in self._cluster.rows.values() if row.group != CONTROL],
        )
        found = [
            *(
                error
                for effect, arguments in fault.effects()
                for error in _value_error(
                    _SPEC.child(effect.name), spec[effect.name], partial(effect.check, arguments)
                )
            ),
            *(
                [*_value_error(match, spec.get("match"), fault.match.check)]
                or _value_error(
                    match.child("resource"),
                    fault.match.resource,
                    partial(check_requests, fault.match, served),
                )
            ),
            *_value_error(match.child("path"), fault.match.path, partial(check_path, fault.match.path)),
            *_check_stale(fault),
            *_check_repeat(fault),
            *_check_steal(fault),
        ]
        yield from found or _value_error(_SPEC, spec, fault.check)

    def _check_cost(self, name: str, spec: ReadOnlyTree) -> Iterator[FieldError]:
        """Yield an error if a valid Fault, with all others, takes too much time of a request."""
        if PARTITION in spec:
            return
        others = sum(injected.cost for each, (_, injected, _) in self._injected.items() if each != name)
        cost = InjectedFault(_read(spec)).cost
        if others + cost > MAX_COST:
            yield errors.forbidden(
                _SPEC.child("match"),
                f"it costs each request up to {cost} microseconds, and the other faults {others}: together at most {MAX_COST}. "
                "A pattern with wildcards costs 1, a * before other characters 5, each character behind it 1, each requirement of labels 1",
            )

    async def begin(self, registry: Registry) -> None:
        self._registry = registry
        self.partitions.begin()
        cache = registry.resource_cache(FAULT.group_resource)
        self.prefix = cache.prefix
        cache.watchers.add(self)

    def handle_change(self, change: Change) -> None:
        """Inject a new fault, begin a changed one anew, end a deleted one."""
        tree = change.after.tree()
        name, generation = meta.name(tree), meta.generation(tree)
        is_partition = PARTITION in tree["spec"] and change.kind is not ChangeKind.DELETED
        self.partitions.set(name, tree["spec"]["match"]["node"] if is_partition else "")
        present = self._injected.get(name)
        if change.kind is not ChangeKind.DELETED and present is not None and present[0] == generation:
            return  # its status or its metadata has changed
        if present is not None:
            del self._injected[name]
            self._injector.remove(present[1])
        if change.kind is not ChangeKind.DELETED and not is_partition:
            hits = _Hits()
            injected = InjectedFault(
                _read(tree["spec"]),
                name,
                partial(self._note_hit, name, hits),
                partial(self._write_later, name),
            )
            self._injected[name] = generation, injected, hits
            self._injector.add_injected(injected)
            if present is not None:
                self._write_later(name)  # the hits of the earlier spec are gone

    def handle_missed_change(self) -> None:
        """Do nothing: the next change of the object is handled."""

    # --- hits

    def _note_hit(self, name: str, hits: _Hits, request: Request) -> None:
        hits.last.append(
            {
                "time": format_micro_time(self._cluster.clock.now()),
                "user": request.user.name[:MAX_TEXT],
                "agent": request.user_agent[:MAX_TEXT],
                "verb": request.info.verb,
                "auditID": request.audit_id[:MAX_TEXT],
            }
        )
        self._write_later(name)

    def _write_later(self, *names: str) -> None:
        self._next_batch.names.update(dict.fromkeys(names))
        self._has_next.set()

    def tasks(self) -> Mapping[str, Callable[[], Coroutine[Any, Any, None]]]:
        return {"control-faults": self.run, "control-partitions": self.partitions.run}

    async def run(self) -> None:
        """Write the hits of faults to their status, until cancelled."""
        while True:
            await self._has_next.wait()
            self._has_next.clear()
            self._batch, self._next_batch = self._next_batch, _StatusBatch()
            try:
                await self._write_batch([*self._batch.names])
            finally:
                self._batch.is_written.set()

    async def _write_batch(self, names: Sequence[str]) -> None:
        for index, name in enumerate(names):
            try:
                await self._write_status(name)
            except BaseException:
                self._write_later(*names[index + 1 :], name)  # an error of one does not delay the others
                self._next_batch.is_written.set()  # nor does it let readers wait
                raise

    async def _wait_written(self) -> None:
        """Wait until the hits up to now are written; those that follow are not waited for."""
        await self._registry.watch_cache.fresh()
        for batch in (self._batch, self._next_batch):
            if batch.names:
                await batch.is_written.wait()

    async def _write_status(self, name: str) -> None:
        """Write the hits of a fault, unless it is deleted meanwhile."""
        registry, row = self._registry, self._registry.rows[FAULT.group_resource]
        while (present := self._injected.get(name)) is not None:
            stored = await registry.find(row, "", name)
            if stored is None:
                return
            tree = {**stored.tree(), "status": _status(present[1], present[2])}
            seen = Compare(key=stored.key, target=Target.MOD, operand=stored.revision)
            put = registry.put(stored.key, canonical_custom(tree))
            if (await registry.commit(Txn(compare=(seen,), then=(put,)), _AUTHOR)).succeeded:
                await registry.watch_cache.deliver()
                return

    # --- verbs

    def verbs(self) -> OwnVerbs:
        writes = {name: partial(self._write, RESOURCE_VERBS[name]) for name in ("create", "patch", "update")}
        verbs: Mapping[str, Verb] = {**RESOURCE_VERBS, **writes, "get": self.get, "list": self.list}
        return {(FAULT.group_resource, ""): verbs}

    async def _write(
        self, verb: Verb, registry: Registry, context: RequestContext
    ) -> ObjectResult | ListResult:
        """Write a Fault when all written before are injected: their costs are added up."""
        async with self._writing:
            await registry.watch_cache.fresh()
            return await verb(registry, context)

    async def get(self, registry: Registry, context: RequestContext) -> ObjectResult:
        await self._wait_written()
        return await get(registry, context)

    async def list(self, registry: Registry, context: RequestContext) -> ListResult:
        await self._wait_written()
        return await list_objects(registry, context)

    # --- from Python

    async def inject(self, fault: Fault) -> InjectedFault:
        """Create the object of a valid fault, and return the fault."""
        spec = msgspec.to_builtins(fault)
        metadata = {"generateName": "inject-"}
        tree = {"apiVersion": API_VERSION, "kind": FAULT.name, "metadata": metadata, "spec": spec}
        context = self._context("create", body=orjson.dumps(tree))
        result = await self._write(create, self._registry, context)
        assert isinstance(result, ObjectResult)
        await self._registry.watch_cache.fresh()
        return self._injected[meta.name(result.object())][1]

    async def stop(self, injected: InjectedFault) -> None:
        await self._remove(injected.name)

    async def _remove(self, name: str) -> None:
        """Delete the object of a fault, if it exists."""
        with suppress(NotFound):
            await delete(self._registry, self._context("delete", name))
        await self._registry.watch_cache.fresh()

    async def clear(self) -> None:
        for name in [*self._injected, *self.partitions.names]:
            await self._remove(name)

    def _context(self, verb: str, name: str = "", body: bytes = b"") -> RequestContext:
        row = self._registry.rows[FAULT.group_resource]
        sent = Body(data=body, media_type=MediaType.JSON.value)
        return RequestContext(
            verb=verb, resource=row, name=name, body=sent, user=SERVER, user_agent="mockube"
        )


def _read(spec: ReadOnlyTree) -> Fault:
    return msgspec.convert(spec, Fault)


def _value_error(path: Path, value: Any, check: Callable[[], None]) -> Iterator[FieldError]:
    """Yield the error of a value that a check refuses."""
    try:
        check()
    except ValueError as error:
        yield errors.invalid(path, value, str(error))


def _check_stale(fault: Fault) -> Iterator[FieldError]:
    verbs = {*fault.match.verbs}
    if fault.stale is not None and (not verbs or not verbs <= {"get", "list", "watch"}):
        yield errors.forbidden(
            _SPEC.child("stale"), "match.verbs must be among get, list and watch: a write has no revision"
        )


def _check_repeat(fault: Fault) -> Iterator[FieldError]:
    verbs = {*fault.match.verbs}
    if fault.repeat is not None and (not verbs or not verbs <= WRITES):
        yield errors.forbidden(
            _SPEC.child("repeat"),
            f"match.verbs must be among {', '.join(sorted(WRITES))}: others change nothing",
        )


def _check_steal(fault: Fault) -> Iterator[FieldError]:
    if fault.steal is not None and fault.match.resource not in (LEASES.resource, str(LEASES)):
        yield errors.forbidden(_SPEC.child("steal"), f"match.resource must be {LEASES.resource}")


def _status(injected: InjectedFault, hits: _Hits) -> Tree:
    status: Tree = {"hits": injected.hits, "lastRequests": [*hits.last]}
    if injected.event is not None:
        status["event"] = msgspec.to_builtins(injected.event)
    return {**status, "isExhausted": True} if injected.hits == injected.fault.times else status
