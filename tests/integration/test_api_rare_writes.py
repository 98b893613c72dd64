"""Writes that few clients send, each answered as a real kube-apiserver 1.36.3 answered it."""

import pytest

from tests.support.server import apiserver
from tests.support.server.definitions import WIDGETS, define, definition, version

NS = "/api/v1/namespaces/default"
APPS = "/apis/apps/v1/namespaces/default"
NET = "/apis/networking.k8s.io/v1/namespaces/default/networkpolicies"
HOOKS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
CLAIMS = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
LEASE = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "x"}, "spec": {}}
ENDING = {"deletionTimestamp": "2026-01-02T03:04:05Z", "deletionGracePeriodSeconds": 4}


@pytest.fixture
async def client():
    async with apiserver.running() as client:
        yield client


def named(**more):
    return {"metadata": {"name": "x"}, **more}


async def test_endpoints_stay_as_they_were_grouped(client):
    subset = {
        "addresses": [{"ip": "192.0.2.2"}, {"ip": "192.0.2.1"}],
        "ports": [{"port": 80, "protocol": "TCP"}],
    }
    made = await client.post(f"{NS}/endpoints", named(subsets=[subset, subset]))
    assert made.body["subsets"] == [subset, subset]


async def test_what_goes_at_once_is_shown_as_it_was(client):
    path = "/apis/storage.k8s.io/v1/storageclasses"
    await client.post(path, named(provisioner="p"))
    await client.delete(f"{path}/x?propagationPolicy=Orphan")
    gone = await client.delete(f"{path}/x?propagationPolicy=Background")
    assert gone.body["metadata"]["finalizers"] == ["orphan"]
    assert (await client.get(f"{path}/x")).status == 404


async def test_a_deletion_keeps_the_bytes_of_a_revision(client):
    path, text = f"{APPS}/controllerrevisions", b'{"metadata":{"name":"x"},"revision":1,"data":{"a": 1}}'
    await client.send("POST", path, text)
    await client.delete(f"{path}/x?propagationPolicy=Orphan")
    again = await client.send("PUT", f"{path}/x", text)
    assert again.status == 200, again.body


@pytest.mark.parametrize("seconds", [0, 3])
async def test_a_grace_period_cannot_be_set(client, seconds):
    await client.post(f"{NS}/configmaps", named())
    changed = {"metadata": {"name": "x", "deletionGracePeriodSeconds": seconds}}
    refused = await client.put(f"{NS}/configmaps/x", changed)
    path = "metadata.deletionGracePeriodSeconds"
    assert (
        refused.body["message"]
        == f'ConfigMap "x" is invalid: {path}: Invalid value: {seconds}: field is immutable'
    )


@pytest.mark.parametrize("way", ["create", "update", "apply"])
async def test_an_update_or_apply_may_make_what_is_being_deleted(client, way):
    path = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
    lease = LEASE | {"metadata": {"name": "x", "selfLink": "s"} | ENDING}
    if way == "create":
        made = await client.post(path, lease)
    elif way == "update":
        made = await client.put(f"{path}/x", lease)
    else:
        made = await client.patch(f"{path}/x?fieldManager=f", lease, kind="apply-patch+yaml")
    kept = made.body["metadata"].items() & ENDING.items()
    assert (made.status, kept) == (201, set() if way == "create" else {*ENDING.items()})
    assert "selfLink" not in made.body["metadata"]


async def test_a_service_may_be_made_by_its_status(client):
    service = {"apiVersion": "v1", "kind": "Service", **named(spec={"ports": [{"port": 80}]})}
    made = await client.patch(f"{NS}/services/x/status?fieldManager=f", service, kind="apply-patch+yaml")
    assert (made.status, made.body["metadata"].get("managedFields")) == (201, None)


