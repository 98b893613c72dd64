"""ResourceClaims of pods: creation from templates, reservation and release."""

import pytest

from mockube.apimachinery import meta
from mockube.apimachinery.feature_gates import FeatureGates
from mockube.apimachinery.status import Forbidden
from mockube.client.cache.store import Change
from mockube.client.component_helpers.device_claims import FINALIZER, POD_CLAIM_NAME
from mockube.client.kinds import PODS, RESOURCE_CLAIM_TEMPLATES, RESOURCE_CLAIMS
from mockube.client.podview import PodView
from mockube.client.queue.reconcile_loop import RequeueWithBackoff
from mockube.client.resources import Key
from mockube.component_base.clock import SteppedClock
from mockube.component_base.metrics import MetricsRegistry
from mockube.controller_manager.control.actions import CompletedWrite, Create, Patch, PlanResult, Update
from mockube.controller_manager.controllers.resourceclaim.controller import (
    ResourceClaimMetrics,
    claim_key,
    pod_key,
    resource_claims,
)
from mockube.controller_manager.controllers.resourceclaim.pods import generate_name
from tests.support.controllers.fake_api_server import FakeApiServer

APP = pod_key(Key("default", "app"))
SPEC = {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}]}}
OF_TEMPLATE = {"name": "gpu", "resourceClaimTemplateName": "t"}
BY_NAME = {"name": "shared", "resourceClaimName": "s"}


