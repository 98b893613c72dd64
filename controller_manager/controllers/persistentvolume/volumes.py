"""The reconciliation of a volume: its phase, and its deletion after that of its claim."""

from collections.abc import Sequence
from functools import partial
from typing import Any, Final

from mockube.apimachinery import gotext, meta
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.cache.store import Caches
from mockube.client.component_helpers.volumes import PROVISIONED_BY
from mockube.client.kinds import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES
from mockube.controller_manager.control.actions import Action, Confirm, Delete, ObjectRef, Plan, RecordEvent

from . import binding

_CLAIMLESS_PHASES: Final = ("Released", "Failed")
"""The phases of a volume whose claim is known to be deleted."""


def reconcile(caches: Caches, volume: ReadOnlyTree) -> Plan:
    ref = volume["spec"].get("claimRef")
    if ref is None or not ref.get("uid"):
        return Plan(actions=binding.phase_update(volume, "Available"))
    claim = caches.of(PERSISTENT_VOLUME_CLAIMS).get(ref["namespace"], ref["name"])
    if claim is None or meta.uid(claim) != ref["uid"]:
        return Plan(actions=_without_claim(volume, ref))
    return Plan(actions=_with_claim(volume, claim))


def _with_claim(volume: ReadOnlyTree, claim: ReadOnlyTree) -> tuple[Action, ...]:
    volume_name = claim["spec"].get("volumeName")
    if not volume_name:
        return ()  # the reconciliation of the claim completes the binding
    if volume_name == meta.name(volume):
        return binding.phase_update(volume, "Bound")
    if PROVISIONED_BY in meta.annotations(volume) and _policy(volume) == "Delete":
        return _release(volume)  # it was provisioned for this claim, which is bound to another volume
    return binding.remove_binding(volume)


def _without_claim(volume: ReadOnlyTree, ref: ReadOnlyTree) -> tuple[Action, ...]:
    if _phase(volume) in _CLAIMLESS_PHASES:
        return _release(volume)
    confirmation = Confirm(
        resource=PERSISTENT_VOLUME_CLAIMS,
        namespace=ref["namespace"],
        name=ref["name"],
        holds=partial(_is_absent, ref["uid"]),
    )
    return (confirmation, *binding.phase_update(volume, "Released"))


def _is_absent(uid: str, claims: Sequence[Any]) -> bool:
    return not any(meta.uid(claim) == uid for claim in claims)


def _phase(volume: ReadOnlyTree) -> str:
    return (volume.get("status") or {}).get("phase") or ""


def _policy(volume: ReadOnlyTree) -> str:
    return volume["spec"].get("persistentVolumeReclaimPolicy") or "Retain"


# --- volumes without a claim


def _release(volume: ReadOnlyTree) -> tuple[Action, ...]:
    """Write the phase Released; when the cache contains it, apply the reclaim policy."""
    if _phase(volume) not in _CLAIMLESS_PHASES:
        return binding.phase_update(volume, "Released")
    policy = _policy(volume)
    if policy == "Recycle":
        return _mark_failed(volume, "VolumeFailedRecycle", "No recycler plugin found for the volume!")
    return _delete(volume) if policy == "Delete" else ()


def _delete(volume: ReadOnlyTree) -> tuple[Action, ...]:
    """Delete a volume of a plugin in this controller; provisioners and drivers delete all others."""
    spec = volume["spec"]
    if PROVISIONED_BY in meta.annotations(volume) or "csi" in spec or meta.is_deleting(volume):
        return ()
    name = gotext.quote(meta.name(volume))
    path = (spec.get("hostPath") or {}).get("path")
    if path is None:
        problem = f"error getting deleter volume plugin for volume {name}: no deletable volume plugin matched"
        return _mark_failed(volume, "VolumeFailedDelete", problem)
    if not path.startswith(_DELETABLE_PATH_PREFIX):
        problem = f"host_path deleter only supports /tmp/.+ but received provided {path}"
        return _mark_failed(volume, "VolumeFailedDelete", problem)
    ref = ObjectRef.of(volume)
    return (Delete(resource=PERSISTENT_VOLUMES, objects=(ref,)),)


_DELETABLE_PATH_PREFIX: Final = "/tmp/"  # noqa: S108 - upstream's plugin deletes only there; nothing is written


def _mark_failed(volume: ReadOnlyTree, reason: str, message: str) -> tuple[Action, ...]:
    update = binding.phase_update(volume, "Failed", message)
    event = RecordEvent(about=volume, type="Warning", reason=reason, message=message)
    return (*update, event) if update else ()
