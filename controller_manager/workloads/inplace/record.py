"""Compute the change between two templates, and record an in-place update in a pod's annotations, as OpenKruise's JSON."""

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


class TemplateChange(Struct, frozen=True, kw_only=True):
    """The new images of containers, and the labels and annotations to set, or to remove if the value is None."""

    revision: str
    """The name of the ControllerRevision to which the pod is updated."""
    images: Mapping[str, str]
    labels: Mapping[str, str | None]
    annotations: Mapping[str, str | None]


def change_between(old: ReadOnlyTree, new: ReadOnlyTree, revision: str) -> TemplateChange | None:
    """Return the change; None if more than images, labels and annotations differs, so that pods must be recreated."""
    old_spec, new_spec = old.get("spec") or {}, new.get("spec") or {}
    if not equal(_without_images(old_spec), _without_images(new_spec)):
        return None
    if not equal(_other_metadata(old), _other_metadata(new)):
        return None
    pairs = zip(old_spec.get("containers") or (), new_spec.get("containers") or (), strict=True)
    return TemplateChange(
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
    """Return the spec with each image replaced by whether there is one, which an in-place update cannot change."""
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


class DelayedChange(NamedTuple):
    """A change that is applied after the pod has been out of service for the grace period."""

    change: TemplateChange
    grace_seconds: int


# --- the state of the update


def state_text(pod: PodView, change: TemplateChange, started_at: datetime, *, is_applied: bool) -> str:
    """Return the state annotation of an update. After the change is applied, it contains the ids of replaced images."""
    state: dict[str, Any] = {
        "revision": change.revision,
        "updateTimestamp": format_time(started_at),
        "lastContainerStatuses": (_replaced_images(pod, change.images) or None) if is_applied else None,
    }
    if change.images:
        state["updateImages"] = True
    return orjson.dumps(state).decode()


def _replaced_images(pod: PodView, images: Mapping[str, str]) -> dict[str, ReadOnlyTree]:
    """Return the ids of images to replace, by container. The update does not wait for containers without a status."""
    return {
        status["name"]: {"imageID": status["imageID"]} if status.get("imageID") else {}
        for status in container_statuses(pod)
        if status["name"] in images
    }


def replaced_images(pod: PodView) -> Mapping[str, str]:
    """Return the ids of the images that the update replaces, by container; an empty id if none is recorded."""
    last = _read(pod, ANNOTATION_STATE).get("lastContainerStatuses") or {}
    return {name: (status or {}).get("imageID") or "" for name, status in last.items()}


def update_time(pod: PodView) -> datetime | None:
    """Return the time at which the update started; None if it cannot be read."""
    try:
        return parse_time(_read(pod, ANNOTATION_STATE).get("updateTimestamp") or "")
    except TimestampError:
        return None


# --- the delayed change


def delayed_change_text(change: TemplateChange, grace_seconds: int) -> str:
    """Return the grace annotation of a delayed change."""
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
    return orjson.dumps({**record, "graceSeconds": grace_seconds}).decode()


def has_delayed_change(pod: PodView) -> bool:
    return ANNOTATION_GRACE in meta.annotations(pod.object)


def delayed_change(pod: PodView) -> DelayedChange | None:
    """Return the delayed change of a pod; None if there is none, or if the annotation cannot be read."""
    record = _read(pod, ANNOTATION_GRACE)
    if not isinstance(record.get("revision"), str):
        return None
    try:
        metadata = _object(orjson.loads(b64decode(record.get("metaDataPatch") or "e30=")).get("metadata"))
        change = TemplateChange(
            revision=record["revision"],
            images=_object(record.get("containerImages")),
            labels=_object(metadata.get("labels")),
            annotations=_object(metadata.get("annotations")),
        )
        return DelayedChange(change, operator.index(record.get("graceSeconds") or 0))
    except (ValueError, TypeError, AttributeError):
        return None


def _object(value: Any) -> ReadOnlyTree:
    """Return an object, empty for null. Raises `TypeError` for any other value."""
    if not isinstance(value or {}, dict):
        raise TypeError(value)
    return value or {}


def grace_period_end(pod: PodView, delayed: DelayedChange) -> datetime | None:
    """Return the time at which a delayed change is due; None if the start of the update cannot be read."""
    started_at = update_time(pod)
    return None if started_at is None else after(started_at, span_of(delayed.grace_seconds))


def _read(pod: PodView, annotation: str) -> ReadOnlyTree:
    """Return the object in an annotation; an unreadable one counts as empty."""
    try:
        record = orjson.loads(meta.annotations(pod.object).get(annotation, "null"))
    except orjson.JSONDecodeError:
        return {}
    return record if isinstance(record, dict) else {}


def container_statuses(pod: PodView) -> Sequence[ReadOnlyTree]:
    return (pod.object.get("status") or {}).get("containerStatuses") or ()
