"""Write the claims of pods that get devices: allocations, reservations, and claims for extended resources.

Upstream: plugins/dynamicresources, from PreBind on.
"""

import logging
from collections.abc import Awaitable
from typing import Any, Final

from mockube.apimachinery import meta
from mockube.apimachinery.status import ApiError, Conflict, NotFound
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.component_helpers import device_claims
from mockube.client.kinds import PODS, RESOURCE_CLAIMS
from mockube.client.podview import PodView
from mockube.client.resources import Key
from mockube.client.verbs import Client
from mockube.client.wire import NoResponse

from .binder import BindingFailure
from .devices.claims import DeviceReservation
from .devices.state import DeviceState

LOG: Final = logging.getLogger(__name__)
_OF_ALLOCATION: Final = ("allocation", "devices", "reservedFor")
"""The fields of a claim's status that an allocation sets."""
_MAX_ATTEMPTS: Final = 5
"""The maximum number of attempts of a write, with the latest version of the claim after a conflict."""


class _ClaimError(Exception):
    """A claim cannot be written. The message is upstream's."""


class DeviceBinder:
    """Writes the reservation of one pod, and withdraws it if the pod is not bound."""

    def __init__(
        self, client: Client, state: DeviceState, pod: PodView, reservation: DeviceReservation
    ) -> None:
        self._client = client
        self._state = state
        self._pod = pod
        self._reservation = reservation
        self._pending = dict(reservation.allocations)
        """The allocations that are not written yet, by the uid of the claim."""
        self._of_user = [*reservation.of_user]
        """The claims of the user, as they were written last."""
        self._created: ReadOnlyTree | None = None
        """The claim that was created for extended resources."""

    async def bind(self) -> None:
        """Write the allocation and reservation of each claim, and the created claim into the pod's status.

        Raises `BindingFailure`.
        """
        try:
            for number, claim in enumerate(self._of_user):
                if not device_claims.is_reserved_for(self._pod, claim):
                    self._of_user[number] = await self._reserve(claim)
            if self._reservation.extended is not None:
                await self._create(self._reservation.extended)
        except (ApiError, NoResponse, _ClaimError) as error:
            raise BindingFailure.of_plugin("PreBind", "DynamicResources", error) from error

    async def withdraw(self) -> None:
        """Remove the reservations of a pod that is not bound, and delete the claim for its extended resources."""
        for claim in self._of_user:
            if device_claims.allocation(claim) is not None and device_claims.is_reserved_for(
                self._pod, claim
            ):
                consumers = [{"$patch": "delete", "uid": self._pod.uid}]
                patch = {"metadata": {"uid": meta.uid(claim)}, "status": {"reservedFor": consumers}}
                await _attempt(
                    f"unreserving {Key.of(claim)}",
                    self._client.patch(
                        RESOURCE_CLAIMS, Key.of(claim), patch, kind="strategic", subresource="status"
                    ),
                )
        if self._created is not None:
            await delete_claim(self._client, self._created)

    def finish(self) -> None:
        """Release the devices of allocations that were not written."""
        if self._pending:
            self._state.forget([*self._pending])

    async def _reserve(self, claim: ReadOnlyTree) -> ReadOnlyTree:
        """Write the allocation of a claim and its reservation for the pod, after the finalizer that protects the claim."""
        latest = claim
        for attempt in range(_MAX_ATTEMPTS):
            try:
                return await self._write(latest, self._pending.get(meta.uid(claim)))
            except Conflict as error:
                if attempt == _MAX_ATTEMPTS - 1:
                    raise _ClaimError(f"{self._action(claim)} {Key.of(claim)}: {error}") from error
                latest = await self._client.get(RESOURCE_CLAIMS, Key.of(claim))
        raise AssertionError("unreachable: the last attempt returns or raises")

    async def _write(self, claim: ReadOnlyTree, allocated: ReadOnlyTree | None) -> ReadOnlyTree:
        if meta.is_deleting(claim):
            raise _ClaimError(f"claim {Key.of(claim)} got deleted in the meantime")
        if allocated is not None:
            if device_claims.allocation(claim) is not None:
                raise _ClaimError(f"claim {Key.of(claim)} got allocated elsewhere in the meantime")
            if device_claims.FINALIZER not in meta.finalizers(claim):
                body = meta.with_finalizer(claim, device_claims.FINALIZER)
                claim = await self._update("add finalizer to claim", body)
            claim = meta.with_value(claim, ("status", "allocation"), allocated)
        body = device_claims.with_consumer(self._pod, claim)
        written = await self._update(self._action(claim), body, subresource="status")
        self._pending.pop(meta.uid(claim), None)
        return written

    def _action(self, claim: ReadOnlyTree) -> str:
        is_allocated = meta.uid(claim) in self._pending
        return f"add {'allocation and ' if is_allocated else ''}reservation to claim"

    async def _update(self, action: str, body: ReadOnlyTree, **options: Any) -> ReadOnlyTree:
        try:
            return await self._client.update(RESOURCE_CLAIMS, body, **options)
        except Conflict:
            raise
        except (ApiError, NoResponse) as error:
            raise _ClaimError(f"{action} {Key.of(body)}: {error}") from error

    async def _create(self, claim: ReadOnlyTree) -> None:
        """Create the claim for extended resources, reserve it, and write it into the pod's status."""
        metadata = {name: value for name, value in claim["metadata"].items() if name not in ("name", "uid")}
        try:
            created = await self._client.create(RESOURCE_CLAIMS, {**claim, "metadata": metadata})
        except (ApiError, NoResponse) as error:
            namespace = meta.namespace(claim)
            raise _ClaimError(f"create claim for extended resources {namespace}/: {error}") from error
        self._created = created
        self._use_uid_of(created, claim)
        self._created = await self._reserve(created)
        await self._write_into_pod(created)

    def _use_uid_of(self, created: ReadOnlyTree, claim: ReadOnlyTree) -> None:
        """Track the devices of the claim by the uid that it has now."""
        allocated = self._pending.pop(meta.uid(claim))
        self._pending[meta.uid(created)] = allocated
        self._state.assume({meta.uid(created): allocated})
        self._state.forget([meta.uid(claim)])

    async def _write_into_pod(self, claim: ReadOnlyTree) -> None:
        key = self._pod.key
        if not self._reservation.is_bindable:
            problem = "nil or empty request mappings, no update of pod"
            raise _ClaimError(f"{problem} {key} ExtendedResourceClaimStatus")
        status = {"resourceClaimName": meta.name(claim), "requestMappings": [*self._reservation.mappings]}
        patch = {"status": {"extendedResourceClaimStatus": status}}
        try:
            await self._client.patch(PODS, key, patch, kind="strategic", subresource="status")
        except (ApiError, NoResponse) as error:
            raise _ClaimError(f"update pod {key} ExtendedResourceClaimStatus: {error}") from error


