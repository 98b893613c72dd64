"""CloneSet: scale up and scale down over several reconciliations."""

import pytest

from mockube.apimachinery import conditions, meta
from mockube.apimachinery.wellknown import FINALIZER_FOREGROUND
from mockube.client.kinds import PODS
from mockube.client.resources import Key
from mockube.packs.kruise.kinds import CLONE_SETS
from tests.packs.kruise.support.clonesets import WEB, CloneSetHarness, template

HOOK = {"preDelete": {"labelsHandler": {"hold": "true"}}}


def template_with_hold():
    return template(labels={"hold": "true"})


def test_scale_from_zero_creates_pods():
    clones = CloneSetHarness(replicas=3)
    assert [verb for verb, _ in clones.round()] == ["create"] * 3
    assert clones.messages_of("SuccessfulCreate") == [
        f"succeed to create pod {name}" for name in clones.pod_names
    ]
    clones.settle()
    assert clones.count("replicas", "readyReplicas", "availableReplicas") == [3, 3, 3]


def test_new_pod_has_labels_and_owner():
    clones = CloneSetHarness(replicas=1)
    clones.round()
    (pod,) = clones.pods
    instance = meta.name(pod).removeprefix("web-")
    assert len(instance) == 5
    assert meta.generate_name(pod) == "web-"
    revision = clones.names_of_revisions()[0]
    assert meta.labels(pod) == {
        "app": "web",
        "apps.kruise.io/cloneset-instance-id": instance,
        "controller-revision-hash": revision,
        "pod-template-hash": revision.removeprefix("web-"),
        "lifecycle.apps.kruise.io/state": "PreparingNormal",
    }
    assert meta.annotations(pod) == {"lifecycle.apps.kruise.io/timestamp": "2030-01-01T00:00:00Z"}
    assert pod["spec"]["readinessGates"] == [{"conditionType": "InPlaceUpdateReady"}]
    assert meta.controller_of(pod)["kind"] == "CloneSet"


def test_readiness_gate_of_new_pod_opens_at_once():
    (create,) = [
        action for action in CloneSetHarness(replicas=1).plan(WEB).actions if action.resource is PODS
    ]
    made = meta.with_metadata(create.bodies[0], uid="u-1")
    (opened,) = create.then(made)
    assert (opened.key, opened.subresource) == (Key.of(made), "status")
    (told,) = opened.body["status"]["conditions"]
    assert (told["type"], told["status"]) == ("InPlaceUpdateReady", "True")


def test_readiness_gate_of_template_is_not_duplicated():
    clones = CloneSetHarness(
        replicas=1, template=template(readinessGates=[{"conditionType": "InPlaceUpdateReady"}])
    )
    clones.round()
    assert clones.pods[0]["spec"]["readinessGates"] == [{"conditionType": "InPlaceUpdateReady"}]


def test_pod_is_normal_once_bound():
    clones = CloneSetHarness(replicas=1)
    clones.round()
    clones.round()
    assert clones.states == ["PreparingNormal"]
    clones.settle()
    assert clones.states == ["Normal"]


def test_instance_names_are_unique():
    clones = CloneSetHarness(replicas=2)
    seen = set()
    for _ in range(10):
        clones.settle()
        assert not seen & {*clones.pod_names}
        seen |= {*clones.pod_names}
        for name in clones.pod_names:
            clones.lose(name)
    assert len(seen) == 20


def test_scale_up_respects_max_unavailable():
    clones = CloneSetHarness(replicas=5, scaleStrategy={"maxUnavailable": 2})
    assert len(clones.round()) == 2
    assert clones.messages_of("ScaleUpLimited") == [
        "scaleUp is limited because of scaleStrategy.maxUnavailable, limit: 2"
    ]
    clones.run(clones.pod_names[0])
    clones.round()
    clones.run(clones.pod_names[0])
    assert len([it for it in clones.round() if it[0] == "create"]) == 1
    clones.settle()
    assert clones.count("replicas", "availableReplicas") == [5, 5]


