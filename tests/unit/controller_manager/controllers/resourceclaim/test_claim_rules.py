"""Which claims of a pod are created or reserved, which reservations are valid, and what a change of a pod concerns."""

import pytest

from mockube.apimachinery.resource_names import is_extended_resource_claim
from mockube.client.cache.store import Change
from mockube.client.component_helpers.device_claims import FINALIZER, POD_CLAIM_NAME
from mockube.client.kinds import PODS, RESOURCE_CLAIM_TEMPLATES, RESOURCE_CLAIMS
from mockube.client.podview import PodView
from mockube.client.resources import Key
from mockube.component_base.clock import SteppedClock
from mockube.controller_manager.control.actions import Create, Delete, Patch, PlanResult, Update
from mockube.controller_manager.controllers.resourceclaim import claims, pods
from mockube.controller_manager.controllers.resourceclaim.controller import (
    DeletedPods,
    _source_label,
    claim_key,
    pod_key,
    resource_claims,
)
from tests.support.controllers.fake_caches import FakeCaches

APP = Key("default", "app")
ENDING = {"deletionTimestamp": "2030-01-01T00:00:00Z"}
OF_TEMPLATE = {"name": "gpu", "resourceClaimTemplateName": "t"}
BY_NAME = {"name": "gpu", "resourceClaimName": "s"}
CREATED = [{"name": "gpu", "resourceClaimName": "s"}]
UNNEEDED = [{"name": "gpu"}]
TEMPLATE = {"metadata": {"name": "t", "namespace": "default"}, "spec": {}}


def pod(*pod_claims, statuses=(), node="n", phase="Running", extended=None, **metadata):
    status = {"phase": phase, "resourceClaimStatuses": [*statuses]}
    if extended:
        status["extendedResourceClaimStatus"] = {"resourceClaimName": extended}
    return {
        "metadata": {"name": "app", "namespace": "default", "uid": "u", **metadata},
        "spec": {"nodeName": node, "resourceClaims": [*pod_claims]},
        "status": status,
    }


def claim(*consumers, owner="u", allocated=True, finalizers=(FINALIZER,), **metadata):
    reference = {"apiVersion": "v1", "kind": "Pod", "name": "app", "uid": owner, "controller": True}
    status = {"reservedFor": [{"resource": "pods", "name": "app", "uid": uid} for uid in consumers]}
    return {
        "metadata": {
            "name": "s",
            "namespace": "default",
            "finalizers": [*finalizers],
            "ownerReferences": [reference] if owner else [],
            **metadata,
        },
        "status": status | ({"allocation": {}} if allocated else {}),
    }


def caches_of(subject=None, *present, templates=(TEMPLATE,)):
    objects = {
        PODS: [subject] if subject else [],
        RESOURCE_CLAIMS: present,
        RESOURCE_CLAIM_TEMPLATES: templates,
    }
    return FakeCaches(objects, resource_claims().indexes)


@pytest.mark.parametrize(
    ("subject", "present", "expected"),
    [
        (pod(), [], False),
        (pod(OF_TEMPLATE), [], True),
        (pod(OF_TEMPLATE, statuses=UNNEEDED), [], False),
        (pod(OF_TEMPLATE, statuses=CREATED), [], True),
        (pod(OF_TEMPLATE, statuses=CREATED), [claim("u")], False),
        (pod(OF_TEMPLATE, statuses=CREATED), [claim()], True),
        (pod(OF_TEMPLATE, statuses=CREATED), [claim(owner="another")], False),
        (pod(OF_TEMPLATE, statuses=CREATED, node=""), [claim()], False),
        (pod(OF_TEMPLATE, statuses=CREATED), [claim(allocated=False)], False),
        (pod(OF_TEMPLATE, phase="Failed"), [], False),
        (pod(OF_TEMPLATE, node="", **ENDING), [], False),
        (pod(BY_NAME), [], False),
        (pod(BY_NAME), [claim(owner="")], True),
        (pod(BY_NAME), [claim("u", owner="")], False),
        (pod(BY_NAME, node=""), [claim(owner="")], False),
    ],
)
def test_pod_needs_work_for_claims_to_create_or_reserve(subject, present, expected):
    assert pods.needs_work(caches_of(subject, *present), PodView.of(subject)) is expected


def kinds(plan):
    return [type(action) for action in plan.actions]


@pytest.mark.parametrize(
    ("subject", "present", "expected"),
    [
        (None, [], []),
        (pod(OF_TEMPLATE), [], [Create]),
        (pod(OF_TEMPLATE, **ENDING), [], []),
        (pod(OF_TEMPLATE, statuses=CREATED), [], [Create]),
        (pod(OF_TEMPLATE, statuses=CREATED), [claim()], [Update]),
        (pod({**BY_NAME, "name": "x"}, OF_TEMPLATE, statuses=UNNEEDED), [claim(owner="")], [Update]),
        (pod(BY_NAME, {"name": "y", "resourceClaimName": "s2"}), [claim("u", owner="")], []),
    ],
)
def test_plan_of_a_pod(subject, present, expected):
    assert kinds(pods.reconcile_pod(caches_of(subject, *present), APP)) == expected


def test_claim_of_the_pod_that_its_status_does_not_name_is_found_by_its_annotation():
    subject = pod(OF_TEMPLATE, {**OF_TEMPLATE, "name": "nic"})
    present = claim(annotations={POD_CLAIM_NAME: "nic"})
    plan = pods.reconcile_pod(caches_of(subject, present), APP)
    (create,) = plan.actions
    assert create.bodies[0]["metadata"]["annotations"] == {POD_CLAIM_NAME: "gpu"}
    failed = PlanResult(error=ValueError("no"), writes=())
    assert plan.then(failed) is None
    (patch,) = plan.then(PlanResult(error=None, writes=())).actions
    assert isinstance(patch, Patch)
    assert patch.body["status"]["resourceClaimStatuses"] == [{"name": "nic", "resourceClaimName": "s"}]