def allocation(name, problem):
    refused = f'IPAddress.networking.k8s.io "IP" is invalid: spec.parentRef.name: {problem}'
    return (
        f'Service "{name}" is invalid: spec.clusterIPs: Invalid value: [""]: failed to allocate IP: {refused}'
    )


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("", allocation("", "Required value")),
        ("a/b", allocation("a/b", "Invalid value: \"a/b\": may not contain '/'")),
    ],
)
async def test_the_address_of_a_service_needs_its_name(client, name, message):
    service = {"metadata": {"name": name}, "spec": {"ports": [{"port": 80}]}}
    refused = (await client.post(f"{NS}/services", service)).body["message"]
    before, _, rest = refused.partition('k8s.io "')
    assert f'{before}k8s.io "IP{rest[rest.index(chr(34)) :]}' == message
    dry = await client.post(f"{NS}/services?dryRun=All", service)
    assert "metadata.name" in dry.body["message"]


async def test_a_dry_run_looks_at_the_range_of_addresses_alone(client):
    service = named(spec={"ports": [{"port": 80}], "clusterIP": "172.16.0.9"})
    refused = await client.post(f"{NS}/services?dryRun=All", service)
    problem = "the provided IP (172.16.0.9) is not in the valid range. The range of valid IPs is 10.0.0.0/16"
    assert refused.body["message"].endswith(f"failed to allocate IP 172.16.0.9: {problem}")
    service["spec"]["clusterIP"] = "10.0.0.9"
    assert (await client.post(f"{NS}/services", service)).status == 201
    service["metadata"] = {"name": "y"}
    assert (await client.post(f"{NS}/services", service)).status == 422
    assert (await client.post(f"{NS}/services?dryRun=All", service)).status == 201


async def test_empty_lists_are_changes_of_some_kinds(client):
    policy = named(spec={"podSelector": {}, "policyTypes": ["Ingress"]})
    await client.post(NET, policy)
    generations = []
    for more in ({}, {"ingress": []}, {"ingress": []}, {"podSelector": {"matchLabels": {}}}):
        changed = await client.put(f"{NET}/x", policy | {"spec": policy["spec"] | more})
        generations.append(changed.body["metadata"]["generation"])
    assert generations == [1, 2, 3, 4]
    hook = {"name": "a.b.c", "admissionReviewVersions": ["v1"], "sideEffects": "None"}
    hook["clientConfig"] = {"url": "https://x/"}
    made = (await client.post(HOOKS, named(webhooks=[hook]))).body
    again = (await client.put(f"{HOOKS}/x", made | {"webhooks": [hook]})).body
    assert again["metadata"]["generation"] == 1
    changed = await client.put(f"{HOOKS}/x", again | {"webhooks": [hook | {"rules": []}]})
    assert changed.body["metadata"]["generation"] == 2


async def test_empty_lists_change_no_claim_of_devices(client):
    await client.post(CLAIMS, named())
    patched = await client.patch(f"{CLAIMS}/x", {"spec": {"devices": {"requests": [], "config": []}}})
    assert patched.status == 200, patched.body


DAEMONS = {"selector": {"matchLabels": {"a": "b"}}} | {
    "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
}


@pytest.mark.parametrize(
    ("patch", "problem"),
    [
        (b'{"spec":{"updateStrategy":{"rollingUpdate":{"maxUnavailable":1000.0}}}}', ""),
        (
            b'{"spec":{"updateStrategy":{"rollingUpdate":{"maxUnavailable":1.5}}}}',
            "json: cannot unmarshal number 1.5 into Go value of type int32",
        ),
        (b'{"apiVersion":[null]}', "unrecognized type: string"),
        (b'{"kind":{}}', "unrecognized type: string"),
    ],
)
async def test_a_strategic_patch_is_converted_as_go_converts_it(client, patch, problem):
    await client.post(f"{APPS}/daemonsets", named(spec=DAEMONS))
    answer = await client.patch(f"{APPS}/daemonsets/x", patch, kind="strategic-merge-patch+json")
    assert answer.status == (422 if problem else 200)
    assert not problem or answer.body["message"].endswith(problem)


async def test_a_source_of_any_kind_stays_beside_a_reference(client):
    claim = named(
        spec={
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
            "dataSource": {"apiGroup": "a", "kind": "K", "name": "n"},
            "dataSourceRef": {"apiGroup": "a", "kind": "Other", "name": "n"},
        }
    )
    refused = await client.post(f"{NS}/persistentvolumeclaims", claim)
    assert "spec: Invalid value: {}: must match dataSourceRef" in refused.body["message"]