def test_scale_down_deletes_pods():
    clones = CloneSetHarness(replicas=5)
    clones.settle()
    clones.scale(3)
    assert [verb for verb, _ in clones.round()] == ["delete", "delete"]
    assert len(clones.messages_of("SuccessfulDelete")) == 2
    clones.settle()
    assert clones.count("replicas") == [3]


def test_unavailable_pods_are_not_deleted_beyond_limit():
    clones = CloneSetHarness(replicas=5, minReadySeconds=9999)
    clones.settle()
    clones.scale(3)
    assert clones.round() == []


def test_unready_pod_is_deleted_first():
    clones = CloneSetHarness(replicas=3)
    clones.settle()
    broken = clones.pod_names[1]
    clones.run(broken, ready=False)
    clones.scale(2)
    assert clones.round() == [("delete", broken)]


def test_pod_with_lower_deletion_cost_is_deleted_first():
    clones = CloneSetHarness(replicas=3)
    clones.settle()
    cheap = clones.pod_names[2]
    cost = {"controller.kubernetes.io/pod-deletion-cost": "-5"}
    clones.put(PODS, meta.with_annotations(clones.get(PODS, cheap), cost))
    clones.scale(2)
    assert clones.round() == [("delete", cheap)]


@pytest.mark.parametrize(
    ("constraints", "survivor"),
    [
        pytest.param([], "n3", id="pods on one node go first"),
        pytest.param([{"topologyKey": "zone"}], "n1", id="pods in one zone go first"),
    ],
)
def test_deletion_spreads_pods(constraints, survivor):
    clones = CloneSetHarness(replicas=3, template=template(topologySpreadConstraints=constraints))
    clones.add_nodes(n1="a", n2="b", n3="b")
    clones.round()
    places = {"n1": "n1", "n2": "n2", "n3": "n3"} if constraints else {"n1": "n1", "n2": "n1", "n3": "n3"}
    for name, node in zip(clones.pod_names, places.values(), strict=True):
        clones.run(name, node=node)
    clones.settle()
    clones.scale(2)
    clones.settle()
    assert survivor in {pod["spec"]["nodeName"] for pod in clones.pods}
    assert len({pod["spec"]["nodeName"] for pod in clones.pods}) == 2


# --- pods named in the spec


def test_pod_with_specified_delete_label_is_replaced():
    clones = CloneSetHarness(replicas=3)
    clones.settle()
    named = clones.pod_names[1]
    clones.specify(named)
    assert clones.round() == [("delete", named)]
    clones.settle()
    assert clones.count("replicas", "readyReplicas") == [3, 3]
    assert named not in clones.pod_names


def test_listed_pod_is_deleted_and_removed_from_list():
    clones = CloneSetHarness(replicas=3)
    clones.settle()
    named = clones.pod_names[0]
    clones.change_spec("scaleStrategy", to={"podsToDelete": [named]})
    clones.scale(2)
    assert clones.round() == [("delete", named)]
    clones.settle()
    assert clones.count("replicas") == [2]
    assert clones.set["spec"]["scaleStrategy"] == {"podsToDelete": []}


def test_specified_deletions_respect_max_unavailable():
    clones = CloneSetHarness(replicas=5)
    clones.settle()
    for name in clones.pod_names[:3]:
        clones.specify(name)
    assert len(clones.round()) == 1


def test_unready_specified_pods_are_deleted_at_once():
    clones = CloneSetHarness(replicas=5)
    clones.settle()
    for name in clones.pod_names[:3]:
        clones.run(name, ready=False)
        clones.specify(name)
    assert len(clones.round()) == 3


def test_surge_pod_is_created_before_specified_deletion():
    clones = CloneSetHarness(replicas=5, updateStrategy={"maxUnavailable": 0, "maxSurge": 1})
    clones.settle()
    named = clones.pod_names[0]
    clones.specify(named)
    assert [verb for verb, _ in clones.round()] == ["create"]
    assert clones.round() == [("patch", clones.pod_names[-1])]
    clones.settle()
    assert named not in clones.pod_names
    assert clones.count("replicas", "availableReplicas") == [5, 5]


# --- pods held by hooks


