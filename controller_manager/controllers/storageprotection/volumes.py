"""A volume stays for as long as it is bound to a claim."""

from collections.abc import Iterable
from datetime import datetime
from typing import Final

from apimachinery import meta
from apimachinery.wellknown import FINALIZER_PV_PROTECTION
from controller_manager.kinds import PERSISTENT_VOLUMES
from controller_manager.runtime.actions import NOTHING, Plan, Update
from controller_manager.runtime.caches import Caches, Change
from controller_manager.runtime.controller import Controller, Watch
from controller_manager.runtime.resource import Key, Tree


def reconcile(caches: Caches, key: Key, _: datetime) -> Plan:
    volume = caches.of(PERSISTENT_VOLUMES).get(*key)
    if volume is None:
        return NOTHING
    is_protected = FINALIZER_PV_PROTECTION in meta.finalizers(volume)
    if not meta.is_deleting(volume):
        return NOTHING if is_protected else _write(meta.with_finalizer(volume, FINALIZER_PV_PROTECTION))
    if is_protected and (volume.get("status") or {}).get("phase") != "Bound":
        return _write(meta.without_finalizer(volume, FINALIZER_PV_PROTECTION))
    return NOTHING


def _write(body: Tree) -> Plan:
    return Plan(actions=(Update(resource=PERSISTENT_VOLUMES, body=body),))


def _of_volume(_: Caches, change: Change) -> Iterable[Key]:
    return () if change.new is None else (Key.of(change.new),)


VOLUME_PROTECTION: Final = Controller(
    name="persistentvolume-protection-controller",
    queue="pvprotection",
    service_account="pv-protection-controller",
    watches=(Watch(resource=PERSISTENT_VOLUMES, keys=_of_volume),),
    reconcile=reconcile,
    workers=1,
)
