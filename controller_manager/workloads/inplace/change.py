"""What differs between two templates, if a pod of the one can be made one of the other where it runs."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from apimachinery import meta
from apimachinery.patch import merge
from apimachinery.patch.equality import same
from controller_manager.runtime.resource import Tree


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """New images of containers, and labels and annotations that are new or, where the value is None, go."""

    revision: str
    """The name of the ControllerRevision that the pod then has."""
    images: Mapping[str, str]
    labels: Mapping[str, str | None]
    annotations: Mapping[str, str | None]


def change_between(old: Tree, new: Tree, revision: str) -> Change | None:
    """None if more differs than images, labels and annotations: then a pod has to be made anew."""
    old_spec, new_spec = old.get("spec") or {}, new.get("spec") or {}
    if not same(_without_images(old_spec), _without_images(new_spec)):
        return None
    if not same(_other_metadata(old), _other_metadata(new)):
        return None
    pairs = zip(old_spec.get("containers") or (), new_spec.get("containers") or (), strict=True)
    return Change(
        revision=revision,
        images={two["name"]: two["image"] for one, two in pairs if one.get("image") != two.get("image")},
        labels=merge.diff(meta.labels(old), meta.labels(new)),
        annotations=merge.diff(meta.annotations(old), meta.annotations(new)),
    )


def _without_images(spec: Tree) -> dict[str, Any]:
    """Whether a container has an image at all is kept: one that has none cannot get one in place."""
    containers = [{**it, "image": bool(it.get("image"))} for it in spec.get("containers") or ()]
    return {**spec, "containers": containers}


def _other_metadata(template: Tree) -> dict[str, Any]:
    known = ("labels", "annotations")
    return {field: value for field, value in meta.metadata(template).items() if field not in known and value}
