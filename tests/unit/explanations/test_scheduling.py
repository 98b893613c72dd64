"""Explanations of pods without a node."""

from mockube.apimachinery.groups import PODS
from mockube.explanations import scheduling
from mockube.explanations.catalog import explain
from mockube.scheduler.cluster import SchedulerCache
from tests.support.explained import condition, facts_of, node_of, pod_of, thing

TAINT = {"key": "only", "value": "db", "effect": "NoSchedule"}
NO_NODES = condition("PodScheduled", "False", "Unschedulable", "0/1 nodes are available: 1 Insufficient cpu.")


def waiting(recorded=NO_NODES, **spec):
    return pod_of(nodeName=None, status={"conditions": [recorded] if recorded else []}, **spec)


def explained(pod, *objects, **more):
    return explain(PODS, pod, facts_of(pod, thing("Namespace", "default", namespace=""), *objects, **more))


def requests(cpu):
    return {"resources": {"requests": {"cpu": cpu}}}


def test_resources_that_no_node_has():
    found = explained(waiting(container=requests("8")), node_of(), node_of("b", cpu="6"))
    assert found.state == "Explained"
    assert found.cause == (
        "none of 2 nodes can take the pod: Insufficient cpu (2); a: cpu: requests 8, free 4 of 4"
    )
    assert [(row.node, row.plugin, row.detail) for row in found.nodes] == [
        ("a", "NodeResourcesFit", "cpu: requests 8, free 4 of 4"),
        ("b", "NodeResourcesFit", "cpu: requests 8, free 6 of 6"),
    ]
    assert found.remedies[0].text == "Request at most 6 of cpu, which b has free, or end pods there."


def test_resources_that_other_pods_use():
    other = pod_of("other", container=requests("3"), status={"phase": "Running"})
    found = explained(waiting(container=requests("2")), other, node_of())
    assert found.nodes[0].detail == "cpu: requests 2, free 1 of 4"


def test_every_plugin_that_rejects_a_node_is_listed():
    pod = waiting(container=requests("8"), nodeSelector={"disk": "ssd"})
    found = explained(pod, node_of(taints=[TAINT]), node_of("b"))
    assert [(row.node, row.plugin) for row in found.nodes] == [
        ("b", "NodeAffinity"),
        ("b", "NodeResourcesFit"),
        ("a", "TaintToleration"),
        ("a", "NodeAffinity"),
        ("a", "NodeResourcesFit"),
    ]
    texts = [remedy.text for remedy in found.remedies]
    assert texts[0] == "On no node does a single change help: the nearest one needs 2."
    assert "kubectl label node b disk=ssd --overwrite" in [remedy.command for remedy in found.remedies]


def test_field_that_a_pod_keeps_is_changed_where_pods_are_made_of():
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-1", "uid": "1", "controller": True}
    alone = waiting(nodeSelector={"disk": "ssd"})
    owned = {**alone, "metadata": {**alone["metadata"], "ownerReferences": [owner]}}
    texts = [[remedy.text for remedy in explained(pod, node_of()).remedies] for pod in (alone, owned)]
    assert "Or change spec.nodeSelector, in a Pod that replaces web." in texts[0]
    assert "Or change spec.nodeSelector:" in texts[1]


def test_taint_and_cordon():
    tainted = explained(waiting(), node_of(taints=[TAINT]))
    assert tainted.nodes[0].detail == "only=db:NoSchedule"
    assert tainted.remedies[0].text == "Let the pod tolerate only=db:NoSchedule:"
    assert tainted.remedies[1].command == "kubectl taint nodes a only:NoSchedule-"
    cordoned = explained(waiting(), node_of(unschedulable=True))
    assert cordoned.remedies[0].command == "kubectl uncordon a"


def test_cordon_is_one_change():
    cordon = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
    found = explained(waiting(), node_of(taints=[cordon], unschedulable=True))
    assert [row.plugin for row in found.nodes] == ["NodeUnschedulable"]
    assert [remedy.command for remedy in found.remedies] == ["kubectl uncordon a"]
    both = explained(waiting(), node_of(taints=[cordon, TAINT], unschedulable=True))
    assert [row.plugin for row in both.nodes] == ["NodeUnschedulable", "TaintToleration"]
    assert both.nodes[1].detail == "only=db:NoSchedule"


def test_taint_of_a_controller_is_not_removed():
    taint = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
    found = explained(waiting(), node_of(taints=[taint]))
    assert [remedy.command for remedy in found.remedies] == ["mockube why node/a"]


