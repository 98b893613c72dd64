"""The record of an in-place update in a pod's annotations, as OpenKruise's JSON, and the change between two templates."""

import operator
from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

import orjson
from msgspec import Struct

from mockube.apimachinery import meta
from mockube.apimachinery.patch import json_merge
from mockube.apimachinery.patch.draft import equal
from mockube.apimachinery.timestamps import TimestampError, after, format_time, parse_time, span_of
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.controller_manager.client.podview import PodView


class Change(Struct, frozen=True, kw_only=True):
    """New images of containers, and labels and annotations that are new or, where the value is None, go."""

    revision: str
    """The name of the ControllerRevision that the pod then has."""
    images: Mapping[str, str]
    labels: Mapping[str, str | None]
    annotations: Mapping[str, str | None]


def change_between(old: ReadOnlyTree, new: ReadOnlyTree, revision: str) -> Change | None:
    """None if more differs than images, labels and annotations: then a pod has to be recreated."""
    old_spec, new_spec = old.get("spec") or {}, new.get("spec") or {}
    if not equal(_without_images(old_spec), _without_images(new_spec)):
        return None
    if not equal(_other_metadata(old), _other_metadata(new)):
        return None
    pairs = zip(old_spec.get("containers") or (), new_spec.get("containers") or (), strict=True)
    return Change(
        revision=revision,
        images={
            new_container["name"]: new_container["image"]
            for old_container, new_container in pairs
            if old_container.get("image") != new_container.get("image")
        },
        labels=json_merge.diff(meta.labels(old), meta.labels(new)),
        annotations=json_merge.diff(meta.annotations(old), meta.annotations(new)),
    )


def _without_images(spec: ReadOnlyTree) -> dict[str, Any]:
    """Replace each image by whether there is one: a container without an image cannot get one in place."""
    containers = [
        {**container, "image": bool(container.get("image"))} for container in spec.get("containers") or ()
    ]
    return {**spec, "containers": containers}


def _other_metadata(template: ReadOnlyTree) -> dict[str, Any]:
    handled_fields = ("labels", "annotations")
    return {
        field: value
        for field, value in meta.metadata(template).items()
        if field not in handled_fields and value
    }


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
        "lastContainerStatuses": (_replaced_images(pod, change.images) or None) if is_made else None,
    }
    if change.images:
        state["updateImages"] = True
    return orjson.dumps(state).decode()


def _replaced_images(pod: PodView, images: Mapping[str, str]) -> dict[str, ReadOnlyTree]:
    """Image ids by container; a container without a status yet is not waited for."""
    return {
        status["name"]: {"imageID": status["imageID"]} if status.get("imageID") else {}
        for status in container_statuses(pod)
        if status["name"] in images
    }


def replaced_images(pod: PodView) -> Mapping[str, str]:
    """The ids of the images that the update replaces, by container; empty if none is recorded."""
    last = _read(pod, ANNOTATION_STATE).get("lastContainerStatuses") or {}
    return {name: (status or {}).get("imageID") or "" for name, status in last.items()}


def update_time(pod: PodView) -> datetime | None:
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
    record: dict[str, Any] = {"revision": change.revision}
    if change.images:
        record["containerImages"] = dict(change.images)
    if metadata:
        record["metaDataPatch"] = b64encode(orjson.dumps({"metadata": metadata})).decode()
    return orjson.dumps({**record, "graceSeconds": seconds}).decode()


def is_waiting(pod: PodView) -> bool:
    return ANNOTATION_GRACE in meta.annotations(pod.object)


def waiting(pod: PodView) -> Waiting | None:
    """None also if the annotation cannot be read."""
    record = _read(pod, ANNOTATION_GRACE)
    if not isinstance(record.get("revision"), str):
        return None
    try:
        metadata = _object(orjson.loads(b64decode(record.get("metaDataPatch") or "e30=")).get("metadata"))
        change = Change(
            revision=record["revision"],
            images=_object(record.get("containerImages")),
            labels=_object(metadata.get("labels")),
            annotations=_object(metadata.get("annotations")),
        )
        return Waiting(change, operator.index(record.get("graceSeconds") or 0))
    except (ValueError, TypeError, AttributeError):
        return None


def _object(value: Any) -> ReadOnlyTree:
    """An object or nothing; `TypeError` for anything else."""
    if not isinstance(value or {}, dict):
        raise TypeError(value)
    return value or {}


def update_end(pod: PodView, waits: Waiting) -> datetime | None:
    since = update_time(pod)
    return None if since is None else after(since, span_of(waits.seconds))


def _read(pod: PodView, annotation: str) -> ReadOnlyTree:
    """An unreadable annotation counts as empty."""
    try:
        record = orjson.loads(meta.annotations(pod.object).get(annotation, "null"))
    except orjson.JSONDecodeError:
        return {}
    return record if isinstance(record, dict) else {}


def container_statuses(pod: PodView) -> Sequence[ReadOnlyTree]:
    return (pod.object.get("status") or {}).get("containerStatuses") or ()
