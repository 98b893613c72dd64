"""Bind pods to their nodes, after their volumes are bound."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from mockube.apimachinery import meta
from mockube.apimachinery.status import ApiError
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apimachinery.wellknown import ANNOTATION_PV_BOUND_BY_CONTROLLER
from mockube.client.cache.store import Change
from mockube.client.component import ComponentContext
from mockube.client.component_helpers.volumes import SELECTED_NODE, claim_reference
from mockube.client.kinds import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, PODS
from mockube.client.resources import Key
from mockube.client.verbs import Client
from mockube.client.wire import NoResponse
from mockube.component_base.supervision import timeout

from .plugin_failure import PluginFailure
from .podinfo import PodInfo
from .volumes import ClaimBinding, is_bound

if TYPE_CHECKING:
    from .extenders.chain import Extenders


class BindingFailure(Exception):
    """A pod, or what it needs, could not be bound. The message is upstream's."""

    @classmethod
    def of_plugin(cls, point: str, plugin: str, problem: object) -> "BindingFailure":
        return cls(f'running {point} plugin "{plugin}": {problem}')


class BindingSlots:
    """Limits the bindings that send requests at the same time; further decisions wait for one of them."""

    def __init__(self, count: int) -> None:
        self._semaphore = asyncio.Semaphore(count)
        self._waiting: set[asyncio.Task[Any]] = set()
        """The bindings that have left their slot."""

    async def acquire(self) -> None:
        await self._semaphore.acquire()

    def release(self) -> None:
        self._semaphore.release()

    @asynccontextmanager
    async def left(self) -> AsyncIterator[None]:
        """Let others have the slot of the caller, which waits for something that may take long."""
        task = asyncio.current_task()
        assert task is not None
        self.release()
        self._waiting.add(task)
        try:
            yield
        finally:
            self._waiting.discard(task)
            await self.acquire()

    def cancel_waiting(self) -> None:
        """Cancel the bindings that wait, because nobody needs their end any more."""
        for task in [*self._waiting]:
            task.cancel()


class Binder:
    """Writes the scheduler's decisions."""

    def __init__(self, context: ComponentContext, slots: BindingSlots, extenders: "Extenders | None") -> None:
        self._client: Client = context.client
        self._clock = context.clock
        self._slots = slots
        self._extenders = extenders
        self._claims = context.informers.of(PERSISTENT_VOLUME_CLAIMS)
        self._claims.add_handler(self._claim_changed)
        self._changes: dict[Key, asyncio.Event] = {}
        """The next change of each claim for which a binding waits."""

    async def bind(self, pod: PodInfo, node: str, bindings: Sequence[ClaimBinding], seconds: float) -> None:
        """Bind the claims, which may take some seconds, and then the pod. Raises `BindingFailure`."""
        try:
            await self._bind_claims(node, bindings, seconds)
        except TimeoutError as error:
            problem = "binding volumes: context deadline exceeded"
            raise BindingFailure.of_plugin("PreBind", "VolumeBinding", problem) from error
        except (ApiError, NoResponse) as error:
            raise BindingFailure.of_plugin("PreBind", "VolumeBinding", error) from error
        if not await self._bind_by_extender(pod, node):
            await self._bind_pod(pod, node)

    async def _bind_by_extender(self, pod: PodInfo, node: str) -> bool:
        if self._extenders is None or not self._extenders.has_binder(pod):
            return False
        try:
            async with self._slots.left():
                return await self._extenders.bind(pod, node)
        except PluginFailure as error:
            raise BindingFailure(str(error)) from error

    async def _bind_pod(self, pod: PodInfo, node: str) -> None:
        key = pod.view.key
        body = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": key.name, "namespace": key.namespace, "uid": pod.view.uid},
            "target": {"kind": "Node", "name": node},
        }
        try:
            await self._client.create(PODS, body, key=key, subresource="binding")
        except (ApiError, NoResponse) as error:
            raise BindingFailure.of_plugin("Bind", "DefaultBinder", error) from error

    async def _bind_claims(self, node: str, bindings: Sequence[ClaimBinding], seconds: float) -> None:
        """Bind claims. Raises `TimeoutError` if they are not bound in time, and errors of requests."""
        for binding in bindings:
            await self._bind_claim(binding, node)
        keys = [Key.of(binding.claim) for binding in bindings]
        if all(map(self._is_bound, keys)):
            return
        async with self._slots.left(), timeout(self._clock, seconds):
            for key in keys:
                while not self._is_bound(key):
                    await self._changes.setdefault(key, asyncio.Event()).wait()

    async def _bind_claim(self, binding: ClaimBinding, node: str) -> None:
        """Write the claim into its volume, or the node of a new volume into the claim; volume controllers do the rest."""
        claim, volume, is_written, _ = binding
        if volume is None:
            key = Key.of(claim)
            patch = {"metadata": {"uid": meta.uid(claim), "annotations": {SELECTED_NODE: node}}}
            await self._client.patch(PERSISTENT_VOLUME_CLAIMS, key, patch)
        elif not is_written:
            await self._client.update(PERSISTENT_VOLUMES, _with_claim(volume, claim))

    def _is_bound(self, key: Key) -> bool:
        claim = self._claims.lister.get(*key)
        return claim is not None and is_bound(claim)

    def _claim_changed(self, change: Change) -> None:
        if self._changes and (event := self._changes.pop(Key.of(change.last_known), None)) is not None:
            event.set()


def _with_claim(volume: ReadOnlyTree, claim: ReadOnlyTree) -> ReadOnlyTree:
    changed = meta.with_value(volume, ("spec", "claimRef"), claim_reference(claim))
    return meta.with_annotations(changed, {ANNOTATION_PV_BOUND_BY_CONTROLLER: "yes"})
