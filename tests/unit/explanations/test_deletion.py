"""Explanations of objects that do not go away."""

from mockube.explanations.catalog import explain
from tests.support.explained import condition, event, facts_of, node_of, pod_of, resource_of, thing

DELETED = {"deletionTimestamp": "2026-01-31T11:59:00Z"}


def explained(obj, *objects, **more):
    return explain(resource_of(obj), obj, facts_of(obj, node_of(), *objects, **more))


def deleted(kind, name="web", *, finalizers=(), metadata=(), **fields):
    return thing(kind, name, metadata={**DELETED, "finalizers": [*finalizers], **dict(metadata)}, **fields)


def dependent(owner, name, *, blocks=True, **metadata):
    reference = {"apiVersion": "v1", "kind": owner["kind"], "name": "web", "uid": owner["metadata"]["uid"]}
    references = [{**reference, "blockOwnerDeletion": blocks}]
    return thing("ConfigMap", name, metadata={"ownerReferences": references, **metadata})


def test_finalizer_of_unknown_controller():
    fields = {"f:metadata": {"f:finalizers": {'v:"example.com/a"': {}}}}
    managed = [{"manager": "shop-operator", "fieldsV1": fields}]
    found = explained(deleted("ConfigMap", finalizers=["example.com/a"], metadata={"managedFields": managed}))
    assert found.state == "Unknown"
    assert "the controller of example.com/a, which shop-operator has set, has not removed it" in found.cause
    assert '"op":"remove","path":"/metadata/finalizers/0"' in found.remedies[0].command


def test_finalizer_of_operator_that_is_simulated():
    obj = deleted("ConfigMap", finalizers=["example.com/a"])
    found = explained(obj, event(obj, "NotFinalized", "Nothing removes them: its operator is simulated"))
    assert (found.state, "its operator is simulated" in found.cause) == ("Explained", True)


def test_dependents_that_block_their_owner():
    owner = deleted("ConfigMap", finalizers=["foregroundDeletion"])
    objects = [dependent(owner, "a", finalizers=["x.y/z"], **DELETED), dependent(owner, "b", blocks=False)]
    found = explained(owner, *objects)
    assert "1 dependent with blockOwnerDeletion must go first, such as configmap/a" in found.cause
    assert found.related[0].cause == "is being deleted, and has the finalizers x.y/z"
    assert found.remedies[0].command == "mockube why configmap/a -n default"
    assert explained(owner).state == "Unknown"


def test_claim_that_a_pod_uses():
    claim = deleted("PersistentVolumeClaim", finalizers=["kubernetes.io/pvc-protection"])
    user = pod_of("user", volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "web"}}])
    assert "1 pod uses the claim, such as user" in explained(claim, user).cause
    assert explained(claim).state == "Unknown"


def test_several_finalizers_have_the_known_cause_first():
    claim = deleted("PersistentVolumeClaim", finalizers=["a.b/c", "kubernetes.io/pvc-protection"])
    user = pod_of("user", volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "web"}}])
    found = explained(claim, user)
    assert "finalizer a.b/c, kubernetes.io/pvc-protection: 1 pod uses the claim" in found.cause
    assert any("the controller of a.b/c" in each.text for each in found.evidence)


def test_definition_whose_objects_are_left():
    spec = {"group": "example.com", "names": {"plural": "shops"}}
    definition = deleted(
        "CustomResourceDefinition", finalizers=["customresourcecleanup.apiextensions.k8s.io"], spec=spec
    )
    assert explained(definition, refused=("shops.example.com",)).state == "Unknown"
    assert "none is left" in explained(definition).cause


def running(**metadata):
    status = {"containerStatuses": [{"name": "c", "state": {"running": {}}}]}
    return pod_of(metadata={"deletionGracePeriodSeconds": 30, **metadata}, status=status)


def test_pods_have_a_grace_period():
    soon = explained(running(deletionTimestamp="2026-01-31T12:00:20Z"))
    assert (
        soon.cause == "its containers have until 2026-01-31T12:00:20Z to end, the grace period of 30 seconds"
    )
    late = explained(running(deletionTimestamp="2026-01-31T11:00:00Z"))
    assert late.state == "Unknown"
    held = running(deletionTimestamp="2026-01-31T12:00:20Z", finalizers=["a.b/c"])
    assert explained(held).cause.startswith("its containers have until")
    held["status"]["containerStatuses"][0]["state"] = {"terminated": {"exitCode": 0}}
    assert "waits for its finalizer a.b/c" in explained(held).cause
    held["status"]["initContainerStatuses"] = [{"name": "proxy", "state": {"running": {}}}]
    assert explained(held).cause.startswith("its containers have until")


def test_namespaces():
    def namespace(*conditions, **metadata):
        head = {**DELETED, **metadata}
        status = {"phase": "Terminating", "conditions": [*conditions]}
        return thing("Namespace", "shop", namespace="", metadata=head, status=status)

    held = thing("ConfigMap", namespace="shop", metadata={**DELETED, "finalizers": ["a.b/c"]})
    found = explained(namespace(), held)
    assert found.cause == "1 object in it waits for finalizers (a.b/c), such as configmap/web"
    failed = namespace(condition("NamespaceDeletionDiscoveryFailure", "True", "DiscoveryFailed", "metrics"))
    assert explained(failed).cause == "its contents cannot be deleted: metrics"
    assert explained(namespace(), thing("ConfigMap", namespace="shop")).state == "Unknown"
    assert explained(namespace()).state == "Unknown"
    assert "waits for its finalizer x.y/z" in explained(namespace(finalizers=["x.y/z"])).cause
    assert (
        explained(thing("Namespace", "shop", namespace="", status={"phase": "Active"})).state == "NoProblem"
    )


def holder(kind, finalizer, **fields):
    return explained(deleted(kind, finalizers=[finalizer], **fields)).cause


def test_finalizer_of_kubernetes_names_what_it_waits_for():
    assert "removes it from the owners of its dependents" in holder("ConfigMap", "orphan")
    assert "has not counted the pod yet" in holder("ConfigMap", "batch.kubernetes.io/job-tracking")
    assert "has not removed the load balancer" in holder(
        "Service", "service.kubernetes.io/load-balancer-cleanup"
    )


def test_volume_in_use_names_its_claim_while_it_is_bound():
    spec = {"claimRef": {"namespace": "shop", "name": "data"}}
    bound, released = (
        holder("PersistentVolume", "kubernetes.io/pv-protection", spec=spec, status={"phase": phase})
        for phase in ("Bound", "Released")
    )
    assert bound.endswith("the volume is bound to persistentvolumeclaim/data in shop")
    assert released.endswith("the volume is protected while it is bound; its phase is Released")


def test_finalizer_without_recorded_manager_names_none():
    found = explained(deleted("ConfigMap", finalizers=["a.b/c"]))
    assert "the controller of a.b/c has not removed it" in found.cause
    assert [each.source for each in found.evidence] == ["metadata.deletionTimestamp"]
