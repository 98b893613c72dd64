"""Attach volumes at once, as a driver's external attacher does, for the drivers that `provisioner` simulates."""

import re
from datetime import datetime
from typing import Final

from mockube.apimachinery import meta
from mockube.client.cache.store import Caches
from mockube.client.component_helpers.volumes import SIMULATED_PROVISIONER, SIMULATED_PROVISIONERS
from mockube.client.kinds import VOLUME_ATTACHMENTS
from mockube.client.resources import Key
from mockube.controller_manager.control.actions import EMPTY_PLAN, ObjectRef, Patch, Plan, RemoveFinalizer
from mockube.controller_manager.control.controller import Controller, Watch, key_of_existing_object

_INVALID_CHARACTERS: Final = re.compile("[^a-zA-Z0-9-]")


def finalizer(driver: str) -> str:
    text = _INVALID_CHARACTERS.sub("-", driver)
    return f"external-attacher/{text}{'X' if text.endswith('-') else ''}"


def reconcile(caches: Caches, key: Key, _: datetime) -> Plan:
    volume_attachment = caches.of(VOLUME_ATTACHMENTS).get(*key)
    if volume_attachment is None or volume_attachment["spec"].get("attacher") not in SIMULATED_PROVISIONERS:
        return EMPTY_PLAN
    own_finalizer = finalizer(volume_attachment["spec"]["attacher"])
    is_protected = own_finalizer in meta.finalizers(volume_attachment)
    if meta.is_deleting(volume_attachment):
        removal = RemoveFinalizer(
            resource=VOLUME_ATTACHMENTS, objects=(ObjectRef.of(volume_attachment),), finalizer=own_finalizer
        )
        return Plan(actions=(removal,)) if is_protected else EMPTY_PLAN
    precondition = {"uid": meta.uid(volume_attachment)}
    protection = {
        "metadata": {**precondition, "finalizers": [*meta.finalizers(volume_attachment), own_finalizer]}
    }
    attached = {"metadata": precondition, "status": {"attached": True}}
    protect = Patch(resource=VOLUME_ATTACHMENTS, key=key, body=protection)
    attach = Patch(resource=VOLUME_ATTACHMENTS, key=key, body=attached, subresource="status")
    is_attached = (volume_attachment.get("status") or {}).get("attached")
    return Plan(actions=(*(() if is_protected else (protect,)), *(() if is_attached else (attach,))))


ATTACHER: Final = Controller(
    name="simulated-attacher",
    queue="simulated_attacher",
    service_account="",
    event_component=SIMULATED_PROVISIONER,
    watches=(Watch(resource=VOLUME_ATTACHMENTS, keys=key_of_existing_object),),
    reconcile=reconcile,
    workers=5,
)
