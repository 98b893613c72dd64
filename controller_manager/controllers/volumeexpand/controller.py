"""The volume expand controller: it records that claims wait for a resizer.

Claims of migrated plugins are also annotated with the resizer.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import Final

from mockube.apimachinery import meta
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.cache.store import Caches, Change
from mockube.client.component_helpers import volumes
from mockube.client.kinds import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES
from mockube.client.queue.reconcile_loop import RequeueWithBackoff
from mockube.client.resources import Key
from mockube.controller_manager.control.actions import EMPTY_PLAN, Action, Patch, Plan, RecordEvent
from mockube.controller_manager.control.controller import Controller, Watch

RESIZER: Final = "volume.kubernetes.io/storage-resizer"
_WAITING: Final = "waiting for an external controller to expand this PVC"
_PLUGINS: Final = {
    "awsElasticBlockStore": "kubernetes.io/aws-ebs",
    "azureDisk": "kubernetes.io/azure-disk",
    "azureFile": "kubernetes.io/azure-file",
    "cinder": "kubernetes.io/cinder",
    "gcePersistentDisk": "kubernetes.io/gce-pd",
    "portworxVolume": "kubernetes.io/portworx-volume",
    "vsphereVolume": "kubernetes.io/vsphere-volume",
}
"""The in-tree plugins that are migrated to drivers, by the field of a volume."""


def reconcile(caches: Caches, key: Key, _: datetime) -> Plan:
    claim = caches.of(PERSISTENT_VOLUME_CLAIMS).get(*key)
    if claim is None or (claim.get("status") or {}).get("phase") != "Bound":
        return EMPTY_PLAN
    name = claim["spec"].get("volumeName") or ""
    volume = caches.of(PERSISTENT_VOLUMES).get("", name)
    if volume is None:
        raise RequeueWithBackoff(f'failed to get PV "{name}": persistentvolumes "{name}" not found')
    reference = volume["spec"].get("claimRef") or {}
    if (reference.get("namespace"), reference.get("uid")) != (key.namespace, meta.uid(claim)):
        raise RequeueWithBackoff(f"persistent Volume is not bound to PVC being updated : {key}")
    has_capacity = volumes.request(claim) <= volumes.status_capacity(claim)
    if has_capacity and volumes.PRE_RESIZE_CAPACITY not in meta.annotations(volume):
        return EMPTY_PLAN
    return Plan(actions=_actions(claim, volume))


def _actions(claim: ReadOnlyTree, volume: ReadOnlyTree) -> tuple[Action, ...]:
    plugin = next((name for field, name in _PLUGINS.items() if field in volume["spec"]), None)
    if plugin is None:
        return (_event(claim, _WAITING),)
    waiting = f"CSI migration enabled for {plugin}; waiting for external resizer to expand the pvc"
    annotations = {RESIZER: volumes.MIGRATED_PLUGINS[plugin]}
    if meta.annotations(claim).get(RESIZER) == volumes.MIGRATED_PLUGINS[plugin]:
        return (_event(claim, waiting),)
    body = {"metadata": {"annotations": annotations, "resourceVersion": meta.resource_version(claim)}}
    patch = Patch(
        resource=PERSISTENT_VOLUME_CLAIMS,
        key=Key.of(claim),
        body=body,
        kind="strategic",
        subresource="status",
    )
    return _event(claim, waiting), patch


def _event(claim: ReadOnlyTree, message: str) -> RecordEvent:
    return RecordEvent(about=claim, type="Normal", reason="ExternalExpanding", message=message)


def _claim_key(_: Caches, change: Change) -> Iterable[Key]:
    """Return the key of a bound claim that is new, or whose request or capacity has grown."""
    old, new = change
    if new is None or (new.get("status") or {}).get("phase") != "Bound":
        return ()
    is_relevant = (
        old is None
        or volumes.request(new) > volumes.request(old)
        or volumes.status_capacity(new) > volumes.status_capacity(old)
    )
    return (Key.of(new),) if is_relevant else ()


EXPAND: Final = Controller(
    name="persistentvolume-expander-controller",
    queue="volume_expand",
    service_account="expand-controller",
    event_component="volume_expand",
    watches=(
        Watch(resource=PERSISTENT_VOLUME_CLAIMS, keys=_claim_key),
        Watch(resource=PERSISTENT_VOLUMES),
    ),
    reconcile=reconcile,
    workers=10,
)