def claimed(mode):
    volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]
    storage_class = thing(
        "StorageClass",
        "fast",
        api_version="storage.k8s.io/v1",
        namespace="",
        provisioner="a.b/c",
        volumeBindingMode=mode,
    )
    spec = {"storageClassName": "fast", "resources": {"requests": {"storage": "1Gi"}}, "accessModes": []}
    claim = thing("PersistentVolumeClaim", "data", spec=spec, status={"phase": "Pending"})
    return explained(waiting(volumes=volumes, container=requests("8")), node_of(), claim, storage_class)


def test_claim_that_waits_for_the_pod_is_not_what_the_pod_waits_for():
    found = claimed("WaitForFirstConsumer")
    assert found.related == []
    assert found.remedies[0].text == "Request at most 4 of cpu, which a has free, or end pods there."
    immediate = claimed("Immediate")
    assert immediate.remedies[0].command == "mockube why persistentvolumeclaim/data -n default"


def test_recorded_verdict_that_is_no_longer_true():
    found = explained(waiting(), node_of())
    assert found.state == "Unknown"
    assert "accept the pod now on 1 node, such as a" in found.cause


def test_recorded_verdict_that_differs_is_shown_beside_that_of_now():
    found = explained(waiting(), node_of(taints=[TAINT]))
    assert found.cause == "the scheduler found no node: 0/1 nodes are available: 1 Insufficient cpu."
    assert found.nodes[0].plugin == "TaintToleration"
    assert any("differ from those of the scheduler's last attempt" in each.text for each in found.evidence)


def test_no_nodes_at_all():
    assert explained(waiting()).cause == "the cluster has no nodes"


def test_claim_that_does_not_exist():
    volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]
    recorded = condition(
        "PodScheduled", "False", "", '0/1: persistentvolumeclaim "data" not found. not found'
    )
    found = explained(waiting(recorded, volumes=volumes), node_of())
    assert found.cause == 'no node can take the pod: persistentvolumeclaim "data" not found'
    assert found.nodes == ()
    assert [each.cause for each in found.related] == ["the PersistentVolumeClaim data does not exist"]


def test_without_right_to_list_nodes_only_the_record_counts():
    found = explained(waiting(), node_of(), refused=("nodes",))
    assert found.cause == "default-scheduler found no node: 0/1 nodes are available: 1 Insufficient cpu."
    assert found.nodes == ()


def test_gates_and_schedulers_that_do_not_run():
    gated = explained(waiting(schedulingGates=[{"name": "example.com/a b"}]))
    assert gated.cause.endswith("removed: example.com/a b")
    other = explained(waiting(None, schedulerName="mine"))
    assert (other.state, "its schedulerName is mine" in other.cause) == ("Explained", True)
    untried = explained(waiting(None))
    assert untried.state == "Unknown"


def test_claims_of_devices_are_not_judged_again():
    found = explained(waiting(resourceClaims=[{"name": "gpu"}]), node_of())
    assert found.nodes == ()
    assert found.cause.startswith("default-scheduler found no node")


def test_snapshot_is_made_once_although_facts_are_missing(monkeypatch):
    made = []
    monkeypatch.setattr(scheduling, "SchedulerCache", lambda gates: made.append(1) or SchedulerCache(gates))
    first, second = waiting(container=requests("8")), waiting(container=requests("9"))
    second["metadata"] = {**second["metadata"], "name": "b", "uid": "uid-b"}
    facts = facts_of(first, second, node_of(), thing("Namespace", "default", namespace=""))
    for pod in (first, second, first):
        assert explain(PODS, pod, facts).nodes[0].plugin == "NodeResourcesFit"
    assert len(made) == 1


def test_pod_limit_of_a_node_is_named_beside_its_resources():
    full = node_of(cpu="4")
    full["status"]["allocatable"]["pods"] = "1"
    other = pod_of("other", status={"phase": "Running"})
    texts = [each.text for each in explained(waiting(), full, other).remedies]
    assert "End a pod on a: it has 1 pods, its maximum." in texts
    texts = [each.text for each in explained(waiting(container=requests("8")), node_of(), other).remedies]
    assert not any(text.startswith("End a pod on") for text in texts)


def anti_affinity(value):
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": value}}}
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def test_anti_affinity_of_a_pod_that_runs_there_is_named():
    other = pod_of("other", status={"phase": "Running"}, affinity=anti_affinity("web"))
    pod = waiting()
    pod["metadata"]["labels"] = {"app": "web"}
    (row,) = explained(pod, other, node_of()).nodes
    assert row.plugin == "InterPodAffinity"
    assert "of the pod default/other there matches it" in row.detail


