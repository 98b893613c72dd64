"""Bind pods to their nodes, after their volumes are bound."""

import asyncio

from mockube.apimachinery import meta
from mockube.apimachinery.status import ApiError
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apimachinery.wellknown import ANNOTATION_PV_BOUND_BY_CONTROLLER
from mockube.component_base.supervision import timeout
from mockube.controller_manager.cache.store import Change
from mockube.controller_manager.client.client import Client
from mockube.controller_manager.client.kinds import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, PODS
from mockube.controller_manager.client.resources import Key
from mockube.controller_manager.client.wire import NoResponse
from mockube.controller_manager.control.runnable import Context
from mockube.controller_manager.workloads.volumes import SELECTED_NODE, claim_reference

from .podinfo import PodInfo
from .volumes import ClaimBinding, is_bound


class BindingFailure(Exception):
    """A plugin could not bind a pod or what it needs. The message is that of upstream's framework."""

    def __init__(self, point: str, plugin: str, problem: object) -> None:
        super().__init__(f'running {point} plugin "{plugin}": {problem}')


class Binder:
    """Writes the scheduler's decisions."""

    def __init__(self, context: Context) -> None:
        self._client: Client = context.client
        self._clock = context.clock
        self._claims = context.informers.of(PERSISTENT_VOLUME_CLAIMS)
        self._claims.add_handler(self._claim_changed)
        self._changed = asyncio.Event()

    async def bind(self, pod: PodInfo, node: str, bindings: list[ClaimBinding], seconds: float) -> None:
        """Bind the claims, which may take some seconds, and then the pod. Raises `BindingFailure`."""
        try:
            await self._bind_claims(node, bindings, seconds)
        except TimeoutError as error:
            problem = "binding volumes: context deadline exceeded"
            raise BindingFailure("PreBind", "VolumeBinding", problem) from error
        except (ApiError, NoResponse) as error:
            raise BindingFailure("PreBind", "VolumeBinding", error) from error
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
            raise BindingFailure("Bind", "DefaultBinder", error) from error

    async def _bind_claims(self, node: str, bindings: list[ClaimBinding], seconds: float) -> None:
        """Bind claims. Raises `TimeoutError` if they are not bound in time, and errors of requests."""
        for binding in bindings:
            await self._bind_claim(binding, node)
        async with timeout(self._clock, seconds):
            while not all(map(self._is_bound, bindings)):
                self._changed.clear()
                await self._changed.wait()

    async def _bind_claim(self, binding: ClaimBinding, node: str) -> None:
        """Write the claim into its volume, or the node of a new volume into the claim; volume controllers do the rest."""
        claim, volume, is_written, _ = binding
        if volume is None:
            key = Key.of(claim)
            patch = {"metadata": {"uid": meta.uid(claim), "annotations": {SELECTED_NODE: node}}}
            await self._client.patch(PERSISTENT_VOLUME_CLAIMS, key, patch)
        elif not is_written:
            await self._client.update(PERSISTENT_VOLUMES, _with_claim(volume, claim))

    def _is_bound(self, binding: ClaimBinding) -> bool:
        claim = self._claims.lister.get(meta.namespace(binding.claim), meta.name(binding.claim))
        return claim is not None and is_bound(claim)

    def _claim_changed(self, _: Change) -> None:
        self._changed.set()


def _with_claim(volume: ReadOnlyTree, claim: ReadOnlyTree) -> ReadOnlyTree:
    changed = meta.with_value(volume, ("spec", "claimRef"), claim_reference(claim))
    return meta.with_annotations(changed, {ANNOTATION_PV_BOUND_BY_CONTROLLER: "yes"})