def cluster_with_pod(*claims, template=True, node="", **metadata):
    server = FakeApiServer(resource_claims(), SteppedClock())
    spec = {"resourceClaims": list(claims), **({"nodeName": node} if node else {})}
    server.add(
        PODS,
        {
            "metadata": {"name": "app", "namespace": "default", "uid": "u", **metadata},
            "spec": spec,
            "status": {},
        },
    )
    if template:
        inner = {"metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}}, "spec": SPEC}
        server.add(
            RESOURCE_CLAIM_TEMPLATES, {"metadata": {"name": "t", "namespace": "default"}, "spec": inner}
        )
    return server


def claim(name, *consumers, allocated=True, owner=None, finalizers=(FINALIZER,), **metadata):
    status = {"allocation": {"devices": {}}} if allocated else {}
    if consumers:
        status["reservedFor"] = [{"resource": "pods", "name": n, "uid": u} for n, u in consumers]
    if owner is not None:
        reference = {"apiVersion": "v1", "kind": "Pod", "name": "app", "uid": owner, "controller": True}
        metadata["ownerReferences"] = [reference]
    tree = {"name": name, "namespace": "default", "finalizers": list(finalizers), **metadata}
    return {"metadata": tree, "spec": SPEC, "status": status}


def statuses(pods):
    return {
        one["name"]: one.get("resourceClaimName")
        for one in pods.get(PODS, "app")["status"].get("resourceClaimStatuses", ())
    }


def test_claim_is_created_from_template_and_named_in_status():
    pods = cluster_with_pod(OF_TEMPLATE, BY_NAME)
    pods.reconcile(APP)
    (made,) = pods.all(RESOURCE_CLAIMS)
    assert made["metadata"]["generateName"] == "app-gpu-"
    assert meta.labels(made) == {"a": "b"}
    assert meta.annotations(made) == {"c": "d", POD_CLAIM_NAME: "gpu"}
    assert meta.owner_references(made) == [
        {"apiVersion": "v1", "kind": "Pod", "name": "app", "uid": "u", "controller": True}
    ]
    assert made["spec"] == SPEC
    assert statuses(pods) == {"gpu": meta.name(made)}
    assert [(verb, resource) for verb, resource, _ in pods.done] == [
        ("create", RESOURCE_CLAIMS),
        ("patch", PODS),
    ]
    assert pods.reconcile(APP) == ([], None)


def test_deleted_claim_of_finished_pod_is_not_recreated():
    pods = cluster_with_pod(OF_TEMPLATE)
    pods.reconcile(APP)
    pods.change(PODS, "app", ("status", "phase"), "Succeeded")
    (created,) = pods.names(RESOURCE_CLAIMS)
    pods.reconcile(claim_key("default", created))
    assert pods.reconcile(APP) == ([], None)
    assert pods.all(RESOURCE_CLAIMS) == []


def test_claim_created_before_restart_is_found():
    pods = cluster_with_pod(OF_TEMPLATE)
    pods.begin(APP, 1)
    assert statuses(pods) == {}
    pods.reconcile(APP)
    (made,) = pods.all(RESOURCE_CLAIMS)
    assert statuses(pods) == {"gpu": meta.name(made)}


def test_deleted_claim_is_recreated():
    pods = cluster_with_pod(OF_TEMPLATE)
    pods.reconcile(APP)
    pods.remove(RESOURCE_CLAIMS, statuses(pods)["gpu"])
    pods.reconcile(APP)
    assert statuses(pods)["gpu"] == pods.names(RESOURCE_CLAIMS)[0]


@pytest.mark.parametrize(("minor", "names"), [("1.37", ["a", "b"]), ("1.36", ["a"])])
def test_names_of_older_claims_are_applied_with_new_ones(minor, names):
    pods = cluster_with_pod({**OF_TEMPLATE, "name": "b"}, {**OF_TEMPLATE, "name": "a"})
    pods.gates = FeatureGates(minor)
    pods.reconcile(APP)
    assert list(statuses(pods)) == ["a", "b"]
    pods.remove(RESOURCE_CLAIMS, statuses(pods)["a"])
    (patch,) = pods.execute_one(pods.plan(APP), APP).actions
    assert [status["name"] for status in patch.body["status"]["resourceClaimStatuses"]] == names


def test_missing_template_records_event_and_is_retried():
    pods = cluster_with_pod(OF_TEMPLATE, template=False)
    problem = 'resource claim template "t": resourceclaimtemplate.resource.k8s.io "t" not found'
    with pytest.raises(RequeueWithBackoff, match=problem):
        pods.reconcile(APP)
    assert pods.events == [("Warning", "FailedResourceClaimCreation", f"PodResourceClaim gpu: {problem}")]


def test_refused_claim_records_event():
    pods = cluster_with_pod(OF_TEMPLATE)

    def refuse(*_):
        raise Forbidden("no")

    pods.add = refuse
    _, error = pods.reconcile(APP)
    assert error.message == "no"
    (event,) = pods.events
    assert event[2] == "PodResourceClaim gpu: create ResourceClaim : no"
    assert statuses(pods) == {}


@pytest.mark.parametrize("deleting", [True, False])
def test_pods_without_claims_are_ignored(deleting):
    ending = {"deletionTimestamp": "2030-01-01T00:00:00Z"} if deleting else {}
    pods = cluster_with_pod(*([OF_TEMPLATE] if deleting else [BY_NAME]), **ending)
    assert pods.reconcile(APP) == ([], None)


def test_unneeded_claim_is_not_created():
    pods = cluster_with_pod(OF_TEMPLATE)
    pods.change(PODS, "app", ("status", "resourceClaimStatuses"), [{"name": "gpu"}])
    assert pods.reconcile(APP) == ([], None)


def test_bound_pod_reserves_allocated_claim():
    pods = cluster_with_pod(BY_NAME, node="n1")
    pods.add(RESOURCE_CLAIMS, claim("s", ("other", "o")))
    pods.reconcile(APP)
    found = pods.get(RESOURCE_CLAIMS, "s")["status"]["reservedFor"]
    assert [one["uid"] for one in found] == ["o", "u"]
    assert pods.reconcile(APP) == ([], None)


@pytest.mark.parametrize(("node", "allocated"), [("", True), ("n1", False)])
def test_scheduler_reserves_for_unbound_pods(node, allocated):
    pods = cluster_with_pod(BY_NAME, node=node)
    pods.add(RESOURCE_CLAIMS, claim("s", allocated=allocated))
    assert pods.reconcile(APP) == ([], None)


def test_long_claim_names_are_truncated():
    assert generate_name("pod", "claim") == "pod-claim-"
    assert generate_name("p" * 60, "c" * 40) == "p" * 33 + "-" + "c" * 22


# --- claims


def reconciled_claim(pods, name="s"):
    pods.reconcile(claim_key("default", name))
    return pods.get(RESOURCE_CLAIMS, name)


@pytest.mark.parametrize(
    "change",
    [
        lambda pods: pods.change(PODS, "app", ("status", "phase"), "Succeeded"),
        lambda pods: pods.remove(PODS, "app"),
        lambda pods: pods.change(PODS, "app", ("metadata", "uid"), "another"),
        lambda pods: pods.change(PODS, "app", ("metadata", "deletionTimestamp"), "2030-01-01T00:00:00Z"),
    ],
    ids=["ended", "gone", "replaced", "deleted before it was bound"],
)
def test_last_consumer_frees_devices(change):
    pods = cluster_with_pod(BY_NAME)
    pods.add(RESOURCE_CLAIMS, claim("s", ("app", "u")))
    assert reconciled_claim(pods)["status"] == claim("s", ("app", "u"))["status"]
    change(pods)
    found = reconciled_claim(pods)
    assert found["status"] == {}
    assert not meta.finalizers(found)
    assert len(pods.done) == 2


def test_other_consumers_keep_devices():
    pods = cluster_with_pod(BY_NAME)
    listed = claim("s", ("app", "u"), ("gone", "g"))
    group = {"apiGroup": "example.com", "resource": "things", "name": "t", "uid": "t"}
    listed["status"]["reservedFor"].append(group)
    pods.add(RESOURCE_CLAIMS, listed)
    found = reconciled_claim(pods)
    assert [one["uid"] for one in found["status"]["reservedFor"]] == ["u", "t"]
    assert "allocation" in found["status"]


def test_allocation_without_finalizer_is_kept():
    pods = cluster_with_pod(BY_NAME)
    pods.add(RESOURCE_CLAIMS, claim("s", ("gone", "g"), finalizers=()))
    assert reconciled_claim(pods)["status"] == {"allocation": {"devices": {}}}


def test_pod_missing_in_cache_keeps_reservation():
    pods = cluster_with_pod(BY_NAME)
    pods.add(RESOURCE_CLAIMS, claim("s", ("new", "n")))
    late = {"metadata": {"name": "new", "namespace": "default", "uid": "n"}}
    pods.pending_writes[PODS] = {("default", "new"): late}
    assert "reservedFor" in reconciled_claim(pods)["status"]
    pods.pending_writes.clear()
    assert "reservedFor" not in reconciled_claim(pods)["status"]


def test_deleted_claim_is_released_when_unused():
    pods = cluster_with_pod(BY_NAME)
    pods.add(RESOURCE_CLAIMS, claim("s", deletionTimestamp="2030-01-01T00:00:00Z"))
    assert reconciled_claim(pods) is None


def test_unused_claim_stays_allocated():
    pods = cluster_with_pod(BY_NAME)
    pods.add(RESOURCE_CLAIMS, claim("s"))
    assert "allocation" in reconciled_claim(pods)["status"]


@pytest.mark.parametrize(
    ("owner", "phase", "goes"),
    [("u", "Running", False), ("u", "Failed", True), ("before", "Running", True)],
    ids=["its pod runs", "its pod has ended", "its pod was replaced"],
)
def test_generated_claim_is_deleted_with_its_pod(owner, phase, goes):
    pods = cluster_with_pod(OF_TEMPLATE)
    pods.change(PODS, "app", ("status", "phase"), phase)
    pods.add(RESOURCE_CLAIMS, claim("s", owner=owner, finalizers=()))
    assert (reconciled_claim(pods) is None) is goes


def test_generated_claim_without_pod_is_not_deleted_by_controller():
    pods = cluster_with_pod(OF_TEMPLATE)
    pods.remove(PODS, "app")
    pods.add(RESOURCE_CLAIMS, claim("s", owner="u", finalizers=()))
    assert reconciled_claim(pods) is not None


@pytest.mark.parametrize("writes", [0, 1, 2])
def test_restart_after_each_write_leads_to_same_end(writes):
    pods = cluster_with_pod(OF_TEMPLATE)
    pods.change(PODS, "app", ("status", "phase"), "Succeeded")
    pods.add(RESOURCE_CLAIMS, claim("s", ("app", "u"), owner="u"))
    plan, done = pods.plan(claim_key("default", "s")), 0
    while plan is not None and done < writes:
        plan, done = pods.execute_one(plan), done + 1
    for _ in range(3):
        pods.reconcile(claim_key("default", "s"))
    assert pods.get(RESOURCE_CLAIMS, "s") is None


# --- mapping of changes to keys


def keys(pods, number, change):
    return {*pods.controller.watches[number].keys(pods.caches(), change)}


def test_changes_map_to_pod_and_claim_keys():
    pods = cluster_with_pod(OF_TEMPLATE, BY_NAME)
    pod = PodView.of(pods.get(PODS, "app"))
    template = pods.get(RESOURCE_CLAIM_TEMPLATES, "t")
    assert keys(pods, 0, Change(None, pod)) == {APP}
    assert keys(pods, 0, Change(pod, None)) == {claim_key("default", "s")}
    assert keys(pods, 2, Change(None, template)) == {APP}
    assert keys(pods, 2, Change(template, None)) == set()
    other = {"metadata": {"name": "x", "namespace": "default"}}
    assert keys(pods, 1, Change(None, other)) == {claim_key("default", "x")}
    shared = {"metadata": {"name": "s", "namespace": "default"}}
    assert keys(pods, 1, Change(shared, None)) == {APP}


def test_pods_without_claims_map_to_no_key():
    pods = cluster_with_pod()
    assert keys(pods, 0, Change(None, PodView.of(pods.get(PODS, "app")))) == set()


def test_extended_resource_claim_is_freed():
    pods = cluster_with_pod()
    extended = {"resourceClaimName": "e", "requestMappings": []}
    pods.change(PODS, "app", ("status", "extendedResourceClaimStatus"), extended)
    pod = PodView.of(pods.get(PODS, "app"))
    assert keys(pods, 0, Change(pod, None)) == {claim_key("default", "e")}


def test_deletion_seen_in_cache_needs_no_read():
    pods = cluster_with_pod(BY_NAME)
    pods.add(RESOURCE_CLAIMS, claim("s", ("app", "u")))
    pod = PodView.of(pods.get(PODS, "app"))
    pods.remove(PODS, "app")
    keys(pods, 0, Change(pod, None))
    (action,) = pods.plan(claim_key("default", "s")).actions
    assert isinstance(action, Update)


# --- metrics


def samples(metrics):
    return {(family.name, *values): value for family, samples in metrics for values, value in samples}


SHARED = "dynamic_resource_allocation"
CREATES, CLAIMS = f"{SHARED}_resourceclaim_creates_total", f"{SHARED}_resource_claims"
OLDER_CREATES, OLDER_CLAIMS = (
    "resourceclaim_controller_creates_total",
    "resourceclaim_controller_resource_claims",
)


@pytest.mark.parametrize(
    ("minor", "creates", "owner", "present"),
    [("1.37", CREATES, ("", "Pod"), CLAIMS), ("1.36", OLDER_CREATES, (), OLDER_CLAIMS)],
)
def test_claims_are_counted(minor, creates, owner, present):
    listed = [claim("a"), claim("b", allocated=False, annotations={POD_CLAIM_NAME: "gpu"})]
    registry = MetricsRegistry()
    claims = ResourceClaimMetrics(lambda: listed, FeatureGates(minor), registry)
    write = CompletedWrite(Create(resource=RESOURCE_CLAIMS, bodies=()), Key("default", "a"), claim("a"))
    named = CompletedWrite(Patch(resource=PODS, key=Key("default", "a"), body={}), Key("default", "a"), {})
    for outcome in (
        PlanResult(error=None, writes=(write, named)),
        PlanResult(error=Forbidden("no"), writes=()),
        PlanResult(error=Forbidden("no"), writes=(named,)),
    ):
        claims.observe(None, outcome, 0.0, SteppedClock().now())
    claims.update()
    assert samples(registry.collect()) == {
        (creates, "success", "false", *owner): 1,
        (creates, "failure", "false", *owner): 1,
        (present, "true", "false", ""): 1,
        (present, "false", "false", "resource_claim_template"): 1,
    }
