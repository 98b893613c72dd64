"""The bindings of claims, while the caches do not show them yet."""

from mockube.scheduler.volumes import PodVolumeClaims
from tests.support.controllers import scheduler_volumes
from tests.support.controllers.scheduler_objects import node, snapshot

CLAIM, OTHER = scheduler_volumes.claim(), scheduler_volumes.claim("other")


def storage_of(provisioner, *volumes):
    classes = [scheduler_volumes.storage_class(provisioner=provisioner)]
    return snapshot([], storage=scheduler_volumes.storage(volumes=volumes, classes=classes)).storage


def bindings(claim, host, storage):
    return PodVolumeClaims(unbound=[claim]).assign(node(host), storage)


def test_claim_is_provisioned_for_one_node_at_a_time():
    storage = storage_of("example.com/slow")
    storage.assumed.assume("first", "a", bindings(CLAIM, "a", storage))
    storage.assumed.assume("second", "a", bindings(CLAIM, "a", storage))
    for pod in ("first", "second"):
        assert isinstance(bindings(CLAIM, "b", storage), str)
        assert isinstance(bindings(OTHER, "b", storage), list)
        storage.assumed.forget(pod)
    assert isinstance(bindings(CLAIM, "b", storage), list)


def test_volume_is_bound_to_one_claim_at_a_time():
    disks = [
        scheduler_volumes.volume(name, on=host) for name, host in (("a1", "a"), ("b1", "b"), ("b2", "b"))
    ]
    storage = storage_of("kubernetes.io/no-provisioner", *disks)
    (first,) = chosen = bindings(CLAIM, "b", storage)
    assert (first.volume["metadata"]["name"], first.is_written) == ("b1", False)
    storage.assumed.assume("first", "b", chosen)
    (second,) = bindings(CLAIM, "b", storage)
    assert (second.volume["metadata"]["name"], second.is_written) == ("b1", True)
    assert isinstance(bindings(CLAIM, "a", storage), str)
    (other,) = bindings(OTHER, "b", storage)
    assert other.volume["metadata"]["name"] == "b2"
