"""The claims of a CloneSet's pods: made, reused, given away, deleted."""

from mockube.apimachinery import meta
from mockube.controller_manager.client.kinds import PERSISTENT_VOLUME_CLAIMS, PODS
from tests.support.controllers.clonesets import Clones, claim_template, template

DATA = [claim_template()]


def settled(**spec):
    clones = Clones(volumeClaimTemplates=DATA, **spec)
    clones.settle()
    return clones


def instance(name):
    return name.removeprefix("web-")


def test_a_pod_has_claims_of_its_own():
    clones = settled(
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


def test_claims_are_made_before_pods():
    clones = Clones(replicas=2, volumeClaimTemplates=DATA)
    clones.round()
    made = [resource.plural for verb, resource, _ in clones.done if verb == "create"]
    assert made == ["controllerrevisions", *["persistentvolumeclaims"] * 2, *["pods"] * 2]


def test_claims_go_with_pods_that_are_deleted_on_purpose():
    clones = settled(replicas=3)
    clones.scale(1)
    clones.settle()
    assert clones.claims == [f"data-{name}" for name in clones.pod_names]


def test_the_claims_of_a_lost_pod_are_taken_over():
    clones = settled(replicas=2)
    claims, uids = clones.claims, {meta.uid(pod) for pod in clones.pods}
    lost = clones.pod_names[0]
    clones.lose(lost)
    assert clones.round() == [], "its name is not free yet"
    clones.end(lost)
    assert clones.round() == [("create", lost)]
    clones.settle()
    assert clones.claims == claims
    assert len(uids & {meta.uid(pod) for pod in clones.pods}) == 1


def test_or_go_with_it():
    clones = settled(replicas=2, scaleStrategy={"disablePVCReuse": True})
    lost = clones.pod_names[0]
    clones.lose(lost)
    assert [verb for verb, _ in clones.round()] == ["create"]
    claim = clones.get(PERSISTENT_VOLUME_CLAIMS, f"data-{lost}")
    assert meta.controller_of(claim)["kind"] == "Pod"
    clones.settle()
    assert clones.claims == sorted(f"data-{name}" for name in clones.pod_names)
    assert lost not in clones.pod_names


def test_and_at_once_if_it_is_gone():
    clones = settled(replicas=2, scaleStrategy={"disablePVCReuse": True})
    lost = clones.pod_names[0]
    clones.remove(PODS, lost)
    clones.settle()
    assert clones.claims == sorted(f"data-{name}" for name in clones.pod_names)
    assert lost not in clones.pod_names


def test_a_pod_that_failed_keeps_its_claims_and_its_name():
    clones = settled(replicas=1)
    (failed,) = clones.pod_names
    clones.change(PODS, failed, ("status", "phase"), "Failed")
    clones.settle()
    assert len(clones.pods) == 2
    assert len(clones.claims) == 2


def test_claims_that_are_there_are_not_made_again():
    clones = settled(replicas=1)
    (lost,) = clones.pod_names
    clones.remove(PODS, lost)
    clones.change_spec("volumeClaimTemplates", to=[*DATA, claim_template("log")])
    clones.settle()
    assert clones.claims == [f"data-{lost}", f"log-{lost}"]
