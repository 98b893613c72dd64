"""Collects what an explanation reads, with the rights of the user who asks for it.

Each question is authorized as the request would be that reads the same: what the user may not read is refused, and stays out.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, Protocol

from mockube.apimachinery.groups import GroupResource
from mockube.apimachinery.secrets import masked
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apiserver.authz.chain import Attributes, AuthorizerFailed, Decision
from mockube.apiserver.event_loop import QUICK_SLICE
from mockube.apiserver.registry.registry import Registry
from mockube.apiserver.storage.stored_object import StoredObject
from mockube.apiserver.user import User
from mockube.component_base.loop import yield_to_loop
from mockube.explanations.facts import (
    EVENTS,
    PODS,
    REFUSED,
    Answer,
    EventsOf,
    Facts,
    LogOf,
    NotCollected,
    ObjectNamed,
    ObjectsOf,
    Question,
)

LOG_LINES: Final = 10
MAX_ROUNDS: Final = 500
"""The questions of one explanation."""
_SECRETS: Final = GroupResource("", "secrets")
_INLINE: Final = 0


class LogReader(Protocol):
    """Reads logs of containers from kubelets."""

    async def read(
        self, user: User, namespace: str, pod: str, container: str, *, previous: bool, lines: int
    ) -> str: ...


class TooManyQuestions(Exception):
    """An explanation needs more facts than one may need."""


class FactCollector:
    """The facts for one request."""

    def __init__(self, cluster: Registry, logs: LogReader, user: User) -> None:
        self._cluster, self._logs, self._user = cluster, logs, user
        self._answers: dict[Question, Any] = {}
        self._bytes = _INLINE
        self._ask: dict[type[Any], Callable[[Any], Awaitable[Any]]] = {
            ObjectsOf: self._list,
            ObjectNamed: self._find,
            EventsOf: self._events,
            LogOf: self._log,
        }

    @property
    def facts(self) -> Facts:
        return Facts(self._cluster.clock.now(), self._cluster.gates, self._answers)

    async def explain(self, explain: Callable[[Facts], Any]) -> Any:
        """Return what a pure function makes of facts, which are collected as it asks for them."""
        await self._cluster.watch_cache.fresh()
        for _ in range(MAX_ROUNDS):
            try:
                return await self._cluster.worker.run(self._bytes, explain, self.facts)
            except NotCollected as missing:
                self._answers[missing.question] = await self._ask[type(missing.question)](missing.question)
        raise TooManyQuestions(f"an explanation may ask for {MAX_ROUNDS} facts")

    async def may(
        self, verb: str, resource: GroupResource, namespace: str, name: str = "", sub: str = ""
    ) -> bool:
        """Return whether the user may do something."""
        row = self._cluster.rows[resource]
        attributes = Attributes(
            user=self._user,
            verb=verb,
            group=row.group,
            version=row.version,
            resource=row.name,
            subresource=sub,
            namespace=namespace,
            name=name,
        )
        try:
            decision, _ = await self._cluster.authorization.authorize(attributes)
        except AuthorizerFailed:
            return False
        return decision is Decision.ALLOW

    async def _list(self, question: ObjectsOf) -> Answer | object:
        resource, namespace = question
        if resource not in self._cluster.rows:
            return ()
        if not await self.may("list", resource, namespace):
            return REFUSED
        return await self._decode(resource, self._cluster.list_cached(resource, namespace))

    async def _find(self, question: ObjectNamed) -> Answer | object:
        resource, namespace, name = question
        if resource not in self._cluster.rows:
            return None
        if not await self.may("get", resource, namespace, name):
            return REFUSED
        stored = self._cluster.find_cached(resource, namespace, name)
        return None if stored is None else _readable(resource, stored)

    async def _events(self, question: EventsOf) -> Answer | object:
        if not await self.may("list", EVENTS, question.namespace):
            return REFUSED
        events = await self._decode(EVENTS, self._cluster.list_cached(EVENTS, question.namespace))
        return [each for each in events if (each.get("involvedObject") or {}).get("uid") == question.uid]

    async def _log(self, question: LogOf) -> Answer | object:
        if not await self.may("get", PODS, question.namespace, question.pod, "log"):
            return REFUSED
        text = await self._logs.read(
            self._user,
            question.namespace,
            question.pod,
            question.container,
            previous=question.previous,
            lines=LOG_LINES,
        )
        return text.splitlines()[-LOG_LINES:]

    async def _decode(
        self, resource: GroupResource, stored: Sequence[StoredObject]
    ) -> Sequence[ReadOnlyTree]:
        trees = []
        for position, each in enumerate(stored):
            if position % QUICK_SLICE == QUICK_SLICE - 1:
                await yield_to_loop()
            trees.append(_readable(resource, each))
            self._bytes += len(each.text)
        return trees


def _readable(resource: GroupResource, stored: StoredObject) -> ReadOnlyTree:
    tree = stored.tree()
    if resource == _SECRETS:
        secret: ReadOnlyTree = masked(tree)
        return secret
    return tree
