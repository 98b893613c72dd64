"""CloneSet: PersistentVolumeClaims of pods are created, reused and deleted."""

from mockube.apimachinery import meta
from mockube.client.kinds import PERSISTENT_VOLUME_CLAIMS, PODS
from tests.packs.kruise.support.clonesets import CloneSetHarness, claim_template, template

DATA = [claim_template()]


def settled_clones(**spec):
    clones = CloneSetHarness(volumeClaimTemplates=DATA, **spec)
    clones.settle()
    return clones


def instance(name):
    return name.removeprefix("web-")


def test_pod_has_its_own_claims():
    clones = settled_clones(
        replicas=1, template=template(volumes=[{"name": "data", "emptyDir": {}}, {"name": "tmp"}])
    )
    (pod,) = clones.pods
    name = f"data-{meta.name(pod)}"
    assert clones.claims == [name]
    claim = clones.get(PERSISTENT_VOLUME_CLAIMS, name)
    assert meta.labels(claim) == {
        "app": "web",
        "apps.kruise.io/cloneset-instance-id": instance(meta.name(pod)),
    }
    assert meta.controller_of(claim)["kind"] == "CloneSet"
    assert pod["spec"]["volumes"] == [
        {"name": "data", "persistentVolumeClaim": {"claimName": name}},
        {"name": "tmp"},
    ]


def test_claims_are_created_before_pods():
    clones = CloneSetHarness(replicas=2, volumeClaimTemplates=DATA)
    clones.round()
    made = [resource.plural for verb, resource, _ in clones.done if verb == "create"]
    assert made == ["controllerrevisions", *["persistentvolumeclaims"] * 2, *["pods"] * 2]


def test_claims_are_deleted_with_their_pods():
    clones = settled_clones(replicas=3)
    clones.scale(1)
    clones.settle()
    assert clones.claims == [f"data-{name}" for name in clones.pod_names]


def test_claims_of_lost_pod_are_reused():
    clones = settled_clones(replicas=2)
    claims, uids = clones.claims, {meta.uid(pod) for pod in clones.pods}
    lost = clones.pod_names[0]
    clones.lose(lost)
    assert clones.round() == [], "its name is not free yet"
    clones.end(lost)
    assert clones.round() == [("create", lost)]
    clones.settle()
    assert clones.claims == claims
    assert len(uids & {meta.uid(pod) for pod in clones.pods}) == 1


def test_claims_of_lost_pod_are_deleted_without_reuse():
    clones = settled_clones(replicas=2, scaleStrategy={"disablePVCReuse": True})
    lost = clones.pod_names[0]
    clones.lose(lost)
    assert [verb for verb, _ in clones.round()] == ["create"]
    claim = clones.get(PERSISTENT_VOLUME_CLAIMS, f"data-{lost}")
    assert meta.controller_of(claim)["kind"] == "Pod"
    clones.settle()
    assert clones.claims == sorted(f"data-{name}" for name in clones.pod_names)
    assert lost not in clones.pod_names


def test_claims_of_missing_pod_are_deleted_at_once():
    clones = settled_clones(replicas=2, scaleStrategy={"disablePVCReuse": True})
    lost = clones.pod_names[0]
    clones.remove(PODS, lost)
    clones.settle()
    assert clones.claims == sorted(f"data-{name}" for name in clones.pod_names)
    assert lost not in clones.pod_names


def test_failed_pod_keeps_claims_and_name():
    clones = settled_clones(replicas=1)
    (failed,) = clones.pod_names
    clones.change(PODS, failed, ("status", "phase"), "Failed")
    clones.settle()
    assert len(clones.pods) == 2
    assert len(clones.claims) == 2


def test_existing_claims_are_not_created_again():
    clones = settled_clones(replicas=1)
    (lost,) = clones.pod_names
    clones.remove(PODS, lost)
    clones.change_spec("volumeClaimTemplates", to=[*DATA, claim_template("log")])
    clones.settle()
    assert clones.claims == [f"data-{lost}", f"log-{lost}"]