async def deallocate_claim(client: Client, claim: ReadOnlyTree) -> None:
    """Remove the allocation of a claim that no pod uses, so that it gets other devices."""
    status = {name: value for name, value in claim["status"].items() if name not in _OF_ALLOCATION}
    body = {**claim, "status": status}
    await _attempt(
        f"deallocating {Key.of(claim)}", client.update(RESOURCE_CLAIMS, body, subresource="status")
    )


async def delete_claim(client: Client, claim: ReadOnlyTree) -> None:
    """Delete a claim that the scheduler has created, without the finalizer that protects it."""
    await _attempt(f"deleting {Key.of(claim)}", _delete_claim(client, claim))


async def _delete_claim(client: Client, claim: ReadOnlyTree) -> None:
    for _ in range(_MAX_ATTEMPTS):
        try:
            await client.update(RESOURCE_CLAIMS, meta.without_finalizer(claim, device_claims.FINALIZER))
            break
        except Conflict:
            claim = await client.get(RESOURCE_CLAIMS, Key.of(claim))
    await client.delete(RESOURCE_CLAIMS, Key.of(claim))


async def _attempt(action: str, request: Awaitable[object]) -> None:
    """Wait for a request whose failure is only logged: the next attempt to schedule the pod repeats it."""
    try:
        await request
    except NotFound:
        return
    except (ApiError, NoResponse) as error:
        LOG.warning("scheduler: %s: %s", action, error)
