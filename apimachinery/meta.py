"""Access to the metadata of objects: name, labels, owner references and so on.

Trees are never mutated, because stored trees are shared: a `with_…` function returns a new tree that shares every
unchanged part with the old one. An absent field reads as empty.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from .timestamps import parse_time
from .tree import ReadOnlyTree

_EMPTY: Final[ReadOnlyTree] = {}

FIELD_ORDER: Final = (
    "name", "generateName", "namespace", "selfLink", "uid", "resourceVersion", "generation", "creationTimestamp",
    "deletionTimestamp", "deletionGracePeriodSeconds", "labels", "annotations", "ownerReferences", "finalizers",
    "managedFields",
)  # fmt: skip
"""The order of the fields of metadata in JSON."""
_OMITTED_IF_EMPTY: Final = frozenset(FIELD_ORDER) - {"deletionGracePeriodSeconds"}
"""The fields that are left out when empty. A grace period of 0 seconds is different from none."""


class _Positions(dict[str, int]):
    """The positions of the fields of metadata; unknown fields are last."""

    def __missing__(self, field: str) -> int:
        return len(self)


_POSITIONS: Final = _Positions((field, position) for position, field in enumerate(FIELD_ORDER))


def in_order(fields: Iterable[str]) -> list[str]:
    """Sort fields of metadata in the order of JSON."""
    return sorted(fields, key=_POSITIONS.__getitem__)


# --- reading


def api_version(obj: ReadOnlyTree) -> str:
    return obj.get("apiVersion") or ""


def kind(obj: ReadOnlyTree) -> str:
    return obj.get("kind") or ""


def metadata(obj: ReadOnlyTree) -> ReadOnlyTree:
    return obj.get("metadata") or _EMPTY


def name(obj: ReadOnlyTree) -> str:
    return metadata(obj).get("name") or ""


def generate_name(obj: ReadOnlyTree) -> str:
    return metadata(obj).get("generateName") or ""


def namespace(obj: ReadOnlyTree) -> str:
    return metadata(obj).get("namespace") or ""


def namespaced_name(obj: ReadOnlyTree) -> str:
    """Return `namespace/name`, as upstream's messages do."""
    return f"{namespace(obj)}/{name(obj)}"


def uid(obj: ReadOnlyTree) -> str:
    return metadata(obj).get("uid") or ""


def resource_version(obj: ReadOnlyTree) -> str:
    return metadata(obj).get("resourceVersion") or ""


def generation(obj: ReadOnlyTree) -> int:
    return metadata(obj).get("generation") or 0


def labels(obj: ReadOnlyTree) -> Mapping[str, str]:
    return metadata(obj).get("labels") or _EMPTY


def annotations(obj: ReadOnlyTree) -> Mapping[str, str]:
    return metadata(obj).get("annotations") or _EMPTY


def finalizers(obj: ReadOnlyTree) -> Sequence[str]:
    return metadata(obj).get("finalizers") or ()


def owner_references(obj: ReadOnlyTree) -> Sequence[ReadOnlyTree]:
    return metadata(obj).get("ownerReferences") or ()


def controller_of(obj: ReadOnlyTree) -> ReadOnlyTree | None:
    """Return the owner reference of the managing controller; an object has at most one."""
    return next((owner for owner in owner_references(obj) if owner.get("controller") is True), None)


def is_controlled_by(obj: ReadOnlyTree, owner: ReadOnlyTree) -> bool:
    reference = controller_of(obj)
    return reference is not None and reference.get("uid") == uid(owner)


def creation_timestamp(obj: ReadOnlyTree) -> datetime | None:
    return _time(obj, "creationTimestamp")


def deletion_timestamp(obj: ReadOnlyTree) -> datetime | None:
    return _time(obj, "deletionTimestamp")


def _time(obj: ReadOnlyTree, field: str) -> datetime | None:
    text = metadata(obj).get(field)
    return parse_time(text) if text else None


def is_deleting(obj: ReadOnlyTree) -> bool:
    """Return whether a deletion was requested; finalizers or a grace period delay it."""
    return bool(metadata(obj).get("deletionTimestamp"))


def deletion_grace_period_seconds(obj: ReadOnlyTree) -> int | None:
    return metadata(obj).get("deletionGracePeriodSeconds")


def value_at(tree: Any, path: Iterable[str]) -> Any:
    """Return the value at a path of fields; None if a field is absent or its parent is not an object."""
    for field in path:
        tree = tree.get(field) if isinstance(tree, dict) else None
    return tree


# --- changing a copy


def with_value(tree: ReadOnlyTree, path: Sequence[str], value: Any) -> dict[str, Any]:
    """Return the tree with a value set at a path of fields; missing objects on the path are created."""
    field, *rest = path
    return {**tree, field: with_value(tree.get(field) or _EMPTY, rest, value) if rest else value}


def with_metadata(obj: ReadOnlyTree, **changes: Any) -> dict[str, Any]:
    """Return the object with changed metadata, its fields in order and without empty ones."""
    changed = {**metadata(obj), **changes}
    ordered = {
        field: value
        for field in in_order(changed)
        if (value := changed[field]) or (value is not None and field not in _OMITTED_IF_EMPTY)
    }
    return {**obj, "metadata": ordered}


def with_labels(obj: ReadOnlyTree, changes: Mapping[str, str | None]) -> dict[str, Any]:
    """Return the object with labels set, or removed where the change is None."""
    return with_metadata(obj, labels=_merge(labels(obj), changes))


def with_annotations(obj: ReadOnlyTree, changes: Mapping[str, str | None]) -> dict[str, Any]:
    """Return the object with annotations set, or removed where the change is None."""
    return with_metadata(obj, annotations=_merge(annotations(obj), changes))


def _merge(present: Mapping[str, str], changes: Mapping[str, str | None]) -> dict[str, str]:
    merged = {**present, **changes}
    return {key: value for key, value in sorted(merged.items()) if value is not None}


def with_finalizer(obj: ReadOnlyTree, finalizer: str) -> dict[str, Any]:
    present = finalizers(obj)
    return with_metadata(obj, finalizers=[*present, *({finalizer} - {*present})])


def without_finalizer(obj: ReadOnlyTree, finalizer: str) -> dict[str, Any]:
    return with_metadata(obj, finalizers=[other for other in finalizers(obj) if other != finalizer])


def newest_default(objects: Iterable[ReadOnlyTree], annotation_names: Collection[str]) -> ReadOnlyTree | None:
    """Return the newest object that one of the annotations marks as the default, the first by name if several are as new."""
    defaults = [
        obj for obj in objects if any(annotations(obj).get(mark) == "true" for mark in annotation_names)
    ]
    defaults.sort(key=name)
    return max(defaults, key=lambda obj: metadata(obj).get("creationTimestamp") or "", default=None)


def controller_reference(owner: ReadOnlyTree) -> dict[str, Any]:
    """Return the owner reference to a controller, for an object that it creates (metav1.NewControllerRef)."""
    return {
        "apiVersion": api_version(owner),
        "kind": kind(owner),
        "name": name(owner),
        "uid": uid(owner),
        "controller": True,
        "blockOwnerDeletion": True,
    }
