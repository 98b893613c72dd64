"""Write events about custom objects that nothing reconciles because their operator is simulated.

What an object's event says is true when it is written: later the operator may run. An event has a name of its object's uid, so
that there is one of each reason until it expires, also after a restart and with several servers.
"""

import hashlib
import logging
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Final

import orjson

from mockube.apimachinery import meta
from mockube.apimachinery.groups import GroupResource
from mockube.apimachinery.status import ApiError
from mockube.apimachinery.timestamps import format_time
from mockube.apimachinery.tree import ReadOnlyTree, Tree
from mockube.apiserver.kinds.api_resource import Resource
from mockube.apiserver.registry.create import create
from mockube.apiserver.registry.registry import WRONG_TYPE_ERRORS, Registry
from mockube.apiserver.registry.request_context import Body, RequestContext
from mockube.apiserver.registry.resource_watchers import watched_resources
from mockube.apiserver.registry.simulated_operators import SimulatedOperators, reason_of
from mockube.apiserver.user import User
from mockube.component_base.loop import yield_to_loop
from mockube.etcd.errors import KVError

from .controller import DEFINITIONS

LOG = logging.getLogger(__name__)

NOT_RECONCILED: Final = "NotReconciled"
NOT_FINALIZED: Final = "NotFinalized"
"""The reasons of the events."""
SECONDS: Final = 5.0
"""The interval at which objects are checked."""
GRACE: Final = timedelta(seconds=5)
"""The age from which an object has an event: an operator that starts has a watch by then."""
MAX_OBJECTS: Final = 100
"""The number of objects of a resource that may have events, in the order of their keys: more would say nothing new."""
_OF_GARBAGE_COLLECTOR: Final = frozenset({"foregroundDeletion", "orphan"})
_EVENTS: Final = GroupResource("", "events")
_SERVER: Final = User(name="system:apiserver", groups=("system:masters", "system:authenticated"))
_COMPONENT: Final = "mockube"
_MAX_NAME: Final = 253
_MAX_MESSAGE: Final = 1024


class UnreconciledObjects:
    """Finds the objects that nothing reconciles; its `run` is a task of the server."""

    def __init__(self, registry: Registry, operators: SimulatedOperators) -> None:
        self._registry = registry
        self._operators = operators

    async def run(self) -> None:
        """Check all custom objects now and then, while there are definitions besides those of packs."""
        registry = self._registry
        definitions = registry.resource_cache(DEFINITIONS)
        with watched_resources(registry, (registry.rows[DEFINITIONS],)) as changed:
            while True:
                await changed.wait()
                changed.clear()
                while len(definitions) > len(self._operators.reconciled):
                    await self.report_all()
                    await registry.clock.routine.sleep(SECONDS)

    async def report_all(self) -> None:
        """Write the events that are due."""
        for row in [row for row in self._registry.rows.values() if row.custom]:
            cache = self._registry.watch_cache.resource_cache(self._registry.layout.prefix(row))
            if not cache.objects or not self._operators.may_be_simulated(self._registry, row):
                continue
            operators: dict[str, str] = {}
            for stored in cache.select(cache.prefix, limit=MAX_OBJECTS):
                await yield_to_loop()
                try:
                    await self._report(row, stored.tree(), operators)
                except WRONG_TYPE_ERRORS as error:
                    self._registry.watch_cache.report_malformed(stored, error)

    async def _report(self, row: Resource, tree: ReadOnlyTree, operators: dict[str, str]) -> None:
        """Write the events of an object. `operators` are those that were found in this round, by namespace."""
        now = self._registry.clock.now()
        due = [
            (reason, text)
            for reason, since, text in _findings(tree)
            if now - since >= GRACE and self._lacks_event(tree, reason)
        ]
        if not due:
            return
        namespace = meta.namespace(tree)
        if namespace not in operators:
            operators[namespace] = self._operators.operator_of(self._registry, row, namespace)
        if operator := operators[namespace]:
            for reason, text in due:
                await self._write(
                    _event(tree, reason, f"{text}: {reason_of(operator, row)}", format_time(now))
                )

    def _lacks_event(self, tree: ReadOnlyTree, reason: str) -> bool:
        name = _event_name(tree, reason)
        return self._registry.find_cached(_EVENTS, _event_namespace(tree), name) is None

    async def _write(self, event: Tree) -> None:
        registry = self._registry
        context = RequestContext(
            verb="create",
            resource=registry.rows[_EVENTS],
            namespace=event["metadata"]["namespace"],
            body=Body(data=orjson.dumps(event), media_type="application/json"),
            user=_SERVER,
            user_agent=_COMPONENT,
        )
        try:
            await create(registry, context)
        except (ApiError, KVError) as error:  # also if its namespace is being deleted
            LOG.debug("the event %s was not stored: %s", event["metadata"]["name"], error)


def _findings(tree: ReadOnlyTree) -> Iterator[tuple[str, datetime, str]]:
    """Yield the events that an object may have: the reason, the time since which it holds, and the text."""
    deleted, created = meta.deletion_timestamp(tree), meta.creation_timestamp(tree)
    if deleted is not None:
        waits_for = [name for name in meta.finalizers(tree) if name not in _OF_GARBAGE_COLLECTOR]
        if waits_for:
            text = f"The object is being deleted and waits until its finalizers are removed: {', '.join(waits_for)}"
            yield NOT_FINALIZED, deleted, f"{text}. Nothing removes them"
    elif created is not None and not _has_status_writer(tree):
        yield NOT_RECONCILED, created, f"Nothing reconciles this {meta.kind(tree)}"


def _has_status_writer(tree: ReadOnlyTree) -> bool:
    entries: Sequence[ReadOnlyTree] = tree["metadata"].get("managedFields") or ()
    return any(entry.get("subresource") == "status" for entry in entries)


def _event_namespace(tree: ReadOnlyTree) -> str:
    """Return the namespace of an object's events; those of cluster-scoped objects are in the default one, as upstream."""
    return meta.namespace(tree) or "default"


def _event_name(tree: ReadOnlyTree, reason: str) -> str:
    digest = hashlib.sha256(f"{meta.uid(tree)} {reason}".encode()).hexdigest()[:16]
    return f"{meta.name(tree)[: _MAX_NAME - len(digest) - 1].rstrip('.-')}.{digest}"


def _event(tree: ReadOnlyTree, reason: str, message: str, now: str) -> Tree:
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": _event_name(tree, reason), "namespace": _event_namespace(tree)},
        "involvedObject": {
            "apiVersion": meta.api_version(tree),
            "kind": meta.kind(tree),
            **({"namespace": meta.namespace(tree)} if meta.namespace(tree) else {}),
            "name": meta.name(tree),
            "uid": meta.uid(tree),
            "resourceVersion": meta.resource_version(tree),
        },
        "type": "Warning",
        "reason": reason,
        "message": message[:_MAX_MESSAGE],
        "source": {"component": _COMPONENT},
        "reportingComponent": _COMPONENT,
        "firstTimestamp": now,
        "lastTimestamp": now,
        "count": 1,
    }