def test_anti_affinity_of_pods_that_do_not_exclude_it_is_not_named():
    others = [
        pod_of("other", status={"phase": "Running"}, affinity=anti_affinity("db")),
        pod_of("far", status={"phase": "Running"}, nodeName="b", affinity=anti_affinity("web")),
    ]
    pod = waiting(affinity=anti_affinity("web"))
    pod["metadata"]["labels"] = {"app": "web"}
    near = pod_of("near", status={"phase": "Running"}, metadata={"labels": {"app": "web"}})
    rows = explained(pod, *others, near, node_of(), node_of("b")).nodes
    details = {row.node: row.detail for row in rows}
    assert "default/other" not in details["a"]
    assert "default/near" in details["a"]
    assert "of the pod default/far there matches it" in details["b"]


TAINTED, UNSELECTED, CORDONED = (
    "node(s) had untolerated taint(s)",
    "node(s) didn't match Pod's node affinity/selector",
    "node(s) were unschedulable",
)


def recorded(*reasons):
    return condition("PodScheduled", "False", "Unschedulable", f"0/2 nodes: {', '.join(reasons)}")


CONTROL_PLANE = {"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}


def test_taint_of_the_control_plane_is_not_the_cause_if_something_else_excludes_the_others():
    verdict = recorded(TAINTED, UNSELECTED)
    pod = waiting(verdict, nodeSelector={"disk": "ssd"}, container=requests("8"))
    found = explained(
        pod, node_of("cp", taints=[CONTROL_PLANE], labels={"disk": "ssd"}, cpu="9"), node_of("b")
    )
    assert found.cause == (
        "none of 2 nodes can take the pod: node(s) didn't match Pod's node affinity/selector (1), Insufficient cpu (1), "
        "node(s) of the control plane (1); b: lacks disk=ssd"
    )
    assert [row.node for row in found.nodes] == ["b", "b", "cp"]
    assert not any("tolerate" in remedy.text or "taint" in remedy.command for remedy in found.remedies)


def test_taint_of_the_control_plane_is_the_cause_if_there_is_no_other_node():
    found = explained(waiting(recorded(TAINTED)), node_of("cp", taints=[CONTROL_PLANE]))
    assert found.cause == (
        "the only node cannot take the pod: node(s) had untolerated taint(s) (1); cp: node-role.kubernetes.io/control-plane:NoSchedule"
    )
    assert [remedy.text for remedy in found.remedies] == [
        "Let the pod tolerate node-role.kubernetes.io/control-plane:NoSchedule:"
    ]


def test_remedy_is_about_the_nodes_that_its_plugin_rejects():
    nodes = node_of("a", taints=[TAINT], labels={"disk": "ssd"}), node_of("b")
    found = explained(waiting(nodeSelector={"disk": "ssd"}), *nodes)
    texts = [remedy.text for remedy in found.remedies]
    assert texts == [
        "Let the pod tolerate only=db:NoSchedule:",
        "Remove the taint from a:",
        "Label a node, such as b:",
        "Or change spec.nodeSelector, in a Pod that replaces web.",
    ]


DEFAULTS = [
    {
        "key": f"node.kubernetes.io/{key}",
        "operator": "Exists",
        "effect": "NoExecute",
        "tolerationSeconds": 300,
    }
    for key in ("not-ready", "unreachable")
]


def test_toleration_is_added_without_those_of_admission():
    owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db", "uid": "1", "controller": True}
    alone = waiting(tolerations=[*DEFAULTS, {"key": "x", "operator": "Exists"}])
    owned = {**alone, "metadata": {**alone["metadata"], "ownerReferences": [owner]}}
    of_pod, of_template = (
        explained(pod, node_of(taints=[TAINT])).remedies[0].command for pod in (alone, owned)
    )
    assert '"path":"/spec/tolerations/-","value":{"key":"only"' in of_pod
    assert '"tolerations":[{"key":"x","operator":"Exists"},{"key":"only"' in of_template


def test_reason_that_most_nodes_have_comes_first():
    pod = waiting(recorded(TAINTED, CORDONED), nodeSelector={"disk": "ssd"})
    found = explained(pod, node_of("a", taints=[TAINT]), node_of("b", unschedulable=True))
    assert found.cause.startswith(
        "none of 2 nodes can take the pod: node(s) didn't match Pod's node affinity/selector (2), "
    )


def test_name_of_a_node_is_not_given_to_another_one():
    label = {"kubernetes.io/hostname": "gone"}
    found = explained(waiting(recorded(UNSELECTED), nodeSelector=label), node_of("b"))
    assert [each.text for each in found.remedies] == ["Change spec.nodeSelector, in a Pod that replaces web."]
