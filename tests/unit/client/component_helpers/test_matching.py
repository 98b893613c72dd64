"""Selection of a volume for a claim."""

import pytest

from mockube.apimachinery import meta
from mockube.client.component_helpers import volumes
from mockube.client.component_helpers import volumes as matching
from mockube.client.kinds import PERSISTENT_VOLUMES, STORAGE_CLASSES
from tests.support.controllers.storage import Storage

RWO, RWX = "ReadWriteOnce", "ReadWriteMany"


def best_volume_name(storage, claim):
    match = matching.best_match(storage.all(PERSISTENT_VOLUMES), claim)
    return None if match is None else meta.name(match)


@pytest.mark.parametrize(
    ("volume", "claim", "problem"),
    [
        pytest.param({}, {}, "", id="alike"),
        pytest.param({"size": "2Gi"}, {}, "", id="larger"),
        pytest.param({"size": "512Mi"}, {}, "requested PV is too small", id="smaller"),
        pytest.param({"size": "1024Mi"}, {}, "", id="the same in other words"),
        pytest.param(
            {"storageClassName": "a"},
            {"storageClassName": "b"},
            "storageClassName does not match",
            id="class",
        ),
        pytest.param({"storageClassName": "a"}, {"storageClassName": "a"}, "", id="the same class"),
        pytest.param(
            {},
            {"annotations": {"volume.beta.kubernetes.io/storage-class": "b"}},
            "storageClassName does not match",
            id="a class by annotation",
        ),
        pytest.param({"volumeMode": "Block"}, {}, "incompatible volumeMode", id="mode"),
        pytest.param({}, {"volumeMode": "Filesystem"}, "", id="the mode by default"),
        pytest.param({}, {"modes": [RWO, RWX]}, "incompatible accessMode", id="access"),
        pytest.param({"modes": [RWO, RWX]}, {"modes": [RWX]}, "", id="more access than wanted"),
        pytest.param(
            {"volumeAttributesClassName": "gold"},
            {},
            "volumeAttributesClassName does not match",
            id="attributes",
        ),
    ],
)
def test_volume_fits_claim(volume, claim, problem):
    storage = Storage()
    assert matching.mismatch_reason(storage.volume(**volume), storage.claim(**claim)) == problem


def test_deleting_volume_fits_no_claim():
    storage = Storage()
    volume = meta.with_metadata(storage.volume(), deletionTimestamp="2030-01-01T00:00:00Z")
    assert matching.mismatch_reason(volume, storage.claim()) == 'the volume is marked for deletion "vol"'


def test_smallest_sufficient_volume_is_chosen():
    storage = Storage()
    for size in ("10Gi", "3Gi", "1Gi"):
        storage.volume(f"of-{size.lower()}", size=size)
    assert best_volume_name(storage, storage.claim(size="2Gi")) == "of-3gi"


def test_fewer_access_modes_precede_size():
    storage = Storage()
    storage.volume("shared", size="1Gi", modes=[RWO, RWX])
    storage.volume("large", size="9Gi")
    assert best_volume_name(storage, storage.claim()) == "large"


def test_claim_selector_matches_volume_labels():
    storage = Storage()
    storage.volume("a", labels={"disk": "hdd"})
    storage.volume("b", labels={"disk": "ssd"})
    assert best_volume_name(storage, storage.claim(selector={"matchLabels": {"disk": "ssd"}})) == "b"


@pytest.mark.parametrize("phase", ["Pending", "Released", "Failed", "Bound"])
def test_only_available_volumes_are_free(phase):
    storage = Storage()
    storage.volume(phase=phase)
    assert best_volume_name(storage, storage.claim()) is None


def ref(name="data", **uid):
    return {"namespace": "default", "name": name, **uid}


def test_volume_naming_claim_is_preferred():
    storage = Storage()
    storage.volume("small")
    storage.volume("mine", size="9Gi", claimRef=ref())
    assert best_volume_name(storage, storage.claim()) == "mine"


@pytest.mark.parametrize(
    "named",
    [
        pytest.param(ref("other"), id="another claim"),
        pytest.param(ref(uid="before"), id="another of the name"),
    ],
)
def test_volume_naming_other_claim_is_taken(named):
    storage = Storage()
    storage.volume(claimRef=named)
    assert best_volume_name(storage, storage.claim()) is None


# --- classes


def test_newest_default_class_is_used():
    storage = Storage()
    storage.storage_class("old", default=True)
    storage.storage_class("none")
    storage.clock.advance(10)
    storage.storage_class("new", default=True)
    storage_class = volumes.default_class(storage.all(STORAGE_CLASSES))
    assert meta.name(storage_class) == "new"


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        pytest.param({}, False, id="empty"),
        pytest.param({"storageClassName": ""}, True, id="empty storage class"),
        pytest.param({"storageClassName": "a"}, True, id="one"),
    ],
)
def test_claim_names_its_class(spec, says):
    assert volumes.has_storage_class_name(Storage().claim(**spec)) is says
