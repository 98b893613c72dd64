"""Watches and indexes that several controllers share: changes of spec and status, pods by node and claim, attachments."""

from collections.abc import Iterable
from datetime import timedelta
from typing import Final

from mockube.apimachinery import meta
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.controller_manager.cache.store import Caches, Change
from mockube.controller_manager.client.podview import PodView
from mockube.controller_manager.client.resources import Key, Resource
from mockube.controller_manager.control.controller import Watch


def watches_of(
    resource: Resource[ReadOnlyTree],
    *,
    delay: timedelta,
    pause: timedelta = timedelta(),
    max_delay: timedelta = timedelta(),
) -> tuple[Watch, Watch]:
    """Return the watches of a controller's primary resource; the delays apply to changes of the status."""
    return (
        Watch(resource=resource, keys=_keys_of_spec_changes),
        Watch(resource=resource, keys=_keys_of_status_changes, delay=delay, pause=pause, max_delay=max_delay),
    )


def _keys_of_spec_changes(_: Caches, change: Change) -> Iterable[Key]:
    return () if _is_status_change(change) else (Key.of(change.last_known),)


def _keys_of_status_changes(_: Caches, change: Change) -> Iterable[Key]:
    return (Key.of(change.last_known),) if _is_status_change(change) else ()


def _is_status_change(change: Change) -> bool:
    if change.old is None or change.new is None:
        return False
    old, new = ({**meta.metadata(obj), "resourceVersion": ""} for obj in (change.old, change.new))
    return old == new


BY_NODE: Final = "node"
"""The index of pods by their node."""
BY_CLAIM: Final = "claim"
"""The index of pods by the claims that they use, as `namespace/name`."""
BY_ATTACHED_NODE: Final = "attached-node"
"""The index of VolumeAttachments by their node."""


def node_of_pod(pod: PodView) -> Iterable[str]:
    return (pod.node,) if pod.node else ()


def claims_of_pod(pod: PodView) -> Iterable[str]:
    """Yield the keys of a pod's claims; those of ephemeral volumes are named after the pod and the volume."""
    for volume in (pod.object.get("spec") or {}).get("volumes") or ():
        if "persistentVolumeClaim" in volume:
            yield f"{pod.key.namespace}/{volume['persistentVolumeClaim']['claimName']}"
        elif "ephemeral" in volume:
            yield f"{pod.key.namespace}/{pod.key.name}-{volume['name']}"


def node_of_attachment(attachment: ReadOnlyTree) -> Iterable[str]:
    return (attachment["spec"].get("nodeName") or "",)
