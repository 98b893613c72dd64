"""Compute the change between two templates, and record an in-place update in a pod's annotations, as OpenKruise's JSON."""

import operator
from base64 import b64decode, b64encode
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

import orjson
from msgspec import Struct

from mockube.apimachinery import meta, timestamps
from mockube.apimachinery.patch import json_merge
from mockube.apimachinery.patch.draft import equal
from mockube.apimachinery.timestamps import TimestampError
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.podview import PodView
from mockube.packs.kruise.launch_priority import launch_priority


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


class Batch(NamedTuple):
    """The new images of the containers to update now, and those of containers with a lower launch priority."""

    images: Mapping[str, str]
    later_images: Mapping[str, str]
    awaited: Sequence[str]
    """The containers that must be ready before the later ones are updated."""


def next_batch(pod: PodView) -> Batch:
    """Return the next batch of an update: the containers without a launch priority, and those of the highest one."""
    images = remaining_images(pod)
    first = _first_containers(pod, images)
    return _batch(images, first, sorted(first))


def first_batch(pod: PodView, change: TemplateChange) -> Batch:
    """Return the first batch of a new update. Containers that the last one has not reached still wait for the others."""
    remaining = remaining_images(pod)
    images = {**remaining, **change.images}
    first = [name for name in _first_containers(pod, images) if name not in remaining]
    return _batch(images, first, sorted({*first, *(awaited_containers(pod) if remaining else ())}))


def _batch(images: Mapping[str, str], first: Collection[str], awaited: Sequence[str]) -> Batch:
    now, later = (
        {name: image for name, image in images.items() if (name in first) is is_first}
        for is_first in (True, False)
    )
    return Batch(now, later, awaited)


def _first_containers(pod: PodView, images: Mapping[str, str]) -> list[str]:
    priorities = {
        container["name"]: launch_priority(container)
        for container in pod.object["spec"]["containers"]
        if container["name"] in images
    }
    highest = max((priority for priority in priorities.values() if priority is not None), default=None)
    return [name for name, priority in priorities.items() if priority in (None, highest)]


def delayed_state_text(pod: PodView, change: TemplateChange, started_at: datetime) -> str:
    """Return the state annotation of an update whose change is applied later."""
    return orjson.dumps(_state(pod, change, started_at)).decode()


def state_text(
    pod: PodView, change: TemplateChange, batch: Batch, started_at: datetime, now: datetime
) -> str:
    """Return the state annotation of an update whose first batch is applied now."""
    return _text_of_batch(pod, _state(pod, change, started_at), batch, now)


def next_state_text(pod: PodView, batch: Batch, now: datetime) -> str:
    """Return the state annotation of an update whose next batch is applied now."""
    return _text_of_batch(pod, _read(pod, ANNOTATION_STATE), batch, now)


_STATE_OF_REST: Final = ("nextContainerImages", "preCheckBeforeNext")


def _state(pod: PodView, change: TemplateChange, started_at: datetime) -> dict[str, Any]:
    """Return the state of a new update, with what the last one has not finished."""
    last = _read(pod, ANNOTATION_STATE) if remaining_images(pod) else {}
    return {
        "revision": change.revision,
        "updateTimestamp": timestamps.format_time(started_at),
        "lastContainerStatuses": last.get("lastContainerStatuses"),
        **({"updateImages": True} if change.images or last else {}),
        **{field: last[field] for field in _STATE_OF_REST if field in last},
    }


def _text_of_batch(pod: PodView, state: ReadOnlyTree, batch: Batch, now: datetime) -> str:
    """Return a state annotation with a batch: the ids of the images that it replaces, and the images that remain."""
    replaced = {**(state.get("lastContainerStatuses") or {}), **_replaced_images(pod, batch.images)}
    rest = {
        "nextContainerImages": batch.later_images,
        "preCheckBeforeNext": {"containersRequiredReady": batch.awaited},
    }
    record = {
        **{field: value for field, value in state.items() if field not in _STATE_OF_REST},
        "lastContainerStatuses": replaced or None,
        **(rest if batch.later_images else {}),
        "containerBatchesRecord": [
            *_list(state.get("containerBatchesRecord")),
            {"timestamp": timestamps.format_time(now), "containers": sorted(batch.images)},
        ],
    }
    return orjson.dumps(record).decode()


def _replaced_images(pod: PodView, images: Mapping[str, str]) -> dict[str, ReadOnlyTree]:
    """Return the ids of images to replace, by container. The update does not wait for containers without a status."""
    return {
        status["name"]: {"imageID": status["imageID"]} if status.get("imageID") else {}
        for status in container_statuses(pod)
        if status["name"] in images
    }


def remaining_images(pod: PodView) -> Mapping[str, str]:
    """Return the images of the pod's containers that the later batches of its update change."""
    images = _read(pod, ANNOTATION_STATE).get("nextContainerImages")
    if not isinstance(images, dict):
        return {}
    names = [container["name"] for container in pod.object["spec"]["containers"]]
    return {name: images[name] for name in names if isinstance(images.get(name), str)}


def awaited_containers(pod: PodView) -> Sequence[str]:
    """Return the containers that must be ready before the next batch."""
    check = _read(pod, ANNOTATION_STATE).get("preCheckBeforeNext")
    names = _list(check.get("containersRequiredReady")) if isinstance(check, dict) else []
    return [name for name in names if isinstance(name, str)]


def is_ready_for_next_batch(pod: PodView) -> bool:
    ready = [status["name"] for status in container_statuses(pod) if status.get("ready")]
    return all(name in ready for name in awaited_containers(pod))


def _list(value: Any) -> Sequence[Any]:
    """Return a list; anything else counts as empty."""
    return value if isinstance(value, list) else []


def replaced_images(pod: PodView) -> Mapping[str, str]:
    """Return the ids of the images that the update replaces, by container; an empty id if none is recorded."""
    last = _read(pod, ANNOTATION_STATE).get("lastContainerStatuses") or {}
    return {name: (status or {}).get("imageID") or "" for name, status in last.items()}


def update_time(pod: PodView) -> datetime | None:
    """Return the time at which the update started; None if it cannot be read."""
    try:
        return timestamps.parse_time(_read(pod, ANNOTATION_STATE).get("updateTimestamp") or "")
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
    return (
        None
        if started_at is None
        else timestamps.after(started_at, timestamps.span_of(delayed.grace_seconds))
    )


def _read(pod: PodView, annotation: str) -> ReadOnlyTree:
    """Return the object in an annotation; an unreadable one counts as empty."""
    try:
        record = orjson.loads(meta.annotations(pod.object).get(annotation, "null"))
    except orjson.JSONDecodeError:
        return {}
    return record if isinstance(record, dict) else {}


def container_statuses(pod: PodView) -> Sequence[ReadOnlyTree]:
    return (pod.object.get("status") or {}).get("containerStatuses") or ()