def test_hooked_pod_waits_before_deletion():
    clones = CloneSetHarness(replicas=2, lifecycle=HOOK, template=template_with_hold())
    clones.settle()
    clones.scale(1)
    clones.settle()
    assert clones.states == ["Normal", "PreparingDelete"]
    (waiting,) = [it for it in clones.pods if "PreparingDelete" in meta.labels(it).values()]
    clones.label(meta.name(waiting), hold="false")
    assert clones.round() == [("delete", meta.name(waiting))]


def test_pod_needed_again_returns_to_normal():
    clones = CloneSetHarness(replicas=2, lifecycle=HOOK, template=template_with_hold())
    clones.settle()
    names = clones.pod_names
    clones.scale(1)
    clones.settle()
    clones.scale(2)
    clones.settle()
    assert (clones.states, clones.pod_names) == (["Normal", "Normal"], names)


def test_unready_pod_preparing_delete_is_not_kept():
    hook = {"preDelete": {**HOOK["preDelete"], "markPodNotReady": True}}
    clones = CloneSetHarness(replicas=2, lifecycle=hook, template=template_with_hold())
    clones.settle()
    clones.scale(1)
    clones.settle()
    (waiting,) = [it for it in clones.pods if "PreparingDelete" in meta.labels(it).values()]
    assert not conditions.is_true(waiting, "Ready")
    clones.scale(2)
    clones.settle()
    assert clones.states == ["Normal", "PreparingDelete"]
    clones.label(meta.name(waiting), hold="false")
    clones.settle()
    assert (clones.states, clones.status["readyReplicas"]) == (["Normal", "Normal"], 2)
    assert meta.name(waiting) not in clones.pod_names


def test_pod_preparing_delete_may_be_replaced():
    clones = CloneSetHarness(
        replicas=2,
        lifecycle=HOOK,
        template=template_with_hold(),
        scaleStrategy={"excludePreparingDelete": True},
    )
    clones.settle()
    clones.specify(clones.pod_names[0])
    clones.settle()
    assert clones.states == ["Normal", "Normal", "PreparingDelete"]


def test_pod_without_hook_label_is_normal_after_it_is_set():
    clones = CloneSetHarness(
        replicas=1, lifecycle={"preNormal": {"finalizersHandler": ["example.com/ready"]}}
    )
    clones.settle()
    assert clones.states == ["PreparingNormal"]
    clones.put(PODS, meta.with_finalizer(clones.pods[0], "example.com/ready"))
    clones.settle()
    assert clones.states == ["Normal"]


# --- ownership of pods


def test_relabelled_pod_is_released():
    clones = CloneSetHarness(replicas=2)
    clones.settle()
    stray = clones.pod_names[0]
    clones.label(stray, app="other")
    assert clones.round() == [("release", stray)]
    clones.settle()
    assert clones.count("replicas") == [2]


def test_ownerless_pod_is_not_adopted():
    clones = CloneSetHarness(replicas=0)
    clones.add(
        PODS,
        {
            "metadata": {"name": "lone", "namespace": "default", "labels": {"app": "web"}},
            "spec": template()["spec"],
        },
    )
    clones.settle()
    assert meta.owner_references(clones.get(PODS, "lone")) == ()


def test_deleting_clone_set_updates_status_only():
    clones = CloneSetHarness(replicas=2)
    clones.settle()
    ending = meta.with_finalizer(clones.set, FINALIZER_FOREGROUND)
    clones.put(CLONE_SETS, meta.with_metadata(ending, deletionTimestamp="2030-01-01T00:00:00Z"))
    clones.scale(5)
    assert clones.round() == []
    assert clones.status["observedGeneration"] == 2


def test_deleted_clone_set_has_no_plan():
    clones = CloneSetHarness()
    clones.remove(CLONE_SETS, "web")
    assert clones.round() == []


def test_invalid_selector_is_not_reconciled():
    clones = CloneSetHarness(selector={"matchExpressions": [{"key": "a", "operator": "Sometimes"}]})
    assert clones.round() == []


def test_pods_are_created_500_at_a_time():
    clones = CloneSetHarness(replicas=1200)
    assert [len(clones.round()) for _ in range(3)] == [500, 500, 200]
