"""The creation and the deletion of pods, with the Events of upstream's `RealPodControl`."""

from collections.abc import Iterable

from mockube.apimachinery import wellknown
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.kinds import PODS
from mockube.client.podview import PodView
from mockube.controller_manager.control.actions import Create, Delete, EventTemplate, ObjectRef


def pod_creation(owner: ReadOnlyTree, bodies: tuple[ReadOnlyTree, ...]) -> Create:
    event = EventTemplate(
        about=owner,
        on_success=(wellknown.REASON_SUCCESSFUL_CREATE, "Created pod: {name}"),
        on_failure=(wellknown.REASON_FAILED_CREATE, "Error creating: {error}"),
    )
    return Create(resource=PODS, bodies=bodies, event=event)


def pod_deletion(owner: ReadOnlyTree, pods: Iterable[PodView]) -> Delete:
    """Return the deletion of pods, each of them once."""
    event = EventTemplate(
        about=owner,
        on_success=(wellknown.REASON_SUCCESSFUL_DELETE, "Deleted pod: {name}"),
        on_failure=(wellknown.REASON_FAILED_DELETE, "Error deleting: {error}"),
    )
    refs = tuple(dict.fromkeys(ObjectRef(pod.key, pod.uid) for pod in pods))
    return Delete(resource=PODS, objects=refs, event=event)
