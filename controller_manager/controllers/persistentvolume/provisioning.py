"""Ask for a volume to be made: who is to make it is written on the claim, and then it is waited for."""

from typing import Final

from apimachinery import gotext, meta
from controller_manager.kinds import PERSISTENT_VOLUME_CLAIMS, STORAGE_CLASSES
from controller_manager.runtime.actions import Action, Say, Update
from controller_manager.runtime.caches import Caches
from controller_manager.runtime.resource import Tree
from controller_manager.storage import classes
from controller_manager.storage.names import (
    BETA_STORAGE_PROVISIONER,
    IN_TREE_PREFIX,
    MIGRATED,
    STORAGE_PROVISIONER,
)

_WAITING: Final = (
    "Waiting for a volume to be created either by the external provisioner '{provisioner}' or manually by the system "
    "administrator. If volume creation is delayed, please verify that the provisioner is running and correctly "
    "registered."
)


def assign_default(caches: Caches, claim: Tree) -> tuple[Action, ...]:
    """A claim that says nothing of a class gets the default one, also if that came later."""
    default = classes.default_class(caches.of(STORAGE_CLASSES).all())
    if default is None:
        return ()
    body = meta.with_value(claim, ("spec", "storageClassName"), meta.name(default))
    return (Update(resource=PERSISTENT_VOLUME_CLAIMS, body=body),)


def provision(caches: Caches, claim: Tree) -> tuple[Action, ...]:
    name = classes.class_name(claim)
    storage_class = caches.of(STORAGE_CLASSES).get("", name)
    if storage_class is None:
        return (_failed(claim, f"storageclass.storage.k8s.io {gotext.quote(name)} not found"),)
    named: str = storage_class["provisioner"]
    provisioner = MIGRATED.get(named, named)
    if provisioner.startswith(IN_TREE_PREFIX):
        return (_failed(claim, f"no volume plugin matched name: {provisioner}"),)
    if meta.annotations(claim).get(STORAGE_PROVISIONER) == provisioner:
        return ()
    marks = {STORAGE_PROVISIONER: provisioner, BETA_STORAGE_PROVISIONER: provisioner}
    message = _WAITING.format(provisioner=provisioner)
    return (
        Update(resource=PERSISTENT_VOLUME_CLAIMS, body=meta.with_annotations(claim, marks)),
        Say(about=claim, type="Normal", reason="ExternalProvisioning", message=message),
    )


def _failed(claim: Tree, message: str) -> Say:
    return Say(about=claim, type="Warning", reason="ProvisioningFailed", message=message)
