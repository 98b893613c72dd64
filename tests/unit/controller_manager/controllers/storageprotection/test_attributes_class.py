"""A VolumeAttributesClass keeps its finalizer while a volume or claim uses it."""

import pytest

from mockube.apimachinery import meta
from mockube.client.cache.store import Change
from mockube.client.kinds import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, VOLUME_ATTRIBUTES_CLASSES
from mockube.client.resources import Key
from mockube.controller_manager.controllers.storageprotection.controller import (
    ATTRIBUTES_CLASS_PROTECTION,
)
from tests.support.controllers.storage import Storage

FINALIZER = "kubernetes.io/vac-protection"
GOLD = Key("", "gold")


@pytest.fixture
def storage():
    storage = Storage((ATTRIBUTES_CLASS_PROTECTION,))
    storage.add(
        VOLUME_ATTRIBUTES_CLASSES,
        {"metadata": {"name": "gold", "finalizers": [FINALIZER]}, "driverName": "csi.example.com"},
    )
    return storage


def gold_class(storage):
    return storage.get(VOLUME_ATTRIBUTES_CLASSES, "gold", namespace="")


def class_after_deletion(storage):
    """Request the deletion of the class, reconcile, and return the class."""
    storage.delete(VOLUME_ATTRIBUTES_CLASSES, gold_class(storage))
    _, error = storage.reconcile(GOLD)
    assert error is None
    return gold_class(storage)


def test_unused_class_is_released(storage):
    storage.volume(volumeAttributesClassName="silver")
    storage.claim(volumeAttributesClassName="silver")
    assert class_after_deletion(storage) is None


def test_class_used_by_volume_is_kept(storage):
    volume = storage.volume(volumeAttributesClassName="gold")
    assert meta.is_deleting(class_after_deletion(storage))
    storage.put(PERSISTENT_VOLUMES, volume | {"spec": {}})
    storage.reconcile(GOLD)
    assert gold_class(storage) is None


@pytest.mark.parametrize(
    "named",
    [
        {"spec": {"volumeAttributesClassName": "gold"}},
        {"status": {"currentVolumeAttributesClassName": "gold"}},
        {"status": {"modifyVolumeStatus": {"targetVolumeAttributesClassName": "gold"}}},
    ],
)
def test_class_used_by_claim_is_kept(storage, named):
    storage.put(PERSISTENT_VOLUME_CLAIMS, storage.claim() | named)
    assert meta.is_deleting(class_after_deletion(storage))


def test_class_without_finalizer_gets_it_back(storage):
    storage.put(VOLUME_ATTRIBUTES_CLASSES, meta.with_metadata(gold_class(storage), finalizers=None))
    storage.reconcile(GOLD)
    assert meta.finalizers(gold_class(storage)) == [FINALIZER]


def test_changed_claim_maps_to_former_class(storage):
    claim = storage.claim(volumeAttributesClassName="gold")
    keys = ATTRIBUTES_CLASS_PROTECTION.watches[1].keys
    assert [*keys(storage.caches(), Change(claim, None))] == [GOLD]
    assert [*keys(storage.caches(), Change(claim, claim | {"spec": {}}))] == [GOLD]
    assert [*keys(storage.caches(), Change(claim, claim))] == []
    assert [*keys(storage.caches(), Change(None, claim))] == []
