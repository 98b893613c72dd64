"""Provision volumes for claims, as an external CSI provisioner does, and create the default storage class."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any, Final

from mockube.apimachinery import gotext, meta
from mockube.apimachinery.status import AlreadyExists
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apimachinery.volumes import cloned_claim, storage_class_name
from mockube.apimachinery.wellknown import ANNOTATION_DEFAULT_STORAGE_CLASS, LABEL_HOSTNAME
from mockube.client import kinds
from mockube.client.cache.store import Caches, Change
from mockube.client.component_helpers import volumes
from mockube.client.queue.reconcile_loop import ReconcileLoop
from mockube.client.resources import Key
from mockube.controller_manager.control.actions import (
    EMPTY_PLAN,
    Create,
    Delete,
    EventTemplate,
    ObjectRef,
    Plan,
    RecordEvent,
)
from mockube.controller_manager.control.controller import Controller, Watch, key_of_existing_object
from mockube.controller_manager.control.runnable import Context, Runnable

STORAGE_CLASS_NAME: Final = "standard"


def default_storage_class(*, default: bool) -> dict[str, Any]:
    return {
        "kind": kinds.STORAGE_CLASSES.kind,
        "apiVersion": kinds.STORAGE_CLASSES.api_version,
        "metadata": {
            "name": STORAGE_CLASS_NAME,
            "annotations": {ANNOTATION_DEFAULT_STORAGE_CLASS: "true" if default else "false"},
        },
        "provisioner": volumes.SIMULATED_PROVISIONER,
        "reclaimPolicy": "Delete",
        "volumeBindingMode": "WaitForFirstConsumer",
        "allowVolumeExpansion": True,
    }


class DefaultClassCreator:
    """Creates the storage class once when the manager starts; later changes by users are not reverted."""

    def __init__(self, context: Context) -> None:
        self._client = context.client
        self._loop = ReconcileLoop(
            "simulated-storage-class",
            self._create_storage_class,
            workers=1,
            clock=context.clock,
            metrics=context.metrics,
        )

    async def run(self) -> None:
        self._loop.add(Key("", STORAGE_CLASS_NAME))
        await self._loop.run()

    async def _create_storage_class(self, _: Key) -> None:
        present = await self._client.list(kinds.STORAGE_CLASSES)
        body = default_storage_class(default=volumes.default_class(present.items) is None)
        try:
            await self._client.create(kinds.STORAGE_CLASSES, body)
        except AlreadyExists:  # a user or another manager has created it since the list
            return


SIMULATED_STORAGE_CLASS: Final = Runnable(
    name="simulated-storage-class", service_account="", build=DefaultClassCreator
)


_LOCAL_PROVISIONERS: Final = frozenset({volumes.SIMULATED_PROVISIONER, "rancher.io/local-path"})
"""The provisioners whose volumes are on the disk of one node, unless many nodes may use them."""
_SHARED: Final = frozenset({"ReadWriteMany", "ReadOnlyMany"})

_HOST_PATH_ROOT: Final = "/var/lib/mockube/volumes"
"""The parent of host paths in volumes; no directory is created, because nodes are simulated."""


def reconcile(caches: Caches, key: Key, _: datetime) -> Plan:
    """Provision a volume for a claim, or delete a released volume. A key with a namespace names a claim, else a volume."""
    if key.namespace:
        claim = caches.of(kinds.PERSISTENT_VOLUME_CLAIMS).get(*key)
        return EMPTY_PLAN if claim is None else _provision(caches, claim)
    volume = caches.of(kinds.PERSISTENT_VOLUMES).get(*key)
    return _delete(volume) if volume is not None and _should_delete(volume) else EMPTY_PLAN


def _provision(caches: Caches, claim: ReadOnlyTree) -> Plan:
    storage_class = caches.of(kinds.STORAGE_CLASSES).get("", storage_class_name(claim))
    if storage_class is None or not _should_provision(claim, storage_class):
        return EMPTY_PLAN
    volume = _volume(caches, claim, storage_class)
    if caches.of(kinds.PERSISTENT_VOLUMES).get("", meta.name(volume)) is not None:
        return EMPTY_PLAN
    quoted = gotext.quote(str(Key.of(claim)))
    message = f"External provisioner is provisioning volume for claim {quoted}"
    done = ("ProvisioningSucceeded", "Successfully provisioned volume {name}")
    failed = ("ProvisioningFailed", "Error saving provisioned volume: {error}")
    event = EventTemplate(about=claim, on_success=done, on_failure=failed)
    return Plan(
        actions=(
            RecordEvent(about=claim, type="Normal", reason="Provisioning", message=message),
            *_unknown_contents(claim),
            Create(resource=kinds.PERSISTENT_VOLUMES, bodies=(volume,), event=event),
        )
    )


def _unknown_contents(claim: ReadOnlyTree) -> Iterable[RecordEvent]:
    """Return the warning about a claim whose first contents nobody knows: those of a snapshot, or of a populator."""
    source = claim["spec"].get("dataSourceRef") or claim["spec"].get("dataSource")
    if source and not cloned_claim(claim):
        message = f"the contents of the {source['kind']} {source['name']} are not simulated: the volume is empty at first"
        yield RecordEvent(about=claim, type="Warning", reason="NotSimulated", message=message)


def _should_provision(claim: ReadOnlyTree, storage_class: ReadOnlyTree) -> bool:
    annotations = meta.annotations(claim)
    if meta.is_deleting(claim) or claim["spec"].get("volumeName"):
        return False
    is_simulated = annotations.get(volumes.STORAGE_PROVISIONER) in volumes.SIMULATED_PROVISIONERS
    return is_simulated and (
        volumes.SELECTED_NODE in annotations or not volumes.waits_for_consumer(storage_class)
    )


def _volume(caches: Caches, claim: ReadOnlyTree, storage_class: ReadOnlyTree) -> dict[str, Any]:
    name = f"pvc-{meta.uid(claim)}"
    claim_spec = claim["spec"]
    driver = meta.annotations(claim)[volumes.STORAGE_PROVISIONER]
    spec = {
        "capacity": claim_spec["resources"]["requests"],
        **_source(driver, name),
        "accessModes": claim_spec.get("accessModes"),
        "claimRef": volumes.claim_reference(claim),
        "persistentVolumeReclaimPolicy": storage_class.get("reclaimPolicy") or "Delete",
        "storageClassName": meta.name(storage_class),
        "mountOptions": storage_class.get("mountOptions"),
        "volumeMode": claim_spec.get("volumeMode"),
        "nodeAffinity": _local_affinity(caches, claim) or _node_affinity(storage_class),
        "volumeAttributesClassName": claim_spec.get("volumeAttributesClassName"),
    }
    return {
        "kind": kinds.PERSISTENT_VOLUMES.kind,
        "apiVersion": kinds.PERSISTENT_VOLUMES.api_version,
        "metadata": {"name": name, "annotations": {volumes.PROVISIONED_BY: driver}},
        "spec": {field: value for field, value in spec.items() if value},
    }


def _source(driver: str, name: str) -> dict[str, Any]:
    """Return the volume source. The names of CSI drivers contain no slash; older provisioners create host paths."""
    if "/" in driver:
        return {"hostPath": {"path": f"{_HOST_PATH_ROOT}/{name}", "type": "DirectoryOrCreate"}}
    return {"csi": {"driver": driver, "volumeHandle": name}}


def _local_affinity(caches: Caches, claim: ReadOnlyTree) -> dict[str, Any]:
    """Return the node affinity of a volume on the disk of one node, that of the first pod; empty for another volume."""
    annotations = meta.annotations(claim)
    is_shared = not _SHARED.isdisjoint(claim["spec"].get("accessModes") or ())
    node = caches.of(kinds.NODES).get("", annotations.get(volumes.SELECTED_NODE, ""))
    hostname = "" if node is None else meta.labels(node).get(LABEL_HOSTNAME)
    if annotations[volumes.STORAGE_PROVISIONER] not in _LOCAL_PROVISIONERS or is_shared or not hostname:
        return {}
    expression = {"key": LABEL_HOSTNAME, "operator": "In", "values": [hostname]}
    return {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}


def _node_affinity(storage_class: ReadOnlyTree) -> dict[str, Any]:
    """Return the node affinity of a volume: the allowed topologies of its class."""
    terms = [
        {
            "matchExpressions": [
                {"key": requirement["key"], "operator": "In", "values": requirement["values"]}
                for requirement in topology.get("matchLabelExpressions") or ()
            ]
        }
        for topology in storage_class.get("allowedTopologies") or ()
    ]
    return {"required": {"nodeSelectorTerms": terms}} if terms else {}


def _should_delete(volume: ReadOnlyTree) -> bool:
    is_released = (volume.get("status") or {}).get("phase") == "Released"
    policy = volume["spec"].get("persistentVolumeReclaimPolicy")
    is_simulated = meta.annotations(volume).get(volumes.PROVISIONED_BY) in volumes.SIMULATED_PROVISIONERS
    return is_simulated and is_released and policy == "Delete" and not meta.is_deleting(volume)


def _delete(volume: ReadOnlyTree) -> Plan:
    ref = ObjectRef.of(volume)
    return Plan(actions=(Delete(resource=kinds.PERSISTENT_VOLUMES, objects=(ref,)),))


def _claims_of_class(caches: Caches, change: Change) -> Iterable[Key]:
    claims = caches.of(kinds.PERSISTENT_VOLUME_CLAIMS).all()
    return (Key.of(claim) for claim in claims if storage_class_name(claim) == meta.name(change.last_known))


PROVISIONER: Final = Controller(
    name="simulated-provisioner",
    queue="simulated_provisioner",
    service_account="",
    event_component=volumes.SIMULATED_PROVISIONER,
    watches=(
        Watch(resource=kinds.PERSISTENT_VOLUME_CLAIMS, keys=key_of_existing_object),
        Watch(resource=kinds.PERSISTENT_VOLUMES, keys=key_of_existing_object),
        Watch(resource=kinds.STORAGE_CLASSES, keys=_claims_of_class),
        Watch(resource=kinds.NODES),
    ),
    reconcile=reconcile,
    workers=5,
)
