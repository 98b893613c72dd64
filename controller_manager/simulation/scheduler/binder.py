"""Bind pods to their nodes: their claims first, where these waited for the node."""

import asyncio
from datetime import timedelta
from typing import Final

from apimachinery import meta
from apimachinery.wellknown import ANNOTATION_PV_BOUND_BY_CONTROLLER
from controller_manager.kinds import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, PODS
from controller_manager.runtime.caches import Change
from controller_manager.runtime.client import Client
from controller_manager.runtime.deadline import within
from controller_manager.runtime.engine import Context
from controller_manager.runtime.resource import Key, Tree
from controller_manager.simulation.scheduler.podinfo import PodInfo
from controller_manager.simulation.scheduler.volumes import Binding, is_bound
from controller_manager.storage.matching import claim_reference
from controller_manager.storage.names import SELECTED_NODE

_LONGEST: Final = timedelta(seconds=600)


class Binder:
    def __init__(self, context: Context) -> None:
        self._client: Client = context.client
        self._clock = context.clock
        self._claims = context.informers.of(PERSISTENT_VOLUME_CLAIMS)
        self._claims.add_handler(self._claim_changed)
        self._changed = asyncio.Event()

    async def bind(self, pod: PodInfo, node: str, bindings: list[Binding]) -> None:
        """Raises `TimeoutError` where claims are not bound in time, and whatever the server answers."""
        for binding in bindings:
            await self._reserve(binding, node)
        async with within(self._clock, _LONGEST.total_seconds()):
            while not all(map(self._is_bound, bindings)):
                self._changed.clear()
                await self._changed.wait()
        key = pod.view.key
        body = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": key.name, "namespace": key.namespace, "uid": pod.view.uid},
            "target": {"kind": "Node", "name": node},
        }
        await self._client.create(PODS, body, key=key, subresource="binding")

    async def _reserve(self, binding: Binding, node: str) -> None:
        """Say which volume a claim is to have, or where a new one is wanted: others do the rest."""
        claim, volume = binding
        if volume is None:
            key = Key.of(claim)
            patch = {"metadata": {"uid": meta.uid(claim), "annotations": {SELECTED_NODE: node}}}
            await self._client.patch(PERSISTENT_VOLUME_CLAIMS, key, patch)
        else:
            await self._client.update(PERSISTENT_VOLUMES, _claimed(volume, claim))

    def _is_bound(self, binding: Binding) -> bool:
        claim = self._claims.lister.get(meta.namespace(binding.claim), meta.name(binding.claim))
        return claim is not None and is_bound(claim)

    def _claim_changed(self, _: Change) -> None:
        self._changed.set()


def _claimed(volume: Tree, claim: Tree) -> Tree:
    changed = meta.with_value(volume, ("spec", "claimRef"), claim_reference(claim))
    return meta.with_annotations(changed, {ANNOTATION_PV_BOUND_BY_CONTROLLER: "yes"})
