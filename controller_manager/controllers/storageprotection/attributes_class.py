"""Keep the protection finalizer of a VolumeAttributesClass while a volume or a claim names it."""

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Final

from mockube.apimachinery import meta
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apimachinery.wellknown import FINALIZER_VAC_PROTECTION
from mockube.controller_manager.cache.store import Caches, Change
from mockube.controller_manager.client.kinds import (
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    VOLUME_ATTRIBUTES_CLASSES,
)
from mockube.controller_manager.client.resources import Key
from mockube.controller_manager.control.actions import EMPTY_PLAN, Plan, Update
from mockube.controller_manager.control.controller import Controller, Watch

_BY_CLASS: Final = "volumeAttributesClass"


def reconcile(caches: Caches, key: Key, _: datetime) -> Plan:
    found = caches.of(VOLUME_ATTRIBUTES_CLASSES).get(*key)
    if found is None:
        return EMPTY_PLAN
    is_protected = FINALIZER_VAC_PROTECTION in meta.finalizers(found)
    if not meta.is_deleting(found):
        return EMPTY_PLAN if is_protected else _write(meta.with_finalizer(found, FINALIZER_VAC_PROTECTION))
    if is_protected and not _is_used(caches, key.name):
        return _write(meta.without_finalizer(found, FINALIZER_VAC_PROTECTION))
    return EMPTY_PLAN


def _write(body: ReadOnlyTree) -> Plan:
    return Plan(actions=(Update(resource=VOLUME_ATTRIBUTES_CLASSES, body=body),))


def _is_used(caches: Caches, name: str) -> bool:
    return any(
        caches.of(resource).by_index(_BY_CLASS, name)
        for resource in (PERSISTENT_VOLUMES, PERSISTENT_VOLUME_CLAIMS)
    )


def _classes_of_volume(volume: ReadOnlyTree) -> Iterable[str]:
    name = (volume.get("spec") or {}).get("volumeAttributesClassName")
    return (name,) if name else ()


def _classes_of_claim(claim: ReadOnlyTree) -> Iterable[str]:
    """Return its desired class, its present one, and the target of a change in progress."""
    spec, status = claim.get("spec") or {}, claim.get("status") or {}
    names = (
        spec.get("volumeAttributesClassName"),
        status.get("currentVolumeAttributesClassName"),
        (status.get("modifyVolumeStatus") or {}).get("targetVolumeAttributesClassName"),
    )
    return {name for name in names if name}


def _of_class(_: Caches, change: Change) -> Iterable[Key]:
    return () if change.new is None else (Key.of(change.new),)


def _no_longer_named(
    classes: Callable[[ReadOnlyTree], Iterable[str]],
) -> Callable[[Caches, Change], Iterable[Key]]:
    """Return the classes that an object named before its change or its end, and does not name now."""

    def keys(_: Caches, change: Change) -> Iterable[Key]:
        old, new = change.old, change.new
        before = set() if old is None else {*classes(old)}
        return [Key("", name) for name in before - (set() if new is None else {*classes(new)})]

    return keys


ATTRIBUTES_CLASS_PROTECTION: Final = Controller(
    name="volumeattributesclass-protection-controller",
    queue="vacprotection",
    service_account="volumeattributesclass-protection-controller",
    watches=(
        Watch(resource=VOLUME_ATTRIBUTES_CLASSES, keys=_of_class),
        Watch(resource=PERSISTENT_VOLUME_CLAIMS, keys=_no_longer_named(_classes_of_claim)),
        Watch(resource=PERSISTENT_VOLUMES, keys=_no_longer_named(_classes_of_volume)),
    ),
    indexes={
        PERSISTENT_VOLUMES: {_BY_CLASS: _classes_of_volume},
        PERSISTENT_VOLUME_CLAIMS: {_BY_CLASS: _classes_of_claim},
    },
    reconcile=reconcile,
    workers=1,
)
