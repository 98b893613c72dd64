"""What becomes of a claim: it finds its volume, or waits for one, or has lost it."""

from typing import Final, Literal

from apimachinery import gotext, meta
from controller_manager.controllers.persistentvolume import binding, lookups, provisioning
from controller_manager.kinds import PERSISTENT_VOLUMES, STORAGE_CLASSES
from controller_manager.runtime.actions import Action, Plan, Say
from controller_manager.runtime.caches import Caches
from controller_manager.runtime.resource import Tree
from controller_manager.storage import classes, matching
from controller_manager.storage.names import SELECTED_NODE

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


def reconcile(caches: Caches, claim: Tree) -> Plan:
    sync = _bound if binding.is_completed(claim) else _unbound
    return Plan(actions=sync(caches, claim))


def _bound(caches: Caches, claim: Tree) -> tuple[Action, ...]:
    name = claim["spec"].get("volumeName")
    if not name:
        return _lost(claim, *_LOST_REFERENCE)
    volume = caches.of(PERSISTENT_VOLUMES).get("", name)
    if volume is None:
        return _lost(claim, *_LOST_VOLUME)
    if (volume["spec"].get("claimRef") or {}).get("uid") in (None, meta.uid(claim)):
        return binding.bind(volume, claim)
    return _lost(claim, *_MISBOUND)


def _lost(claim: Tree, reason: str, message: str) -> tuple[Action, ...]:
    """Told once: the data are gone, whatever comes later."""
    told = binding.unbound_status(claim, "Lost")
    return (*told, say(claim, "Warning", reason, message)) if told else ()


def _unbound(caches: Caches, claim: Tree) -> tuple[Action, ...]:
    name = claim["spec"].get("volumeName")
    if name:
        return _requested(claim, name, caches.of(PERSISTENT_VOLUMES).get("", name))
    waits = classes.waits_for_consumer(caches.of(STORAGE_CLASSES).get("", classes.class_name(claim)))
    # Where a consumer is awaited the scheduler chooses, and the volume names the claim then.
    candidates = [*lookups.volumes_naming(caches, claim)]
    candidates += () if waits else lookups.free_volumes(caches, classes.class_name(claim))
    volume = matching.best(candidates, claim)
    if volume is not None:
        return binding.bind(volume, claim)
    default = None if classes.says_its_class(claim) else provisioning.assign_default(caches, claim)
    return default or _without_volume(caches, claim, waits=waits)


def _without_volume(caches: Caches, claim: Tree, *, waits: bool) -> tuple[Action, ...]:
    if waits and SELECTED_NODE not in meta.annotations(claim):
        told: tuple[Action, ...] = (_consumer_awaited(caches, claim),)
    elif classes.class_name(claim):
        told = provisioning.provision(caches, claim)
    else:
        told = (say(claim, "Normal", "FailedBinding", _NO_VOLUME),)
    return told + _pending(claim)


def _pending(claim: Tree) -> tuple[Action, ...]:
    return binding.unbound_status(claim, "Pending")


def _consumer_awaited(caches: Caches, claim: Tree) -> Say:
    pods = lookups.unscheduled_consumers(caches, claim)
    if not pods:
        message = "waiting for first consumer to be created before binding"
        return say(claim, "Normal", "WaitForFirstConsumer", message)
    noun = "pod" if len(pods) == 1 else "pods"
    message = f"waiting for {noun} {','.join(pods)} to be scheduled"
    return say(claim, "Normal", "WaitForPodScheduled", message)


def _requested(claim: Tree, name: str, volume: Tree | None) -> tuple[Action, ...]:
    """Somebody has chosen the volume; it may not be there yet."""
    if volume is None:
        return _pending(claim)
    quoted = gotext.quote(name)
    if volume["spec"].get("claimRef") is None:
        problem = matching.misfit(volume, claim)
        if not problem:
            return binding.bind(volume, claim)
        message = f"Cannot bind to requested volume {quoted}: {problem}"
        return (say(claim, "Warning", "VolumeMismatch", message), *_pending(claim))
    if matching.is_bound_to(volume, claim):
        return binding.bind(volume, claim)
    taken = say(claim, "Warning", "FailedBinding", f"volume {quoted} already bound to a different claim.")
    return (taken, *_pending(claim))


def say(claim: Tree, kind: Literal["Normal", "Warning"], reason: str, message: str) -> Say:
    return Say(about=claim, type=kind, reason=reason, message=message)