async def test_the_path_of_a_webhook_begins_behind_its_first_byte(client):
    hook = {"name": "a.b.c", "admissionReviewVersions": ["v1"], "sideEffects": "None"}
    hook["clientConfig"] = {"service": {"name": "n", "namespace": "n", "path": "ä"}}
    refused = await client.post(HOOKS, named(webhooks=[hook]))
    assert 'Invalid value: "ä": segment[0]: a lowercase RFC 1123 subdomain' in refused.body["message"]


NUMBERED = {
    "type": "object",
    "properties": {
        "spec": {"type": "object"},
        "status": {"type": "object", "properties": {"a": {"type": "integer"}}},
    },
}
WIDGET = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "x"}, "spec": {}}


async def test_custom_objects_with_a_status_that_is_dropped(client):
    await define(client, definition(version(schema=NUMBERED, subresources={"status": {}})))
    for name, status, owners in (("x", {"a": "b"}, None), ("y", {"a": 1}, 1)):
        made = await client.post(WIDGETS, WIDGET | {"metadata": {"name": name}, "status": status})
        managers = made.body["metadata"].get("managedFields")
        assert (made.status, managers and len(managers)) == (201, owners)
    nameless = [{"op": "move", "from": "/metadata/name", "path": "/kind"}]
    refused = await client.patch(f"{WIDGETS}/x", nameless, kind="json-patch+json")
    problem = "the name of the object (x based on URL) was undeterminable: name must be provided"
    assert (refused.status, refused.body["message"]) == (400, problem)
    other = {"kind": "Other", "apiVersion": "v2"}
    assert (await client.patch(f"{WIDGETS}/x/status", other)).body["kind"] == "Widget"
    assert (await client.patch(f"{WIDGETS}/x", other)).status == 422


async def test_apply_looks_at_an_object_without_managers_first(client):
    path = f"{NS}/serviceaccounts"
    await client.post(path, named(secrets=[{}]))
    applied = {"apiVersion": "v1", "kind": "ServiceAccount", **named(automountServiceAccountToken=1)}
    refused = await client.patch(f"{path}/x?fieldManager=f", applied, kind="apply-patch+yaml")
    problem = "failed to create manager for existing fields: failed to convert new object (default/x; /v1, Kind=Service"
    assert refused.body["message"].startswith(problem)


async def test_a_body_of_another_kind_is_read_as_what_it_is(client):
    await client.post(f"{APPS}/deployments", named(spec=DAEMONS))
    other = {"apiVersion": "v1", "kind": "Pod", **named(spec={"containers": 1})}
    for path in ("scale", "status"):
        refused = (await client.put(f"{APPS}/deployments/x/{path}", other)).body["message"]
        assert refused.endswith(
            "cannot unmarshal number into Go struct field PodSpec.spec.containers of type []v1.Container"
        )
    scale = {"apiVersion": "extensions/v1beta1", "kind": "Scale", **named(spec={"replicas": 1})}
    refused = await client.put(f"{APPS}/deployments/x/scale", scale)
    assert refused.body["message"] == (
        "the API version in the data (extensions/v1beta1) does not match the expected API version (autoscaling/v1)"
    )


async def test_evictions_of_the_first_version_are_taken(client):
    await client.post(f"{NS}/serviceaccounts", {"metadata": {"name": "default"}})
    await client.post(f"{NS}/pods", named(spec={"containers": [{"name": "c", "image": "i"}]}))
    eviction = {"apiVersion": "policy/v1beta1", "kind": "Eviction", **named()}
    assert (await client.post(f"{NS}/pods/x/eviction", eviction)).status == 201


