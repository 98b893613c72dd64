"""What a pod's annotations remember of its update in place, as the JSON that OpenKruise writes there."""

from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

import orjson

from apimachinery import meta
from apimachinery.timestamps import TimestampError, format_time, parse_time
from controller_manager.runtime.resource import Tree
from controller_manager.workloads.inplace.change import Change
from controller_manager.workloads.podview import PodView

ANNOTATION_STATE: Final = "apps.kruise.io/inplace-update-state"
ANNOTATION_GRACE: Final = "apps.kruise.io/inplace-update-grace"


class Waiting(NamedTuple):
    """A change that is made when the pod has been out of service for so long."""

    change: Change
    seconds: int


# --- the state of the update


def state_text(pod: PodView, change: Change, since: datetime, *, is_made: bool) -> str:
    """Of an update that began then; with the images that are replaced, once the change is made."""
    state: dict[str, Any] = {
        "revision": change.revision,
        "updateTimestamp": format_time(since),
        "lastContainerStatuses": (_replaced(pod, change.images) or None) if is_made else None,
    }
    if change.images:
        state["updateImages"] = True
    return orjson.dumps(state).decode()


def _replaced(pod: PodView, images: Mapping[str, str]) -> dict[str, Tree]:
    """By their ids; a container of which nobody told anything yet is not waited for."""
    return {
        status["name"]: {"imageID": status["imageID"]} if status.get("imageID") else {}
        for status in container_statuses(pod)
        if status["name"] in images
    }


def replaced_images(pod: PodView) -> Mapping[str, str]:
    """The ids of the images that the update replaces, by container; empty if none is remembered."""
    last = _read(pod, ANNOTATION_STATE).get("lastContainerStatuses") or {}
    return {name: (status or {}).get("imageID") or "" for name, status in last.items()}


def begun(pod: PodView) -> datetime | None:
    try:
        return parse_time(_read(pod, ANNOTATION_STATE).get("updateTimestamp") or "")
    except TimestampError:
        return None


# --- the change that waits


def waiting_text(change: Change, seconds: int) -> str:
    metadata = {
        field: value
        for field, value in (("labels", change.labels), ("annotations", change.annotations))
        if value
    }
    said: dict[str, Any] = {"revision": change.revision}
    if change.images:
        said["containerImages"] = dict(change.images)
    if metadata:
        said["metaDataPatch"] = b64encode(orjson.dumps({"metadata": metadata})).decode()
    return orjson.dumps({**said, "graceSeconds": seconds}).decode()


def is_waiting(pod: PodView) -> bool:
    return ANNOTATION_GRACE in meta.annotations(pod.object)


def waiting(pod: PodView) -> Waiting | None:
    """None also if the annotation cannot be read."""
    said = _read(pod, ANNOTATION_GRACE)
    if not isinstance(said.get("revision"), str):
        return None
    try:
        patch = orjson.loads(b64decode(said["metaDataPatch"])) if "metaDataPatch" in said else {}
    except ValueError:
        return None
    metadata = patch.get("metadata") or {}
    change = Change(
        revision=said["revision"],
        images=said.get("containerImages") or {},
        labels=metadata.get("labels") or {},
        annotations=metadata.get("annotations") or {},
    )
    return Waiting(change, said.get("graceSeconds") or 0)


def until(pod: PodView, waits: Waiting) -> datetime | None:
    since = begun(pod)
    return None if since is None else since + timedelta(seconds=waits.seconds)


def _read(pod: PodView, annotation: str) -> Tree:
    """What somebody spoiled says nothing."""
    try:
        said = orjson.loads(meta.annotations(pod.object).get(annotation, "null"))
    except orjson.JSONDecodeError:
        return {}
    return said if isinstance(said, dict) else {}


def container_statuses(pod: PodView) -> Sequence[Tree]:
    return (pod.object.get("status") or {}).get("containerStatuses") or ()
