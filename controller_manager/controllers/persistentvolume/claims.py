"""The reconciliation of a claim: it is bound to a volume, or waits for a provisioner, or its volume is lost."""

from typing import Final, Literal

from mockube.apimachinery import gotext, meta
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apimachinery.volumes import storage_class_name
from mockube.client.cache.store import Caches
from mockube.client.component_helpers import volumes
from mockube.client.kinds import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, STORAGE_CLASSES
from mockube.controller_manager.control.actions import Action, Plan, RecordEvent, Update

from . import binding

_WAITING: Final = (
    "Waiting for a volume to be created either by the external provisioner '{provisioner}' or manually by the system "
    "administrator. If volume creation is delayed, please verify that the provisioner is running and correctly "
    "registered."
)


def assign_default(caches: Caches, claim: ReadOnlyTree) -> tuple[Action, ...]:
    """Assign the default StorageClass to a claim without a class, even if that class is created later."""
    default = volumes.default_class(caches.of(STORAGE_CLASSES).all())
    if default is None:
        return ()
    body = meta.with_value(claim, ("spec", "storageClassName"), meta.name(default))
    return (Update(resource=PERSISTENT_VOLUME_CLAIMS, body=body),)


def provision(caches: Caches, claim: ReadOnlyTree) -> tuple[Action, ...]:
    name = storage_class_name(claim)
    storage_class = caches.of(STORAGE_CLASSES).get("", name)
    if storage_class is None:
        return (_failure_event(claim, f"storageclass.storage.k8s.io {gotext.quote(name)} not found"),)
    class_provisioner: str = storage_class["provisioner"]
    provisioner = volumes.MIGRATED_PLUGINS.get(class_provisioner, class_provisioner)
    if provisioner.startswith(volumes.IN_TREE_PREFIX):
        return (_failure_event(claim, f"no volume plugin matched name: {provisioner}"),)
    if meta.annotations(claim).get(volumes.STORAGE_PROVISIONER) == provisioner:
        return ()
    annotations = {volumes.STORAGE_PROVISIONER: provisioner, volumes.BETA_STORAGE_PROVISIONER: provisioner}
    message = _WAITING.format(provisioner=provisioner)
    return (
        Update(resource=PERSISTENT_VOLUME_CLAIMS, body=meta.with_annotations(claim, annotations)),
        RecordEvent(about=claim, type="Normal", reason="ExternalProvisioning", message=message),
    )


def _failure_event(claim: ReadOnlyTree, message: str) -> RecordEvent:
    return RecordEvent(about=claim, type="Warning", reason="ProvisioningFailed", message=message)


_LOST_REFERENCE: Final = (
    "ClaimLost",
    "Bound claim has lost reference to PersistentVolume. Data on the volume is lost!",
)
_LOST_VOLUME: Final = ("ClaimLost", "Bound claim has lost its PersistentVolume. Data on the volume is lost!")
_MISBOUND: Final = (
    "ClaimMisbound",
    "Two claims are bound to the same volume, this one is bound incorrectly",
)
_NO_VOLUME: Final = "no persistent volumes available for this claim and no storage class is set"


def reconcile(caches: Caches, claim: ReadOnlyTree) -> Plan:
    sync = _sync_bound if binding.is_bind_completed(claim) else _sync_unbound
    return Plan(actions=sync(caches, claim))


def _sync_bound(caches: Caches, claim: ReadOnlyTree) -> tuple[Action, ...]:
    name = claim["spec"].get("volumeName")
    if not name:
        return _mark_lost(claim, *_LOST_REFERENCE)
    volume = caches.of(PERSISTENT_VOLUMES).get("", name)
    if volume is None:
        return _mark_lost(claim, *_LOST_VOLUME)
    if (volume["spec"].get("claimRef") or {}).get("uid") in (None, meta.uid(claim)):
        return binding.bind(volume, claim)
    return _mark_lost(claim, *_MISBOUND)


def _mark_lost(claim: ReadOnlyTree, reason: str, message: str) -> tuple[Action, ...]:
    """Set the phase Lost, and record an Event once."""
    binding_actions = binding.unbound_status_update(claim, "Lost")
    return (*binding_actions, record_event(claim, "Warning", reason, message)) if binding_actions else ()


def _sync_unbound(caches: Caches, claim: ReadOnlyTree) -> tuple[Action, ...]:
    name = claim["spec"].get("volumeName")
    if name:
        return _sync_requested(claim, name, caches.of(PERSISTENT_VOLUMES).get("", name))
    waits = volumes.waits_for_consumer(caches.of(STORAGE_CLASSES).get("", storage_class_name(claim)))
    # If the claim waits for a consumer, the scheduler chooses the volume, which then refers to the claim.
    candidates = [*binding.volumes_referring_to(caches, claim)]
    candidates += () if waits else binding.unclaimed_volumes(caches, storage_class_name(claim))
    volume = volumes.best_match(candidates, claim)
    if volume is not None:
        return binding.bind(volume, claim)
    default = None if volumes.has_storage_class_name(claim) else assign_default(caches, claim)
    return default or _sync_without_volume(caches, claim, waits=waits)


def _sync_without_volume(caches: Caches, claim: ReadOnlyTree, *, waits: bool) -> tuple[Action, ...]:
    if waits and volumes.SELECTED_NODE not in meta.annotations(claim):
        binding_actions: tuple[Action, ...] = (_waiting_for_consumer_event(caches, claim),)
    elif storage_class_name(claim):
        binding_actions = provision(caches, claim)
    else:
        binding_actions = (record_event(claim, "Normal", "FailedBinding", _NO_VOLUME),)
    return binding_actions + _pending_status_update(claim)


def _pending_status_update(claim: ReadOnlyTree) -> tuple[Action, ...]:
    return binding.unbound_status_update(claim, "Pending")


def _waiting_for_consumer_event(caches: Caches, claim: ReadOnlyTree) -> RecordEvent:
    pods = binding.unscheduled_consumers(caches, claim)
    if not pods:
        message = "waiting for first consumer to be created before binding"
        return record_event(claim, "Normal", "WaitForFirstConsumer", message)
    noun = "pod" if len(pods) == 1 else "pods"
    message = f"waiting for {noun} {','.join(pods)} to be scheduled"
    return record_event(claim, "Normal", "WaitForPodScheduled", message)


def _sync_requested(claim: ReadOnlyTree, name: str, volume: ReadOnlyTree | None) -> tuple[Action, ...]:
    """Sync a claim that requests a volume by name; the volume may not exist yet."""
    if volume is None:
        return _pending_status_update(claim)
    quoted = gotext.quote(name)
    if volume["spec"].get("claimRef") is None:
        problem = volumes.mismatch_reason(volume, claim)
        if not problem:
            return binding.bind(volume, claim)
        message = f"Cannot bind to requested volume {quoted}: {problem}"
        return (record_event(claim, "Warning", "VolumeMismatch", message), *_pending_status_update(claim))
    if volumes.is_bound_to(volume, claim):
        return binding.bind(volume, claim)
    event = record_event(
        claim, "Warning", "FailedBinding", f"volume {quoted} already bound to a different claim."
    )
    return (event, *_pending_status_update(claim))


def record_event(
    claim: ReadOnlyTree, kind: Literal["Normal", "Warning"], reason: str, message: str
) -> RecordEvent:
    return RecordEvent(about=claim, type=kind, reason=reason, message=message)