@pytest.mark.parametrize("subresource", ["resize", "ephemeralcontainers"])
async def test_whoever_tries_to_change_a_field_owns_it(client, subresource):
    await client.post(f"{NS}/serviceaccounts", {"metadata": {"name": "default"}})
    await client.post(f"{NS}/pods", named(spec={"containers": [{"name": "c", "image": "i"}]}))
    patched = await client.patch(f"{NS}/pods/x/{subresource}", {"spec": {"nodeSelector": {"a": "b"}}})
    owned = patched.body["metadata"]["managedFields"][-1]
    assert (owned["fieldsV1"], owned["subresource"]) == ({"f:spec": {"f:nodeSelector": {}}}, subresource)
    assert "nodeSelector" not in patched.body["spec"]


RULE = {"operations": ["CREATE"], "apiGroups": ["a.b"], "apiVersions": ["v1"], "resources": ["x"]}


async def test_a_status_that_leaves_metadata_alone(client):
    path = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
    spec = {"matchConstraints": {"resourceRules": [RULE]}, "validations": [{"expression": "true"}]}
    await client.post(path, named(spec=spec))
    sent = {"labels": {"a": "b"}, "ownerReferences": [], "deletionTimestamp": ENDING["deletionTimestamp"]}
    patched = await client.patch(f"{path}/x/status", {"metadata": sent, "status": {"observedGeneration": 1}})
    assert (patched.status, patched.body["status"]) == (200, {"observedGeneration": 1})
    assert not patched.body["metadata"].keys() & sent.keys()


async def test_a_template_refuses_fields_that_are_set_to_nothing(client):
    path = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaimtemplates"
    refused = await client.post(path, named(spec={"metadata": {"uid": "u", "finalizers": []}, "spec": {}}))
    causes = [cause["field"] for cause in refused.body["details"]["causes"]]
    assert causes == ["spec.metadata.uID", "spec.metadata.finalizers"]


async def test_an_update_says_what_is_wrong_with_a_new_object_before_the_change(client):
    path = "/apis/storage.k8s.io/v1/storageclasses"
    await client.post(path, named(provisioner="p"))
    changed = {
        "metadata": {"creationTimestamp": None, "deletionGracePeriodSeconds": 3},
        "reclaimPolicy": "A_b",
    }
    refused = await client.patch(f"{path}/x", changed)
    causes = [cause["field"] for cause in refused.body["details"]["causes"]]
    seconds = "metadata.deletionGracePeriodSeconds"
    assert causes == [seconds, "reclaimPolicy", seconds, "reclaimPolicy"]


async def test_ports_of_a_slice_come_before_its_endpoints(client):
    path = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices"
    slice_ = {"addressType": "IPv4", "endpoints": [{"addresses": ["-"]}], "ports": [{"protocol": "x"}]}
    refused = await client.post(path, named(**slice_))
    causes = [cause["field"] for cause in refused.body["details"]["causes"]]
    assert causes == ["ports[0].protocol", "endpoints[0].addresses[0]"]


async def test_a_class_of_devices_may_say_any_beginning_of_a_name(client):
    path = "/apis/resource.k8s.io/v1/deviceclasses"
    await client.post(path, named(spec={}))
    assert (await client.patch(f"{path}/x", {"metadata": {"generateName": "ä"}})).status == 200


async def test_a_flex_volume_may_be_beside_another_source(client):
    spec = {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}, "hostPath": {"path": "/x"}}
    both = spec | {"flexVolume": {"driver": "a/b"}}
    made = await client.post("/api/v1/persistentvolumes", named(spec=both))
    assert (made.status, {"hostPath", "flexVolume"} <= made.body["spec"].keys()) == (201, True)


async def test_addresses_of_the_other_family_are_told_of_together(client):
    path = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices"
    slice_ = {"addressType": "IPv4", "endpoints": [{"addresses": ["2001:db8::1"]}]}
    refused = await client.post(path, named(**slice_))
    assert [cause["field"] for cause in refused.body["details"]["causes"]] == ["endpoints[0].addresses"]


async def test_the_status_of_a_pod_takes_no_time_of_deletion(client):
    await client.post(f"{NS}/serviceaccounts", {"metadata": {"name": "default"}})
    await client.post(f"{NS}/pods", named(spec={"containers": [{"name": "c", "image": "i"}]}))
    ending = {"metadata": {"deletionTimestamp": ENDING["deletionTimestamp"]}}
    patched = await client.patch(f"{NS}/pods/x/status", ending)
    assert (patched.status, "deletionTimestamp" in patched.body["metadata"]) == (200, False)