def test_reservations_end_at_a_claim_that_is_absent():
    subject = pod({"name": "x", "resourceClaimName": "absent"}, BY_NAME)
    assert kinds(pods.reconcile_pod(caches_of(subject, claim(owner="")), APP)) == []
    swapped = pod(BY_NAME, {"name": "x", "resourceClaimName": "absent"})
    assert kinds(pods.reconcile_pod(caches_of(swapped, claim(owner="")), APP)) == [Update]


# --- claims


@pytest.mark.parametrize(
    ("consumer", "subject", "deleted", "expected"),
    [
        ({}, pod(), (), True),
        ({}, pod(), ("u",), False),
        ({}, pod(uid="another"), (), False),
        ({}, pod(phase="Failed"), (), False),
        ({}, None, (), False),
        ({"resource": "things"}, None, (), True),
        ({"apiGroup": "example.com"}, None, (), True),
    ],
)
def test_reservation_is_valid_for_a_pod_that_runs(consumer, subject, deleted, expected):
    reservation = {"resource": "pods", "name": "app", "uid": "u"} | consumer
    caches = caches_of(subject)
    assert claims._is_reservation_valid(deleted, caches, "default", reservation) is expected


@pytest.mark.parametrize(
    ("consumer", "subject", "deleted", "expected"),
    [
        ({}, None, (), True),
        ({}, None, ("u",), False),
        ({}, pod(), (), False),
        ({"apiGroup": "example.com"}, None, (), False),
    ],
)
def test_pod_that_is_only_absent_from_the_cache_is_read(consumer, subject, deleted, expected):
    reservation = {"resource": "pods", "name": "app", "uid": "u"} | consumer
    assert claims._is_absent_from_cache(deleted, caches_of(subject), "default", reservation) is expected


@pytest.mark.parametrize(
    ("present", "subject", "expected"),
    [
        (claim("u"), pod(), []),
        (claim("u"), pod(phase="Failed"), [Update]),
        (claim(), pod(phase="Failed"), [Delete]),
        (claim(), pod(), []),
        (claim(owner=""), None, []),
        (claim(owner="another"), pod(), [Delete]),
        (claim(owner="", **ENDING), None, [Update]),
        (claim(owner="", allocated=False, **ENDING), None, [Update]),
        (claim(owner="", finalizers=(), **ENDING), None, []),
        (claim("u", owner="", **ENDING), pod(), []),
    ],
)
def test_plan_of_a_claim(present, subject, expected):
    assert kinds(claims.reconcile_claim((), caches_of(subject, present), Key("default", "s"))) == expected


def test_claim_that_is_being_deleted_is_deallocated_before_its_finalizer_is_removed():
    (first,) = claims.reconcile_claim(
        (), caches_of(None, claim(owner="", **ENDING)), Key("default", "s")
    ).actions
    assert first.subresource == "status"
    assert "allocation" not in first.body["status"]
    unallocated = claim(owner="", allocated=False, **ENDING)
    (second,) = claims.reconcile_claim((), caches_of(None, unallocated), Key("default", "s")).actions
    assert second.body["metadata"].get("finalizers") in (None, [])


# --- the controller


GPU, POD = claim_key("default", "s"), pod_key(APP)
BOUND = pod(BY_NAME)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (None, pod(OF_TEMPLATE), [POD]),
        (None, pod(OF_TEMPLATE, **ENDING), []),
        (None, pod(), []),
        (pod(BY_NAME), None, [GPU]),
        (None, pod(BY_NAME, phase="Failed"), [GPU]),
        (None, pod(BY_NAME, extended="e", phase="Failed"), [GPU, claim_key("default", "e")]),
        (pod(extended="e"), None, [claim_key("default", "e")]),
        (None, pod(extended="e"), []),
        (None, pod(BY_NAME), []),
    ],
)
def test_change_of_a_pod_concerns_its_claims_at_its_end(old, new, expected):
    keys = resource_claims().watches[0].keys
    change = Change(*(None if each is None else PodView.of(each) for each in (old, new)))
    assert [*keys(caches_of(new), change)] == expected


def test_pods_that_were_deleted_last_are_known():
    deleted = DeletedPods()
    for number in range(502):
        deleted.add(str(number))
    assert len(deleted.uids) == 500
    assert "1" not in deleted.uids
    assert "2" in deleted.uids


@pytest.mark.parametrize(
    ("annotations", "expected"),
    [
        ({}, ""),
        ({POD_CLAIM_NAME: "gpu"}, "resource_claim_template"),
        ({"resource.kubernetes.io/extended-resource-claim": "true"}, "extended_resource"),
    ],
)
def test_claims_are_counted_by_their_source(annotations, expected):
    subject = claim(annotations=annotations)
    assert is_extended_resource_claim(subject) is (expected == "extended_resource")
    assert _source_label(subject) == expected


def test_keys_with_the_prefix_of_a_pod_are_pods():
    controller = resource_claims()
    now = SteppedClock().now()
    caches = caches_of(pod(OF_TEMPLATE), claim(owner="another"))
    assert kinds(controller.reconcile(caches, POD, now)) == [Create]
    assert kinds(controller.reconcile(caches, GPU, now)) == [Delete]
