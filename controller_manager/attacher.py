"""Attach volumes at once, as an external attacher does for a driver: for the drivers that `provisioner` simulates."""

import re
from collections.abc import Iterable
from datetime import datetime
from typing import Final

from mockube.apimachinery import meta
from mockube.controller_manager.cache.store import Caches, Change
from mockube.controller_manager.client.kinds import VOLUME_ATTACHMENTS
from mockube.controller_manager.client.resources import Key
from mockube.controller_manager.control.actions import (
    EMPTY_PLAN,
    ObjectRef,
    Patch,
    Plan,
    RemoveFinalizer,
)
from mockube.controller_manager.control.controller import Controller, Watch
from mockube.controller_manager.provisioner import ANSWERED, SIMULATED

_UNUSUAL: Final = re.compile("[^a-zA-Z0-9-]")


def finalizer(driver: str) -> str:
    text = _UNUSUAL.sub("-", driver)
    return f"external-attacher/{text}{'X' if text.endswith('-') else ''}"


def reconcile(caches: Caches, key: Key, _: datetime) -> Plan:
    volume_attachment = caches.of(VOLUME_ATTACHMENTS).get(*key)
    if volume_attachment is None or volume_attachment["spec"].get("attacher") not in ANSWERED:
        return EMPTY_PLAN
    mine = finalizer(volume_attachment["spec"]["attacher"])
    is_protected = mine in meta.finalizers(volume_attachment)
    if meta.is_deleting(volume_attachment):
        removal = RemoveFinalizer(
            resource=VOLUME_ATTACHMENTS, objects=(ObjectRef.of(volume_attachment),), finalizer=mine
        )
        return Plan(actions=(removal,)) if is_protected else EMPTY_PLAN
    version = {"uid": meta.uid(volume_attachment)}
    protection = {"metadata": {**version, "finalizers": [*meta.finalizers(volume_attachment), mine]}}
    attached = {"metadata": version, "status": {"attached": True}}
    protect = Patch(resource=VOLUME_ATTACHMENTS, key=key, body=protection)
    attach = Patch(resource=VOLUME_ATTACHMENTS, key=key, body=attached, subresource="status")
    is_attached = (volume_attachment.get("status") or {}).get("attached")
    return Plan(actions=(*(() if is_protected else (protect,)), *(() if is_attached else (attach,))))


def _of_itself(_: Caches, change: Change) -> Iterable[Key]:
    return () if change.new is None else (Key.of(change.new),)


ATTACHER: Final = Controller(
    name="simulated-attacher",
    queue="simulated_attacher",
    service_account="",
    event_component=SIMULATED,
    watches=(Watch(resource=VOLUME_ATTACHMENTS, keys=_of_itself),),
    reconcile=reconcile,
    workers=5,
)