async def test_nobody_owns_metadata_through_a_status_that_leaves_it_alone(client):
    await client.post(CLAIMS, named())
    patched = await client.patch(
        f"{CLAIMS}/x/status", {"metadata": {"generateName": "y-", "labels": {"a": "b"}}}
    )
    assert (patched.status, patched.body["metadata"].get("managedFields")) == (200, None)


async def test_managers_of_custom_objects_are_not_reset_by_an_empty_list(client):
    await define(client, definition())
    await client.post(WIDGETS, WIDGET)
    for entries, left in (([], 1), (None, 1), ([{}], 0)):
        patched = await client.patch(f"{WIDGETS}/x", {"metadata": {"managedFields": entries}})
        assert len(patched.body["metadata"].get("managedFields", ())) == left


async def test_a_local_volume_that_is_refused_needs_no_affinity(client):
    spec = {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}, "local": {"path": "/x"}}
    for more, field in (({}, "spec.nodeAffinity"), ({"nfs": {"server": "s", "path": "/"}}, "spec.local")):
        refused = await client.post("/api/v1/persistentvolumes", named(spec=spec | more))
        assert [cause["field"] for cause in refused.body["details"]["causes"]] == [field]


OWNER = {"apiVersion": "v1", "kind": "ConfigMap", "name": "a", "uid": "u1"}
OTHER, BLOCKING = OWNER | {"uid": "u2"}, OWNER | {"blockOwnerDeletion": True}


@pytest.mark.parametrize(
    ("method", "media_type", "when"),
    [
        ("POST", "json", ""),
        ("PUT", "json", ""),
        ("PATCH", "merge-patch+json", " after mutating admission happens"),
    ],
)
async def test_each_owner_is_named_once(client, method, media_type, when):
    path = "/api/v1/namespaces/default/configmaps"
    if method != "POST":
        await client.post(path, {"metadata": {"name": "owned"}})
        path += "/owned"
    references = [OWNER, OTHER, OWNER, BLOCKING, OTHER]
    sent = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "owned", "ownerReferences": references},
    }
    answer = await client.send(method, path, sent, Content_Type=f"application/{media_type}")
    assert answer.status in (200, 201), answer.body
    assert answer.body["metadata"]["ownerReferences"] == [OWNER, OTHER, BLOCKING]
    warning = answer.headers["Warning"]
    assert warning.startswith(
        f'299 - ".metadata.ownerReferences contains duplicate entries{when}; API server'
    )
    assert warning.endswith('duplicate UID(s) observed: u1, u2"')


async def test_the_core_group_may_be_named_by_a_slash(client):
    sent = {"apiVersion": "/v1", "kind": "ConfigMap", "metadata": {"name": "slash"}}
    answer = await client.post("/api/v1/namespaces/default/configmaps", sent)
    assert (answer.status, answer.body["apiVersion"]) == (201, "v1")


async def test_what_would_be_too_large_is_stored_without_its_managers(client):
    """As upstream: by create, update and patch, but not by apply."""
    path, key = (
        f"{NS}/configmaps",
        "a-key-of-a-map-that-is-named-once-in-the-data-and-once-in-the-managed-fields",
    )
    data = {f"{key}-{number}": "A" for number in range(9999)}
    made = await client.post(path, {"metadata": {"name": "big"}, "data": data})
    assert (made.status, "managedFields" in made.body["metadata"]) == (201, False)
    patched = await client.patch(f"{path}/big", {"data": {"more": "x"}})
    assert (patched.status, "managedFields" in patched.body["metadata"]) == (200, False)
    replaced = await client.put(f"{path}/big", {"metadata": {"name": "big"}, "data": data})
    assert (replaced.status, "managedFields" in replaced.body["metadata"]) == (200, False)
    applied = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "big"}, "data": data}
    refused = await client.patch(f"{path}/big?fieldManager=m&force=true", applied, kind="apply-patch+yaml")
    assert refused.status == 413, refused.body
