"""The bindings of claims, while the caches do not show them yet."""

from mockube.controller_manager.cache.store import Store
from mockube.controller_manager.client.resources import Key
from mockube.controller_manager.scheduler.volumes import AssumedBindings, PodVolumeClaims, Storage

CLAIM = {
    "metadata": {"name": "data", "namespace": "default", "uid": "c", "resourceVersion": "1"},
    "spec": {"storageClassName": "local", "accessModes": ["ReadWriteOnce"]},
}
OTHER = {**CLAIM, "metadata": {**CLAIM["metadata"], "name": "other", "uid": "o"}}


def node(name):
    return {"metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}}}


def disk(name, host):
    expression = {"key": "kubernetes.io/hostname", "operator": "In", "values": [host]}
    return {
        "metadata": {"name": name, "resourceVersion": "1"},
        "spec": {
            "storageClassName": "local",
            "accessModes": ["ReadWriteOnce"],
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}},
        },
        "status": {"phase": "Available"},
    }


def storage_of(provisioner, *volumes):
    return Storage(
        claims=store_of(),
        volumes=store_of(*volumes),
        classes=store_of({"metadata": {"name": "local", "resourceVersion": "1"}, "provisioner": provisioner}),
        assumed=AssumedBindings(),
    )


def store_of(*objects):
    store = Store()
    for obj in objects:
        store.put(Key.of(obj), obj)
    return store


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
    storage = storage_of("kubernetes.io/no-provisioner", disk("a1", "a"), disk("b1", "b"), disk("b2", "b"))
    (first,) = chosen = bindings(CLAIM, "b", storage)
    assert (first.volume["metadata"]["name"], first.is_written) == ("b1", False)
    storage.assumed.assume("first", "b", chosen)
    (second,) = bindings(CLAIM, "b", storage)
    assert (second.volume["metadata"]["name"], second.is_written) == ("b1", True)
    assert isinstance(bindings(CLAIM, "a", storage), str)
    (other,) = bindings(OTHER, "b", storage)
    assert other.volume["metadata"]["name"] == "b2"
